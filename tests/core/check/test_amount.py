"""Amounts in limits."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.check.limit import amount_for
from adapt.core.check.metrics import metric_named
from adapt.core.errors import UsageError
from adapt.core.metrics import METRICS
from adapt.core.units.amounts import percent_of


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
