"""The classes of a verdict against every placement and every choice of keys to split, on small instances."""

from functools import cache
from itertools import combinations, product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.partitioning.measures.population import Population
from adapt.core.partitioning.measures.resources import ResourceFunction
from adapt.core.verdict.classify import classify
from adapt.core.verdict.moving import moved_within
from adapt.core.verdict.packing import MOST_SEARCHED, packed, room_of, sticking_out
from adapt.core.verdict.verdict_class import MOST_SPLIT, VerdictClass

counts = st.lists(st.integers(1, 40), min_size=1, max_size=5)
limits = st.sampled_from([1.0, 1.05, 1.2, 1.5, 2.0])


def population(loads: list[int]) -> Population:
    keys = pa.array([f"k{at}" for at in range(len(loads))])
    return Population.from_counts(frequencies_of(KeyCounts(keys, np.array(loads), sum(loads))))


@cache
def placements(keys: int, channels: int) -> np.ndarray:
    """Every placement of so many keys, shape (placements, keys)."""
    return np.array(list(product(range(channels), repeat=keys)), np.int64).reshape(channels**keys, keys)


def least(loads: list[float], capacities: np.ndarray, total: float) -> float:
    """The most utilised channel over the mean, of the best of all placements."""
    every = placements(len(loads), len(capacities))
    utilised = [(every == channel) @ np.array(loads, np.float64) / own for channel, own in enumerate(capacities)]
    return float(np.max(utilised, axis=0).min()) * capacities.sum() / total


def expected(loads: list[int], placed: list[int], channels: int, limit: float) -> tuple[VerdictClass, int]:
    """The class by its words, and how many keys must be split at least."""
    even, total = np.ones(channels), sum(loads)
    now = max(np.bincount(placed, loads, channels)) * channels / total
    if now <= limit * (1 + 1e-9):
        return VerdictClass.BALANCED, 0
    if least(loads, even, total) <= limit * (1 + 1e-9):
        return VerdictClass.PINNING, 0
    for number in range(1, len(loads) + 1):
        kept_sets = (
            [loads[at] for at in range(len(loads)) if at not in out] for out in combinations(range(len(loads)), number)
        )
        fitting = [kept for kept in kept_sets if least(kept, even, total) <= limit * (1 + 1e-9)]
        if fitting:
            # of equally few keys, the heaviest are split, whose share says whether it is too much
            share = sum(sorted(loads)[-number:]) / total
            is_other = len(loads) < channels or share > MOST_SPLIT
            return (VerdictClass.ANOTHER_KEY if is_other else VerdictClass.SPLITTING), number
    raise AssertionError("splitting every key is always enough")


@given(counts, st.integers(1, 3), limits, st.randoms(use_true_random=False))
@example([9] * 6, 3, 1.2, None)
@example([30, 10, 10, 10, 10, 10], 3, 1.0, None)
def test_the_class_is_that_of_all_placements_and_all_choices_of_keys_to_split(loads, channels, limit, random):
    placed = [random.randrange(channels) if random else 0 for _ in loads]
    keys = population(loads)
    falling = keys.loads(ResourceFunction.LINEAR)
    found = classify(keys, falling, np.array(placed, np.int32), np.ones(channels), limit)
    assert found is not None
    verdict_class, split = expected([int(load) for load in falling], placed, channels, limit)
    assert (found.verdict_class, len(found.split)) == (verdict_class, split)
    assert found.proved
    assert found.best_possible <= least(falling.tolist(), np.ones(channels), falling.sum()) * (1 + 1e-9)
    assert found.split_share == pytest.approx(sum(sorted(loads)[len(loads) - split :]) / sum(loads))


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=6),
    st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=1, max_size=3),
    limits,
)
def test_keys_that_stick_out_decide_whether_all_can_be_placed(loads, capacities, limit):
    each, falling = np.array(capacities), np.sort(np.array(loads, np.float64))[::-1]
    total = float(falling.sum())
    heavy = sticking_out(falling, total, each, limit)
    packing = packed(falling[heavy], room_of(total, each, limit))
    assert packing.known
    assert (packing.channels is not None) == (least(loads, each, total) <= limit * (1 + 1e-9))
    if packing.channels is not None:
        filled = np.bincount(packing.channels, falling[heavy], len(each))
        assert (filled <= limit * total * each / each.sum() * (1 + 1e-8)).all()


@given(
    st.lists(st.integers(1, 60), min_size=1, max_size=30),
    st.integers(1, 5),
    st.sampled_from([1.05, 1.2, 1.5]),
    st.integers(0, 2**32 - 1),
)
def test_moves_keep_the_limit_wherever_a_placement_does(loads, channels, limit, seed):
    drawn = np.random.default_rng(seed)
    values, even = np.array(loads, np.float64), np.ones(channels)
    placed = drawn.integers(0, channels, len(loads)).astype(np.int32)
    moved = moved_within(placed, values, len(loads), even, limit)
    heavy = sticking_out(values, values.sum(), even, limit)
    possible = packed(values[heavy], room_of(values.sum(), even, limit))
    assert (moved is not None) == (possible.channels is not None)
    if moved is not None:
        filled = np.bincount(moved, values, channels)
        assert filled.max() <= limit * values.sum() / channels * (1 + 1e-8)
        over = np.bincount(placed, values, channels) > limit * values.sum() / channels * (1 + 1e-8)
        assert over.any() or (moved == placed).all()


def test_what_no_search_can_settle_is_not_called_proved():
    loads = np.sort(np.random.default_rng(3).random(MOST_SEARCHED + 1))[::-1].copy()
    packing = packed(loads, np.full(20, loads.sum() / 20))
    assert packing.channels is None
    assert not packing.known
