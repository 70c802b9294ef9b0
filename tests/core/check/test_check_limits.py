"""Limits held against what artefacts measured."""

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.check.check_limits import judge
from adapt.core.check.facts import Fact, Facts, Interval, fact_of, with_derived
from adapt.core.check.limit import parse_limit
from adapt.core.errors import UsageError
from adapt.core.metrics import ROWS, Of

SIGNS = {"<=": operator.le, "<": operator.lt, ">=": operator.ge, ">": operator.gt, "==": operator.eq}


def comparison(*imbalances, name="x.plans", schemes="abcdefghij"):
    rows = [
        fact_of({"scheme": scheme, "imbalance": value}, ["scheme"])
        for scheme, value in zip(schemes, imbalances, strict=False)
    ]
    return Facts(name, Of.COMPARISON, "hash", {ROWS: rows})


def one(text, *artefacts, **more):
    (judged,) = judge([parse_limit(text)], artefacts, **more).judged
    return judged


@given(st.sampled_from(list(SIGNS)), st.lists(st.none() | st.integers(0, 5), min_size=1, max_size=6), st.integers(0, 5))
def test_a_limit_holds_where_it_holds_for_every_row(sign, values, amount):
    judged = one(f"imbalance{sign}{amount}", comparison(*values))
    failing = [value for value in values if value is None or not SIGNS[sign](value, amount)]
    assert judged.passed == (not failing)
    assert (judged.failed, judged.rows) == (len(failing), len(values))
    if failing:
        told = judged.value.low if judged.value else None
        assert told in failing
        assert (told is None) == (None in failing)


@given(st.sampled_from(list(SIGNS)), st.integers(0, 5), st.integers(0, 5), st.integers(0, 5))
def test_an_interval_holds_only_where_every_value_in_it_does(sign, first, second, amount):
    low, high = sorted((first, second))
    facts = Facts("x", Of.PLAN, "hash", {ROWS: [Fact({}, {"imbalance": Interval(low, high)})]})
    whole = all(SIGNS[sign](value, amount) for value in range(low, high + 1))
    assert one(f"imbalance{sign}{amount}", facts).passed == whole


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["latency_p99<1ms"], "has no latency_p99"),
        (["imbalance[scheme=z]<1"], "scheme 'z' does not exist"),
        (["imbalance[case=a]<1"], "label 'case' does not exist"),
        (["imbalance[scheme=a,scheme=b]<1"], "no row"),
        (["imbalance"], "or --baseline"),
        (["imbalance[artefact=x.plans]<9"], "no limit applies to y.plans"),
    ],
)
def test_what_would_hold_against_nothing_is_refused(texts, told):
    with pytest.raises(UsageError, match=told):
        judge([parse_limit(text) for text in texts], [comparison(1.0, 1.0), comparison(1.0, 1.0, name="y.plans")])


@given(st.integers(1, 100), st.integers(1, 100), st.integers(0, 50))
def test_lower_is_better_up_to_so_much_worse(before, now, percent):
    judged = one(f"imbalance worse-by {percent}%", comparison(now / 10), baseline=comparison(before / 10))
    assert judged.passed == (now / 10 <= before / 10 * (1 + percent / 100))
    assert judged.baseline.low == before / 10


@given(st.integers(1, 100), st.integers(1, 100), st.integers(0, 50))
def test_higher_is_better_down_to_so_much_worse(before, now, percent):
    def run(value):
        return Facts("x", Of.FLUX, "hash", {ROWS: [fact_of({"case": "static", "throughput": value}, ["case"])]})

    judged = one("throughput", run(now), baseline=run(before), worse_by=percent / 100)
    assert judged.passed == (now >= before * (1 - percent / 100))


def test_rows_are_held_against_those_of_the_same_labels():
    now, before = comparison(1.0, 2.0, schemes="ab"), comparison(2.0, 1.0, schemes="ba")
    assert one("imbalance worse-by 0%", now, baseline=before).passed
    assert not one("imbalance worse-by 0%", now, baseline=comparison(2.0, 1.0, schemes="ab")).passed


def test_a_baseline_must_be_wanted_and_have_what_is_wanted():
    with pytest.raises(UsageError, match="no limit uses --baseline"):
        one("imbalance<=1.2", comparison(1.0), baseline=comparison(1.0))
    with pytest.raises(UsageError, match="has no imbalance"):
        one("imbalance", comparison(1.0), baseline=Facts("old", Of.PLAN, "hash", {ROWS: [Fact({}, {})]}))


@given(st.integers(1, 20), st.lists(st.integers(1, 100), min_size=1, max_size=20))
def test_the_share_of_the_heaviest_key_follows_from_the_floor(channels, loads):
    share = max(loads) / sum(loads)
    row = with_derived(fact_of({"best_possible": max(1.0, channels * share), "channels": channels}, []))
    top, workers = row.values["top_share"], row.values["useful_workers"]
    assert top.low <= share * (1 + 1e-12)
    assert top.high >= share * (1 - 1e-12)
    assert workers.low <= 1 / share * (1 + 1e-12)
    assert workers.high >= 1 / share * (1 - 1e-12)
    assert channels * share <= 1 or top.low == top.high


def test_the_gap_is_what_placement_could_still_win():
    row = with_derived(fact_of({"imbalance": 1.5, "best_possible": 1.2}, []))
    assert row.values["times_best_possible"].low == 1.5 / 1.2
    assert with_derived(fact_of({"imbalance": None, "best_possible": 1.2}, [])).values["times_best_possible"] is None
    assert with_derived(fact_of({"best_possible": 2.0, "channels": 4}, []), alike=False).values["top_share"] is None
