"""Placement of partitions on workers: by plan, or by a rule."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.sliding import SlidingLossyCounter, SlidingWindow
from adapt.core.engines.unit_owners import in_ranges
from adapt.core.errors import UsageError
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.build import Recipe, build_partitioner
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.stage.control.workers import Placed
from adapt.core.stream import Weight
from adapt.core.units.row_or_time_span import Length

LEAST_S = 2e-6
"""The shortest window, of two panes."""


@dataclass(frozen=True, slots=True)
class Counting:
    """How the load of partitions is counted."""

    window_s: float = 30.0  # length of the sliding window; counts cover up to 1.5 times as much
    epsilon: float = 1e-4  # counting error, as a share of the rows in the window

    def __post_init__(self) -> None:
        if not LEAST_S <= self.window_s < np.inf:
            raise UsageError(f"the window must be at least 2us (got {self.window_s:g} s)")
        if not 0 < self.epsilon < 1:
            raise UsageError(f"the counting error must be above 0 and below 1 (got {self.epsilon:g})")


class PlannedPlacement:
    """Placement by a plan, whose keys are partitions, from sliding counts.

    The first plan only hashes, as nothing has been counted yet.

    Source: partitioning functions, sections 4.1.2 and 4.6.
    """

    def __init__(self, recipe: Recipe, partitions: int, counting: Counting, costed: bool = False) -> None:
        """Start without counts.

        Args:
            partitions: Number of partitions to place.
            costed: Whether tuples have costs; they are then the weights.
        """
        self._recipe = recipe
        self._ids = pa.array(np.arange(partitions), pa.int64())
        self._epsilon = counting.epsilon
        self._weight = Weight.COST if costed else Weight.COUNT
        window = SlidingWindow(Length(round(counting.window_s * 1e6)))
        self._counter = SlidingLossyCounter(counting.epsilon, pa.int64(), window, self._weight)
        self._current: Partitioner | None = None

    def count(self, partitions: NDArray[np.int32], cost_s: NDArray[np.float64], times_s: NDArray[np.float64]) -> None:
        """Count tuples."""
        if len(partitions):
            weights = np.maximum(cost_s, 0.0) if self._weight is Weight.COST else None
            times_us = np.asarray(times_s * 1e6, np.int64)
            self._counter.update(pa.array(partitions.astype(np.int64)), weights, times_us)

    def counted(self) -> Frequencies:
        """The current counts of partitions."""
        return self._counter.summary().frequencies(self._epsilon, self._weight)

    def place(self, workers: int) -> Placed:
        """Build the plan for `workers` and make it the current one."""
        counted, recipe = self.counted(), self._recipe
        if counted.total > 0:
            self._current = build_partitioner(counted, recipe, workers, self._current)
        else:
            self._current = make_partitioner(
                recipe.hashing, workers, recipe.hash, recipe.replicas, max_parallelism=recipe.max_parallelism
            )
        weights = np.zeros(len(self._ids))
        weights[counted.keys.to_numpy()] = counted.count_low
        return Placed(np.asarray(self._current.channels_of(self._ids), np.int32), weights)


class RulePlacement:
    """Placement by the number of workers alone, whatever the load."""

    def __init__(self, partitions: int, rule: Callable[[int], Channels]) -> None:
        """Start without counts.

        Args:
            rule: The worker of each partition, for a number of workers.
        """
        self._counts: NDArray[np.float64] = np.zeros(partitions)
        self._rule = rule

    def count(self, partitions: NDArray[np.int32], _cost_s: NDArray[np.float64], _times_s: NDArray[np.float64]) -> None:
        """Count tuples, only to know the hottest partitions."""
        self._counts += np.bincount(partitions, minlength=len(self._counts))

    def place(self, workers: int) -> Placed:
        """Apply the rule."""
        return Placed(self._rule(workers), self._counts.copy())


def range_placement(partitions: int) -> RulePlacement:
    """Placement in ranges, as by the range assignor of Kafka."""
    return RulePlacement(partitions, partial(in_ranges, partitions))
