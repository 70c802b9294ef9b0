"""All stages of a DAG as the target of a joint controller."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.control.control_target import OneStage
from adapt.core.stage.dag.running_dag import Dag
from adapt.core.stage.engine.event_queue import Action
from adapt.core.stage.movement.controller import Move
from adapt.core.stage.movement.protocol import Movement


class AllStages:
    """All stages of a DAG under a joint controller.

    Partitions are numbered stage after stage. A worker is idle while its CPU is. A tuple weighs the mean service time
    in its stage, so partitions of all stages are comparable.
    """

    def __init__(self, dag: Dag, movements: Sequence[Movement]) -> None:
        """Wrap the stages and the movement protocol of each."""
        self._dag = dag
        self._stages = [OneStage(*one) for one in zip(dag.stages, movements, strict=True)]
        self._firsts = np.cumsum([0, *(len(stage.owners()) for stage in self._stages)])
        self.workers = self._stages[0].workers
        self.message_s = self._stages[0].message_s
        self.after, self.idle_s = self._stages[0].after, dag.cpu_idle_s

    @property
    def now_s(self) -> float:
        """Current simulated time."""
        return self._stages[0].now_s

    def when_read(self, worker: int, action: Action) -> None:
        """Run an action when all consumers have read their messages."""
        for stage in reversed(self._stages):
            action = partial(stage.when_read, worker, action)
        action()

    def state_bytes(self) -> NDArray[np.int64]:
        """Current state of each partition, shape (partitions,)."""
        return np.concatenate([stage.state_bytes() for stage in self._stages])

    def processed(self) -> NDArray[np.int64]:
        """Processed tuples of each partition since the start, shape (partitions,)."""
        return np.concatenate([stage.processed() for stage in self._stages])

    def weighed(self, tuples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Mean CPU nanoseconds for these tuple counts, shape (partitions,)."""
        costs = [np.rint(1e9 * cost_s) for cost_s in self._dag.mean_costs_s()]
        return np.asarray(tuples * np.repeat(costs, np.diff(self._firsts)), np.int64)

    def owners(self) -> NDArray[np.int32]:
        """The worker of each partition, shape (partitions,)."""
        return np.concatenate([stage.owners() for stage in self._stages])

    def unprocessed(self) -> NDArray[np.int64]:
        """Spilled tuples of each partition, shape (partitions,)."""
        return np.concatenate([stage.unprocessed() for stage in self._stages])

    def on_disk(self) -> NDArray[np.bool_]:
        """Whether each partition is on disk, shape (partitions,)."""
        return np.concatenate([stage.on_disk() for stage in self._stages])

    def in_flight(self) -> NDArray[np.int64]:
        """Tuples of each partition sent and not processed or spilled, shape (partitions,)."""
        return np.concatenate([stage.in_flight() for stage in self._stages])

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
        parts: list[list[Move]] = [[] for _ in self._stages]
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
        stage = int(np.searchsorted(self._firsts, partition, "right")) - 1
        return stage, partition - int(self._firsts[stage])
