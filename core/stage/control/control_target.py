"""Target of a controller, and one stage as such."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.engine.event_queue import Action
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.movement.controller import Move
from adapt.core.stage.movement.protocol import Movement


class Adapted(Protocol):
    """Workers that report statistics, and partitions that move between them."""

    @property
    def workers(self) -> int:
        """Number of workers."""

    @property
    def now_s(self) -> float:
        """Current simulated time."""

    @property
    def message_s(self) -> float:
        """Latency of a message."""

    def state_bytes(self) -> NDArray[np.int64]:
        """Current state of each partition, shape (partitions,)."""

    def after(self, delay_s: float, action: Action) -> None:
        """Run an action after a delay."""

    def when_read(self, worker: int, action: Action) -> None:
        """Run an action when a worker next reads its messages."""

    def idle_s(self) -> NDArray[np.float64]:
        """Idle seconds of each worker since the start, shape (workers,)."""

    def processed(self) -> NDArray[np.int64]:
        """Processed tuples of each partition since the start, shape (partitions,)."""

    def weighed(self, tuples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tuple counts converted to a common unit of work, shape (partitions,)."""

    def owners(self) -> NDArray[np.int32]:
        """The worker of each partition, shape (partitions,)."""

    def unprocessed(self) -> NDArray[np.int64]:
        """Spilled tuples of each partition, shape (partitions,)."""

    def on_disk(self) -> NDArray[np.bool_]:
        """Whether each partition is on disk, shape (partitions,)."""

    def in_flight(self) -> NDArray[np.int64]:
        """Tuples of each partition sent and not processed or spilled, shape (partitions,)."""

    def may_start(self, move: Move) -> bool:
        """Whether a move can start now."""

    def receiver_of(self, partition: int) -> int | None:
        """The receiver of a partition with a dead donor; else None."""

    def start(self, moves: Sequence[Move], done: Action) -> None:
        """Execute moves, and call `done` when all are finished."""


class OneStage:
    """One stage, whose workers are idle while their consumers wait."""

    def __init__(self, stage: Stage, movement: Movement) -> None:
        """Wrap a stage and its movement protocol."""
        self._stage = stage
        self.workers = stage.settings.workers
        self.message_s = stage.settings.network.latency_s
        self.after, self.when_read, self.idle_s = stage.after, stage.when_read, stage.idle_s
        self.state_bytes = stage.state_bytes
        self.may_start, self.receiver_of = movement.may_start, movement.receiver_of
        self.start = movement.start

    @property
    def now_s(self) -> float:
        """Current simulated time."""
        return self._stage.now_s

    def processed(self) -> NDArray[np.int64]:
        """Processed tuples of each partition since the start, shape (partitions,)."""
        return np.asarray(self._stage.arrays["partition"]["processed"])

    def weighed(self, tuples: NDArray[np.int64]) -> NDArray[np.int64]:
        """The counts themselves: tuples of one stage weigh the same."""
        return tuples.copy()

    def owners(self) -> NDArray[np.int32]:
        """The worker of each partition, shape (partitions,)."""
        return np.asarray(self._stage.arrays["partition"]["owner"])

    def unprocessed(self) -> NDArray[np.int64]:
        """Spilled tuples of each partition, shape (partitions,)."""
        return np.asarray(self._stage.arrays["partition"]["spilled"])

    def on_disk(self) -> NDArray[np.bool_]:
        """Whether each partition is on disk, shape (partitions,)."""
        return np.asarray(self._stage.arrays["partition"]["on_disk"] != 0)

    def in_flight(self) -> NDArray[np.int64]:
        """Tuples of each partition sent and not processed or spilled, shape (partitions,)."""
        return self._stage.arrays["partition"]["in_flight"].astype(np.int64)
