"""What the sampling of rows alone says: intervals that hold, and pins that fit noise."""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.engines.names import Engine
from adapt.core.out_of_sample.sampling import by_sampling
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.verdict.moving import moved_within

STREAMS, LIMIT = 200, 1.2


def imbalance(counts: np.ndarray, placed: np.ndarray, channels: int) -> float:
    loads = np.bincount(placed, counts, channels)
    return loads.max() / loads.mean()


@pytest.mark.parametrize(
    ("exponent", "keys", "rows", "channels", "engine"),
    [
        (1.0, 2000, 20_000, 8, Engine.KAFKA),
        (0.8, 2000, 2000, 8, Engine.SPARK),
        (0.9, 300, 1000, 10, Engine.FLINK),
        (0.0, 100, 5000, 8, Engine.SPARK),
    ],
)
def test_both_intervals_hold_for_the_distribution_of_the_rows(exponent, keys, rows, channels, engine):
    shares = 1 / np.arange(1.0, keys + 1) ** exponent
    shares /= shares.sum()
    home = make_partitioner(engine, channels).channels_of(pa.array([f"k{at}" for at in range(keys)]))
    is_held: list[bool] = []
    is_held_after: list[bool] = []
    for seed in range(STREAMS):
        counts = np.random.default_rng(seed).multinomial(rows, shares).astype(float)
        plan = partial(moved_within, home, listed=keys, capacities=np.ones(channels), limit=LIMIT)
        found = by_sampling(counts, rows, home, np.ones(channels), plan)
        is_held.append(found.today[0] <= imbalance(shares, home, channels) <= found.today[1])
        if found.after is not None:
            true = imbalance(shares, plan(counts), channels)
            is_held_after.append(found.after[0] <= true <= found.after[1])
    assert np.mean(is_held) >= 0.87
    assert len(is_held_after) > STREAMS / 3
    assert np.mean(is_held_after) >= 0.87


def test_pins_that_fit_noise_do_not_help_rows_held_out():
    channels, keys = 8, 100_000
    home = make_partitioner(Engine.KAFKA, channels).channels_of(pa.array([f"k{at}" for at in range(keys)]))
    for seed in range(20):
        counts = np.random.default_rng(seed).multinomial(300, np.full(keys, 1 / keys)).astype(float)
        plan = partial(moved_within, home, listed=keys, capacities=np.ones(channels), limit=1.1)
        assert by_sampling(counts, 300, home, np.ones(channels), plan).fails_held_out


def test_an_error_of_the_counts_widens_the_interval():
    counts, home = np.full(100, 50.0), np.arange(100, dtype=np.int32) % 4
    exact, lossy = (by_sampling(counts, 5000, home, np.ones(4), error=error).today for error in (0.0, 100.0))
    assert lossy[0] <= exact[0] < exact[1] < lossy[1]
    assert by_sampling(counts, 5000, home, np.ones(4)).after is None
