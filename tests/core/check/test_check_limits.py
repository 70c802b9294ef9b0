"""Limits held against metrics, what differs, and the outcome in every form."""

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.check.check_limits import judge
from adapt.core.check.differences import MOST_ROWS, changes, difference_sentence, difference_table
from adapt.core.check.facts import Fact, Facts, Interval, fact_of, with_derived
from adapt.core.check.limit import parse_limit
from adapt.core.check.metrics import metric_named
from adapt.core.elastic.replay import tables as elastic_tables
from adapt.core.errors import UsageError
from adapt.core.fit.replay import tables as fit_tables
from adapt.core.flux.replay import tables as flux_tables
from adapt.core.metrics import METRICS, RENAMED, ROWS, SUMMARY, Better, Of, column_named, column_now
from adapt.core.partitioning import compare
from adapt.core.repartition import periods
from adapt.core.stage.simulate import CRASH_COLUMNS
from adapt.core.table import Column, Kind

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

    judged = one(f"throughput worse-by {percent}%", run(now), baseline=run(before))
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


NAMES = ("old", "new")


def exactly(number):
    return Interval(number, number)


def facts(kind, *rows, **summary):
    held = [Fact(where, {name: exactly(value) for name, value in values.items()}) for where, values in rows]
    whole = [Fact({}, {name: exactly(value) for name, value in summary.items()})]
    return Facts("x", kind, "", {ROWS: held, SUMMARY: whole})


def plan(scheme="uniform", **values):
    return facts(Of.PLAN, ({"scheme": scheme}, values))


def sides(before, after):
    return {change.metric.name: change.side for change in changes(before, after)}


def test_less_imbalance_is_better_and_more_keys_are_worse_and_channels_neither():
    before, after = (
        plan(imbalance=2.0, pinned_keys=0, channels=4),
        plan("hybrid", imbalance=1.5, pinned_keys=9, channels=8),
    )
    assert sides(before, after) == {"imbalance": "better", "pinned_keys": "worse", "channels": ""}
    table = difference_table(before, after, NAMES)
    assert [column.name for column in table.columns] == ["metric", "old", "new", "change", "side"]
    assert table.rows[0] == ("imbalance", "2.000", "1.500", "−25 %", "better")
    assert ("pinned_keys", "0", "9", "+9", "worse") in table.rows
    assert "better than old in 1 and worse in 1; imbalance changes from 2.000 to 1.500" in difference_sentence(
        before, after, NAMES
    )


def test_where_intervals_overlap_nothing_is_sure():
    before, after = (
        Facts("x", Of.PLAN, "", {ROWS: [Fact({}, {"imbalance": Interval(low, high)})]})
        for low, high in ((1, 2), (1.5, 3))
    )
    assert sides(before, after) == {"imbalance": "unsure"}


def test_rounding_is_no_difference_and_many_rows_are_told_by_their_summary():
    assert changes(plan(imbalance=1.1), plan(imbalance=1.1 + 1e-12)) == []
    assert "have equal metrics" in difference_sentence(plan(imbalance=1.1), plan(imbalance=1.1), NAMES)
    periods = [({"period": str(at)}, {"imbalance": 2.0}) for at in range(MOST_ROWS + 1)]
    better = [(where, {"imbalance": 1.0}) for where, _ in periods]
    before, after = (
        facts(Of.REPARTITION, *rows, imbalance_max=worst) for rows, worst in ((periods, 2.0), (better, 1.0))
    )
    assert sides(before, after) == {"imbalance_max": "better"}


@given(st.floats(1, 1e6), st.floats(1, 1e6))
def test_the_other_way_round_the_side_turns(one, other):
    there, back = sides(plan(imbalance=one), plan(imbalance=other)), sides(plan(imbalance=other), plan(imbalance=one))
    assert there.keys() == back.keys()
    if there and there["imbalance"] != "unsure":
        assert {there["imbalance"], back["imbalance"]} == {"better", "worse"}


COLUMNS = {
    (Of.COMPARISON, ROWS): compare.COLUMNS,
    (Of.REPARTITION, ROWS): periods.PERIOD_COLUMNS,
    (Of.REPARTITION, SUMMARY): (*periods.SUMMARY_COLUMNS, column_named("static_full_at")),
    (Of.FLUX, ROWS): (*flux_tables.CASE_COLUMNS, *CRASH_COLUMNS),
    (Of.FLUX, SUMMARY): flux_tables.SUMMARY_COLUMNS,
    (Of.ELASTIC, ROWS): (*elastic_tables.CASE_COLUMNS, *elastic_tables.JOIN_COLUMNS),
    (Of.FIT, ROWS): fit_tables.PLANNER_COLUMNS,
    (Of.FIT, SUMMARY): fit_tables.SUMMARY_COLUMNS,
}
DERIVED = {"times_best_possible", "top_share", "useful_workers"}


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_a_metric_is_a_column_of_its_tables(metric):
    for kind, table in metric.places.items():
        if (kind, table) in COLUMNS and metric.name not in DERIVED:
            assert metric.column in COLUMNS[kind, table], kind


def test_a_name_of_an_earlier_version_tells_the_new_one():
    assert set(RENAMED.values()) <= METRICS.keys()
    assert not RENAMED.keys() & METRICS.keys()
    for old, new in RENAMED.items():
        with pytest.raises(UsageError, match=f"metric '{old}' is now {new}"):
            metric_named(old)


def test_a_column_of_an_earlier_version_is_read_under_todays_name():
    assert column_now(Column("gap", Kind.RATIO)) is METRICS["times_best_possible"].column
    assert column_now(Column("idle", Kind.NUMBER, "s")) is METRICS["idle_time"].column
    tuples = Column("dropped", Kind.COUNT, "tuples")  # of a table in which it is no share
    assert column_now(tuples) is tuples


def test_what_is_better_lower_is_not_what_is_better_higher():
    higher = {metric.name for metric in METRICS.values() if metric.better is Better.HIGHER}
    assert {"useful_workers", "throughput", "capacity_share", "optimum_share", "score", "processed"} <= higher
    assert not higher & {
        "imbalance",
        "times_best_possible",
        "top_share",
        "m",
        "latency_p99",
        "rows_dropped",
        "moves",
        "drop_rate",
    }


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("imbalence", "did you mean 'imbalance'?"),
        ("Imbalance", "did you mean 'imbalance'?"),
        ("p99_ms", "is now latency_p99, and takes a unit, as in latency_p99<=500ms"),
        ("zzz", "adapt check --metrics"),
    ],
)
def test_an_unknown_metric_is_refused_with_what_was_meant(name, told):
    with pytest.raises(UsageError) as refused:
        metric_named(name)
    assert told in str(refused.value)
