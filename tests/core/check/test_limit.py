"""Limits as they are written."""

import re

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from adapt.core.check.limit import Comparison, Limit, Selector, parse_limit
from adapt.core.errors import UsageError
from adapt.core.metrics import METRICS, Better
from adapt.core.table import Kind

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
