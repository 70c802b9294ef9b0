"""Target of a controller: one stage, or two stages in a row."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.engine.event_queue import Action
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.engine.tandem import Tandem
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


class BothStages:
    """Two stages in a row under a joint controller.

    Partitions of the first stage come before those of the second. A worker is idle while its CPU is. A tuple weighs the
    mean service time in its stage, so partitions of both stages are comparable.
    """

    def __init__(self, tandem: Tandem, movements: Sequence[Movement]) -> None:
        """Wrap two stages and the movement protocol of each."""
        self._tandem = tandem
        self._stages = [OneStage(*one) for one in zip(tandem.stages, movements, strict=True)]
        self._firsts = len(self._stages[0].owners())
        self.workers = self._stages[0].workers
        self.message_s = self._stages[0].message_s
        self.after, self.idle_s = self._stages[0].after, tandem.cpu_idle_s

    @property
    def now_s(self) -> float:
        """Current simulated time."""
        return self._stages[0].now_s

    def when_read(self, worker: int, action: Action) -> None:
        """Run an action when both consumers have read their messages."""
        first, second = self._stages
        first.when_read(worker, lambda: second.when_read(worker, action))

    def state_bytes(self) -> NDArray[np.int64]:
        """Current state of each partition, shape (partitions,)."""
        return np.concatenate([stage.state_bytes() for stage in self._stages])

    def processed(self) -> NDArray[np.int64]:
        """Processed tuples of each partition since the start, shape (partitions,)."""
        return np.concatenate([stage.processed() for stage in self._stages])

    def weighed(self, tuples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Mean CPU nanoseconds for these tuple counts, shape (partitions,)."""
        costs = [np.rint(1e9 * cost_s) for cost_s in self._tandem.mean_costs_s()]
        return np.asarray(tuples * np.where(np.arange(len(tuples)) < self._firsts, *costs), np.int64)

    def owners(self) -> NDArray[np.int32]:
        """The worker of each partition, shape (partitions,)."""
        return np.concatenate([stage.owners() for stage in self._stages])

    def unprocessed(self) -> NDArray[np.int64]:
        """Spilled tuples of each partition, shape (partitions,)."""
        return np.concatenate([stage.unprocessed() for stage in self._stages])

    def on_disk(self) -> NDArray[np.bool_]:
        """Whether each partition is on disk, shape (partitions,)."""
        return np.concatenate([stage.on_disk() for stage in self._stages])

    def may_start(self, move: Move) -> bool:
        """Whether a move can start now."""
        stage, partition = self._found(move.partition)
        return self._stages[stage].may_start(Move(partition, move.donor, move.receiver))

    def receiver_of(self, partition: int) -> int | None:
        """The receiver of a partition with a dead donor; else None."""
        stage, own = self._found(partition)
        return self._stages[stage].receiver_of(own)

    def start(self, moves: Sequence[Move], done: Action) -> None:
        """Execute moves, and call `done` when all are finished."""
        parts: tuple[list[Move], list[Move]] = ([], [])
        for move in moves:
            stage, partition = self._found(move.partition)
            parts[stage].append(Move(partition, move.donor, move.receiver))
        waiting = sum(map(bool, parts))

        def one_done() -> None:
            nonlocal waiting
            waiting -= 1
            if waiting == 0:
                done()

        for adapted, part in zip(self._stages, parts, strict=True):
            if part:
                adapted.start(part, one_done)

    def _found(self, partition: int) -> tuple[int, int]:
        """The stage of a partition, and its number there."""
        return (0, partition) if partition < self._firsts else (1, partition - self._firsts)
