"""Which keys level pins is stable over changes of the channel count: a key leaves the map only for free."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies
from adapt.core.partitioning.build import Recipe, build_partitioner
from adapt.core.partitioning.compare import ComparisonRow, compare_schemes
from adapt.core.partitioning.problem.problem import explicit_map
from adapt.core.partitioning.schemes.names import Construction, Scheme

CONSTANT = (1000, 2000, 5000, 10_000)
OUT_AND_IN = (*range(2, 33), *range(31, 1, -1))


def zipf(z: float) -> Frequencies:
    counts = np.maximum(np.rint(1e7 * np.arange(1, 10**5 + 1) ** -z), 1).astype(np.int64)
    return frequencies_of(KeyCounts(pa.array(range(len(counts))), counts, int(counts.sum())))


def walk(stream: Frequencies, channels: tuple[int, ...], most: int | None = None) -> tuple[ComparisonRow, ...]:
    return compare_schemes(
        stream,
        channels,
        replace(Recipe(), max_pins=most),
        schemes=[Scheme.HYBRID],
        constructions=[Construction.LEVEL],
    ).rows


def test_the_step_from_14_to_15_moves_what_a_constant_number_of_pins_moves():
    channels = (9, 10, 11, 12, 14, 15)
    ours, constant = walk(zipf(1.0), channels), walk(zipf(1.0), channels, 1000)
    for mine, other in list(zip(ours, constant, strict=True))[1:]:
        assert mine.metrics.m <= 1.1 * other.metrics.m
        assert mine.metrics.imbalance <= 1.001 * other.metrics.imbalance
    assert ours[-1].metrics.m < 1
    assert ours[-1].metrics.imbalance < 0.95 * constant[-1].metrics.imbalance


@pytest.mark.parametrize("z", [0.5, 0.9, 1.0, 1.2])
def test_out_and_in_no_constant_number_of_pins_moves_much_less_for_the_same_imbalance(z):
    stream = zipf(z)
    ours = walk(stream, OUT_AND_IN)
    constants = [walk(stream, OUT_AND_IN, most) for most in CONSTANT]
    moved, balanced = sum(row.metrics.m for row in ours[1:]), imbalance(ours)
    reached = [sum(row.metrics.m for row in each[1:]) for each in constants if imbalance(each) <= 1.01 * balanced]
    assert all(moved <= 1.1 * other for other in reached)
    assert balanced <= 1.001 * imbalance(constants[0])
    # A single step may have to empty a channel with a hot key, whatever is pinned.
    assert max(row.metrics.m for row in ours[1:]) < 1.45


def imbalance(rows: tuple[ComparisonRow, ...]) -> float:
    return float(np.exp(np.mean([np.log(row.metrics.imbalance) for row in rows])))


def test_only_keys_that_hash_where_they_are_leave_the_map():
    stream, recipe, current = zipf(1.0), Recipe(), None
    steps = []
    for channels in (12, 14, 15, 16, 15, 9):
        current = build_partitioner(stream, recipe, channels, current)
        steps.append(current)
    left = 0
    for before, after in pairwise(steps):
        now, later = explicit_map(before), set(explicit_map(after).column.to_pylist())
        gone = np.array([key not in later for key in now.column.to_pylist()])
        left += int(gone.sum())
        assert (now.channels[gone] == after.base.channels_of(now.column)[gone]).all()
    assert left > 0
