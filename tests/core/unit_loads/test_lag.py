"""Lag against queues that are run second by second."""

import itertools

import numpy as np
import pytest

from adapt.core.errors import BadInput
from adapt.core.unit_loads.lag import LagOfUnits

LAG = LagOfUnits(np.array([0.0, 3000, 500, 900]), np.array([50.0, 100, 80, 120]), np.array([50.0, 160, 80, 130]))


def drain(lag, owners, workers, capacity, seconds):
    """Whether workers, each of which serves its units in common, have no lag after so many seconds."""
    left, arrive = (np.bincount(owners, of, workers) for of in (lag.lag, lag.arrivals))
    for _ in range(seconds):
        left = np.maximum(left + arrive - capacity, 0)
    return bool((left < 1e-6).all())


def test_time_to_drain():
    assert LAG.drains_s.tolist() == [0, 50, np.inf, 90]
    table = LAG.table(["a", "b", "c", "d"], 100)
    assert table.values("unit") == ["c", "d", "b", "a"]
    assert table.values("needs") == [85, 129, 130, 50]


def test_rates_from_a_series_of_lags():
    times = np.arange(0, 60, 5.0)
    lags = np.stack((1000 - 10 * times, 50 + 3 * times))
    found = LagOfUnits.from_series(times, lags, np.array([40.0, 8.0]))
    assert found.consumption == pytest.approx([50, 5])
    assert found.drains_s.tolist() == pytest.approx([(1000 - 550) / 10, np.inf])


def test_fewest_workers_that_drain_in_time():
    """Against all assignments of six units, each run until the time is over."""
    random, found = np.random.default_rng(2), []
    for _ in range(12):
        arrivals, owners = random.uniform(10, 100, 6), np.repeat(np.arange(3), 2)
        lag = LagOfUnits(random.uniform(0, 3000, 6), arrivals, arrivals * random.uniform(1, 1.5))
        capacity = max(np.bincount(owners, lag.consumption))
        assert lag.capacity(owners) == capacity
        enough = (
            workers
            for workers in range(1, 7)
            for each in itertools.product(range(workers), repeat=6)
            if each[0] == 0
            and np.bincount(each, lag.arrivals).max() < capacity
            and drain(lag, each, workers, capacity, 60)
        )
        found.append(lag.workers_needed(60, owners))
        assert found[-1] == next(enough, None)
    assert None in found
    assert len(set(found)) > 2


def test_more_workers_do_not_help_one_unit():
    lag = LagOfUnits(np.array([1e6, 0]), np.array([100.0, 10]), np.array([120.0, 10]))
    assert lag.workers_needed(3600) is None


def test_what_is_refused():
    with pytest.raises(BadInput, match="one for each unit"):
        LagOfUnits(np.zeros(2), np.zeros(3), np.zeros(2))
    with pytest.raises(BadInput, match="two samples"):
        LagOfUnits.from_series([0.0], np.zeros((1, 1)), np.zeros(1))
