"""Workers at the start, by tau1: as few as keep the busiest worker there, and the rate that they take."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.advice.initial_workers import initial_workers_table
from adapt.core.errors import UsageError
from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor, Thresholds


def table_of(rate, capacity, window_s, imbalance=1.0, thresholds=None):
    taus = thresholds or Thresholds()
    return initial_workers_table(rate, Overload(ShedFactor(taus.tau2), capacity, window_s), taus, imbalance).records()


def test_the_example_of_the_help():
    (given_row,) = [row for row in table_of(1000, 10_000, 60) if row["given"]]
    assert (given_row["tau1"], given_row["workers"], given_row["rise"]) == (0.4, 15, 2.0)


@given(st.floats(1, 1e5), st.integers(1, 10**5), st.floats(0.01, 1e3), st.floats(1, 4))
def test_the_busiest_is_at_tau1_and_sheds_from_tau2(rate, capacity, window_s, imbalance):
    for row in table_of(rate, capacity, window_s, imbalance):
        of_one = imbalance * window_s / (capacity * row["workers"])
        assert row["busiest"] == pytest.approx(rate * of_one)
        assert row["busiest"] <= row["tau1"] * (1 + 1e-9)
        assert row["shedding_from"] * of_one == pytest.approx(0.8)
        assert row["workers"] == 1 or rate * of_one * row["workers"] / (row["workers"] - 1) > row["tau1"] * (1 - 1e-9)


def test_a_tau1_of_its_own_is_a_row_and_none_is_above_tau2():
    rows = table_of(10, 10, 1, thresholds=Thresholds(0.1, 0.35, 0.5, 0.9))
    assert [row["tau1"] for row in rows] == [0.1, 0.2, 0.3, 0.35, 0.4]


def test_an_imbalance_below_1_is_refused():
    with pytest.raises(UsageError, match="--imbalance is the busiest worker's load over the mean"):
        table_of(10, 10, 1, imbalance=0.5)
