"""Interface of autoscalers: observations, decisions and placement."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.names import Migrating, QueueingName, RestartName
from adapt.core.stage.conditions.settings import RESTARTS, Restart
from adapt.core.stage.conditions.stage_settings import MigrationSettings
from adapt.core.units.settings import same, settings


@dataclass(frozen=True, slots=True, eq=False)
class PartitionsSeen:
    """Statistics of the partitions, now."""

    pool: int  # maximum number of workers
    owners: NDArray[np.int32]  # worker of each partition, shape (partitions,)
    processed: NDArray[np.int64]  # processed rows of each partition since the start, shape (partitions,)
    queued: NDArray[np.int64]  # rows of each partition sent and not processed, shape (partitions,)
    state_bytes: NDArray[np.int64]  # state of each partition, shape (partitions,)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Statistics of the workers over the last period."""

    at_s: float  # current simulated time
    collected_s: float  # length of the period
    workers: int  # number of active workers, m
    busy_s: NDArray[np.float64]  # busy seconds of each worker, shape (workers,)
    processed: NDArray[np.int64]  # processed tuples of each worker, shape (workers,)
    loads: NDArray[np.float64]  # offered work of each worker's partitions, in any unit, shape (workers,)
    arrived: int  # rows that arrived in the period
    waiting: int  # rows that arrived and were neither processed nor shed
    # most tuples that the buffer of each worker held in the period, shape (workers,); None without buffers
    held: NDArray[np.int64] | None = None
    # rows for each worker that arrived within the retention of its buffer; likewise
    offered: NDArray[np.float64] | None = None
    # gives the statistics of the partitions, for policies that look at them; None, not known
    partitions: Callable[[], PartitionsSeen] | None = None
    moved_bytes: int = 0  # state that rescales have moved since the start

    @property
    def imbalance(self) -> float:
        """Load of the busiest worker over the mean; 1 without load."""
        mean = float(self.loads.mean())
        return float(self.loads.max()) / mean if mean > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """Memory of an autoscaler: how long a change has been needed."""

    changed_s: float = 0.0  # time of the last change of plan
    more_since_s: float | None = None  # time since when more workers have been needed throughout; None, not now
    fewer_since_s: float | None = None  # the same for fewer workers
    fewer_to: int = 0  # largest number needed since then


@dataclass(frozen=True, slots=True)
class Decision:
    """Decision of an autoscaler."""

    workers: int  # target number of workers
    rebuild: bool = False  # whether to build a new plan for the same number of workers


class Scaler(Protocol):
    """Autoscaler: decides on the number of workers every period."""

    @property
    def least(self) -> int:
        """M, the initial and minimum number of workers."""

    @property
    def pool(self) -> int:
        """Maximum number of workers."""

    def decide(self, seen: Seen, waiting: Waiting) -> tuple[Decision, Waiting]:
        """The decision, and the memory for the next period if nothing changes."""


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A placement of the partitions of a stage."""

    owners: NDArray[np.int32]  # worker of each partition, shape (partitions,)
    weights: NDArray[np.float64]  # load of each partition, in any unit, shape (partitions,)
    # state of each partition from now on, shape (partitions,); None, as before
    state_tuples: NDArray[np.int64] | None = None


class Placement(Protocol):
    """Counts tuples per partition, and places partitions by the counts."""

    def count(
        self, partitions: NDArray[np.int32], cost_s: NDArray[np.float64], times_s: NDArray[np.float64], /
    ) -> None:
        """Count tuples.

        Args:
            partitions: Partition of each tuple, shape (tuples,).
            cost_s: CPU seconds of each tuple, negative if unknown, shape (tuples,).
            times_s: Arrival time of each tuple, ascending, shape (tuples,).
        """

    def place(self, workers: int) -> Placed:
        """The new placement on this number of workers."""


@settings()
class Migration:
    """How partitions migrate: live, or by a restart."""

    how: Migrating = Migrating.ALL  # live, all at once or in batches and in which order; or by a restart
    batch: int = same(MigrationSettings, "batch")
    restart: Restart = RESTARTS[RestartName.FLINK_SAVEPOINT]  # what a restart costs

    @classmethod
    def of(cls, given: MigrationSettings, engine: QueueingName | None) -> "Migration | None":
        """How partitions migrate; None if left to the policy.

        Args:
            engine: Whose queues the stage has.
        """
        if given.migrate is None:
            return None
        usual = RestartName.KAFKA_EAGER if engine is QueueingName.KAFKA else RestartName.FLINK_SAVEPOINT
        restart = RESTARTS[given.restart or usual]
        if given.restart_time_s is not None:
            restart = replace(restart, stop_s=0.0, start_s=given.restart_time_s)
        return cls(given.migrate, given.batch, restart)

    @property
    def named(self) -> str:
        """Its name, or that of the engine's restart it is."""
        if self.how is not Migrating.RESTART:
            return self.how.value
        return next((name.value for name, known in RESTARTS.items() if known == self.restart), self.how.value)

    def portions(self, partitions: NDArray[np.int64], weights: NDArray[np.float64]) -> list[NDArray[np.int64]]:
        """Split the partitions to move into successive batches.

        Args:
            partitions: Partitions to move, ascending, shape (moving,).
            weights: Load of each partition of the stage, shape (partitions,).
        """
        if len(partitions) == 0:
            return []
        if self.how is Migrating.HOTTEST:
            partitions = partitions[np.argsort(-weights[partitions], kind="stable")]
        size = {Migrating.ALL: len(partitions), Migrating.ONE: 1}.get(self.how, self.batch)
        return [partitions[first : first + size] for first in range(0, len(partitions), size)]


@dataclass(frozen=True, slots=True)
class Scaling:
    """Settings of an elastic stage."""

    scaler: Scaler  # the autoscaler
    placement: Placement  # places partitions on workers; stateful, so every run needs its own
    period_s: float = 1.0  # interval between decisions
    migration: Migration = Migration()  # noqa: RUF009 - frozen
    start_s: float = 0.0  # start-up time of a worker

    def __post_init__(self) -> None:
        if not 0 < self.period_s < np.inf:
            raise UsageError(f"the period between decisions must be above 0 (got {self.period_s:g} s)")
        if not 0 <= self.start_s < np.inf:
            raise UsageError(f"the start-up time of a worker must be finite and at least 0 (got {self.start_s:g} s)")
