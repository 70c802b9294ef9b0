"""Limits as people write them, on the command line and in files."""

import re
from contextlib import suppress

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adapt.core.check.limit import Comparison, Limit, Selector, amount_for, parse_limit, read_limits
from adapt.core.check.metrics import metric_named
from adapt.core.errors import BadInput, UsageError
from adapt.core.metrics import METRICS, Better
from adapt.core.table import Kind
from adapt.core.units.amounts import percent_of

LABELS = st.sampled_from(["scheme", "construction", "channels", "case"])
SELECTORS = st.builds(Selector, LABELS, st.text(max_size=6), st.booleans())
PLAIN = [metric for metric in METRICS.values() if metric.column.kind in (Kind.RATIO, Kind.COUNT, Kind.NUMBER)]


@pytest.mark.parametrize(
    ("text", "metric", "selectors", "comparison", "amount"),
    [
        ("imbalance<=1.2", "imbalance", [], "<=", 1.2),
        (" imbalance  <  1.2 ", "imbalance", [], "<", 1.2),
        ("b(1+m)>=1", "b(1+m)", [], ">=", 1.0),
        ("latency_p99[case=load]<500ms", "latency_p99", [("case", "load", True)], "<", 0.5),
        (
            "imbalance[scheme=hybrid, channels != 10] == 1",
            "imbalance",
            [("scheme", "hybrid", True), ("channels", "10", False)],
            "==",
            1.0,
        ),
        (
            'times_best_possible[plan="a ""b"",=]<=x"]>1',
            "times_best_possible",
            [("plan", 'a "b",=]<=x', True)],
            ">",
            1.0,
        ),
        ("imbalance", "imbalance", [], None, None),
        ("imbalance worse-by 5%", "imbalance", [], None, 0.05),
        ("latency_p99[case=load] worse-by 12.5%", "latency_p99", [("case", "load", True)], None, 0.125),
    ],
)
def test_a_limit_is_read(text, metric, selectors, comparison, amount):
    limit = parse_limit(text)
    assert (limit.metric.name, limit.comparison, limit.amount) == (metric, comparison, amount)
    assert [(each.label, each.value, each.wanted) for each in limit.selectors] == selectors


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1.2>=imbalance",
        "imbalence<=1.2",
        "imbalance<=",
        "imbalance=1.2",
        "imbalance=<1.2",
        "imbalance=>1.2",
        "imbalance!=1.2",
        "imbalance<>1.2",
        "imbalance 1.2",
        "imbalance<=1.2 and times_best_possible<=1",
        "imbalance<=1.2,gap<=1",
        "imbalance-floor<=1.2",
        "imbalance[]<=1.2",
        "imbalance[scheme]<=1.2",
        "imbalance[scheme=]<=1.2",
        "imbalance[scheme=a,]<=1.2",
        "imbalance[scheme=a<=1.2",
        "imbalance[scheme==a]<=1.2",
        'imbalance[scheme="a]<=1.2',
        "imbalance worse-by 5",
        "imbalance worse by 5%",
        "imbalance worse-by",
        "rows worse-by 5%",
        "rows",
    ],
)
def test_what_is_no_limit_is_refused_and_repeated(text):
    with pytest.raises(UsageError, match=re.escape(repr(text))):
        parse_limit(text)


@given(
    st.sampled_from(PLAIN),
    st.lists(SELECTORS, max_size=3),
    st.sampled_from(list(Comparison)),
    st.decimals(0, 10**6, places=3).map(str),
)
def test_what_is_written_comes_back(metric, selectors, comparison, amount):
    brackets = f"[{','.join(map(str, selectors))}]" if selectors else ""
    text = f"{metric.name}{brackets}{comparison}{amount}"
    assert parse_limit(text) == Limit(text, metric, tuple(selectors), comparison, float(amount))


@given(
    st.sampled_from(list(METRICS)),
    st.integers(0, 30),
    st.sampled_from("abz_09-( X"),
    st.sampled_from(["put", "cut", "swap"]),
)
def test_a_misspelt_metric_is_never_taken_for_another(name, at, character, how):
    at %= len(name)
    wrong = {
        "put": name[:at] + character + name[at:],
        "cut": name[:at] + name[at + 1 :],
        "swap": name[:at] + character + name[at + 1 :],
    }[how]
    assume(wrong.strip() not in METRICS)
    with pytest.raises(UsageError):
        parse_limit(f"{wrong}<=0.5")


@given(st.text(alphabet='imbalance<>=[]," 0.1%x!', max_size=24) | st.text(max_size=20))
def test_any_text_is_a_limit_that_it_spells_or_refused(text):
    try:
        limit = parse_limit(text)
    except UsageError:
        return
    squeezed = re.sub(r"\s", "", text)
    assert squeezed.startswith(limit.metric.name)
    if limit.comparison is None:
        assert limit.metric.better is not Better.NEITHER
    else:
        assert limit.comparison.value in squeezed


@pytest.mark.parametrize(
    ("name", "text", "amount"),
    [
        ("imbalance", "1.2", 1.2),
        ("latency_p99", "500ms", 0.5),
        ("latency_p99", "1.5 s", 1.5),
        ("latency_p99", "2min", 120.0),
        ("build_s", "3", 3.0),
        ("build_s", "0", 0.0),
        ("top_share", "20%", 0.2),
        ("top_share", "0.2", 0.2),
        ("top_share", "100%", 1.0),
        ("state_moved_bytes", "64MiB", 64.0 * 2**20),
        ("state_moved_bytes", "10", 10.0),
        ("throughput", "45000 rows/s", 45_000.0),
        ("moves", "10", 10.0),
    ],
)
def test_a_number_with_a_unit_that_fits(name, text, amount):
    assert amount_for(metric_named(name), text) == amount


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("imbalance", "1.2ms"),
        ("imbalance", "120%"),
        ("imbalance", "1,2"),
        ("imbalance", "-1"),
        ("imbalance", ""),
        ("imbalance", "1.2.3"),
        ("imbalance", "nan"),
        ("imbalance", "inf"),
        ("latency_p99", "5MB"),
        ("latency_p99", "5%"),
        ("latency_p99", "500"),
        ("build_s", "5 rows"),
        ("top_share", "20"),
        ("top_share", "120%"),
        ("top_share", "5s"),
        ("state_moved_bytes", "5s"),
        ("moves", "10 rows"),
    ],
)
def test_a_unit_that_does_not_fit_is_refused(name, text):
    with pytest.raises(UsageError):
        amount_for(metric_named(name), text)


def test_a_share_above_1_is_taken_for_a_forgotten_percent_sign():
    with pytest.raises(UsageError, match="did you mean 20%"):
        amount_for(metric_named("top_share"), "20")


@given(st.sampled_from(list(METRICS.values())), st.text(max_size=8))
def test_any_text_is_an_amount_from_0_up_or_refused(metric, text):
    with suppress(UsageError):
        assert amount_for(metric, text) >= 0


@given(st.integers(0, 10_000))
def test_a_percentage_is_a_share(percent):
    assert percent_of(f"{percent}%") == percent / 100
    with pytest.raises(UsageError):
        percent_of(str(percent))


def test_a_file_keeps_limits_and_how_much_worse_a_metric_may_be():
    read = read_limits('limits = ["imbalance <= 1.2", "times_best_possible worse-by 10%"]\n')
    assert [(limit.metric.name, limit.amount) for limit in read] == [("imbalance", 1.2), ("times_best_possible", 0.1)]


@pytest.mark.parametrize(
    ("text", "kind", "told"),
    [
        ("limits = [}", BadInput, "line 1"),
        ("", BadInput, "limits must be a list"),
        ("limits = []", BadInput, "limits must be a list"),
        ("limits = [1]", BadInput, "limits must be a list"),
        ('limits = "times_best_possible<=1"', BadInput, "limits must be a list"),
        ('limit = ["times_best_possible<=1"]', BadInput, "did you mean 'limits'"),
        ('limits = ["times_best_possible<=1"]\nworse_by = 5', BadInput, "field 'worse_by' does not exist"),
        ('limits = ["times_best_possible worse-by 5"]', UsageError, "worse-by"),
        ('limits = ["imbalance<=1", "imbalanse<=1"]', UsageError, "limit 'imbalanse<=1'.*did you mean 'imbalance'"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text, kind, told):
    with pytest.raises(kind, match=told):
        read_limits(text)
