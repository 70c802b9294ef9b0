"""What a scaler of a stage is told, and what it asks for: how many workers, and whether the plan is built anew."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.names import Migrating


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What the workers of a stage did in the last period, and how they stand.

    Attributes:
        at_s: The time.
        collected_s: How long the period was.
        workers: m.
        busy_s: How long of it each worker had work, shape (workers,).
        processed: Tuples that each has done with, shape (workers,).
        loads: Work that came in for the partitions of each, shape (workers,); in any unit.
        arrived: Rows that came to be due in it.
        waiting: Rows that are due and neither processed nor shed.
        held: Tuples that all workers hold; 0 where they hold none.
        offered: Rows that came to be due as lately as those that are held; likewise.
    """

    at_s: float
    collected_s: float
    workers: int
    busy_s: NDArray[np.float64]
    processed: NDArray[np.int64]
    loads: NDArray[np.float64]
    arrived: int
    waiting: int
    held: int = 0
    offered: int = 0

    @property
    def imbalance(self) -> float:
        """The heaviest of the loads over their mean; 1 where there are none."""
        mean = float(self.loads.mean())
        return float(self.loads.max()) / mean if mean > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """For how long a change has been wanted, which is all that a scaler remembers.

    Attributes:
        changed_s: When a plan was last put in force, or was tried to be.
        more_since_s: From when on more workers were wanted all the time; None, they are not.
        fewer_since_s: The same of fewer.
        fewer_to: The most that were wanted since then.
    """

    changed_s: float = 0.0
    more_since_s: float | None = None
    fewer_since_s: float | None = None
    fewer_to: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done now.

    Attributes:
        workers: How many there are to be.
        rebuild: Whether the plan is to be built anew, where they stay as many.
    """

    workers: int
    rebuild: bool = False


class Scaler(Protocol):
    """Decides on the workers of a stage, period by period."""

    @property
    def least(self) -> int:
        """M, the workers at the start; there are never fewer."""

    @property
    def pool(self) -> int:
        """There are never more."""

    def decide(self, seen: Seen, waiting: Waiting) -> tuple[Decision, Waiting]:
        """What is to be done, and what is remembered for the next period if that is nothing."""


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A plan for the partitions of a stage.

    Attributes:
        owners: The worker of each, shape (partitions,).
        weights: What each is known to weigh, in any unit, shape (partitions,).
    """

    owners: NDArray[np.int32]
    weights: NDArray[np.float64]


class Placement(Protocol):
    """Counts partitions as their tuples are taken in, and places them by what was counted."""

    def count(
        self, partitions: NDArray[np.int32], cost_s: NDArray[np.float64], times_s: NDArray[np.float64], /
    ) -> None:
        """Count tuples.

        Args:
            partitions: Of each, shape (tuples,).
            cost_s: What each costs; negative if it does not say. Shape (tuples,).
            times_s: When each came, not falling, shape (tuples,).
        """

    def place(self, workers: int) -> Placed:
        """The plan for so many workers, which is in force from now on."""


@dataclass(frozen=True, slots=True)
class Migration:
    """In which portions partitions move.

    Attributes:
        how: Together, or one portion after the other, and which first.
        batch: Partitions of a portion, where there is a choice.

    Raises:
        UsageError: a portion is empty.
    """

    how: Migrating = Migrating.ALL
    batch: int = 16

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise UsageError(f"{self.batch} partitions cannot move together; give 1 or more")

    def portions(self, partitions: NDArray[np.int64], weights: NDArray[np.float64]) -> list[NDArray[np.int64]]:
        """Partitions that are to move, in rising order, as portions that move one after the other.

        Args:
            partitions: Which, shape (partitions that move,).
            weights: What each partition of the stage weighs, shape (partitions,).
        """
        if len(partitions) == 0:
            return []
        if self.how is Migrating.HOTTEST:
            partitions = partitions[np.argsort(-weights[partitions], kind="stable")]
        size = {Migrating.ALL: len(partitions), Migrating.ONE: 1}.get(self.how, self.batch)
        return [partitions[first : first + size] for first in range(0, len(partitions), size)]


@dataclass(frozen=True, slots=True)
class Scaling:
    """What makes a stage elastic.

    Attributes:
        scaler: How many workers there are, and when the plan is built anew.
        placement: Which of them has which partition. It remembers what it has counted, so that each run has its own.
        period_s: How often the scaler is asked.
        migration: In which portions partitions move.
        start_s: How long a worker takes to start, from when it is asked for.

    Raises:
        UsageError: a time is out of its range.
    """

    scaler: Scaler
    placement: Placement
    period_s: float = 1.0
    migration: Migration = Migration()
    start_s: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.period_s < np.inf:
            raise UsageError(f"workers cannot be observed every {self.period_s:g} s; give a time above 0")
        if not 0 <= self.start_s < np.inf:
            raise UsageError(f"a worker cannot take {self.start_s:g} s to start; give a time from 0 up")
