"""Rounds of the rebalancing controller: collect, decide, move.

Source: Flux, section 5.3.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.engine.queues import Action
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.movement.controller import Controller, Move, Observation, Round
from adapt.core.stage.movement.protocol import Movement


class OneStage:
    """Workers that report statistics, and partitions that move: one stage.

    Its workers are idle while their consumers wait.
    """

    def __init__(self, stage: Stage, movement: Movement) -> None:
        """Wrap a stage and its movement protocol."""
        self._stage, self._movement = stage, movement
        self.workers = stage.settings.workers
        self.message_s = stage.settings.network.latency_s

    @property
    def now_s(self) -> float:
        """Current simulated time."""
        return self._stage.now_s

    def after(self, delay_s: float, action: Action) -> None:
        """Run an action after a delay."""
        self._stage.after(delay_s, action)

    def when_read(self, worker: int, action: Action) -> None:
        """Run an action when a worker next reads its messages."""
        self._stage.when_read(worker, action)

    def idle_s(self) -> NDArray[np.float64]:
        """Idle seconds of each worker since the start, shape (workers,)."""
        return self._stage.idle_s()

    def of_partitions(self, name: str) -> NDArray[Any]:
        """A field of the partitions: `processed`, `owner`, `spilled`, `on_disk`, `in_flight`; shape (partitions,)."""
        return np.asarray(self._stage.arrays["partition"][name])

    def state_bytes(self) -> NDArray[np.int64]:
        """Current state of each partition, shape (partitions,)."""
        return self._stage.state_bytes()

    def weighed(self, tuples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tuple counts in a common unit: those of one stage weigh alike."""
        return tuples.copy()

    def may_start(self, move: Move) -> bool:
        """Whether a move can start now."""
        return self._movement.may_start(move)

    def receiver_of(self, partition: int) -> int | None:
        """The receiver of a partition with a dead donor; else None."""
        return self._movement.receiver_of(partition)

    def start(self, moves: Sequence[Move], done: Action) -> None:
        """Execute moves, and call `done` when all are finished."""
        self._movement.start(moves, done)


class Rounds:
    """Runs a controller on its target, round after round.

    The controller asks all consumers to collect statistics. Each reports after the collection time, when it next reads
    its messages; the controller decides when it has all reports.
    """

    def __init__(
        self,
        adapted: OneStage,
        controller: Controller,
        idle_clock_s: float = 0.0,
        available: Callable[[int], float] | None = None,
        living: Callable[[], list[int]] | None = None,
    ) -> None:
        """Begin the first round.

        Args:
            idle_clock_s: Resolution at which a consumer measures idle time, rounded up; 0, exact.
            available: Memory of a worker for state in bytes, now; None, unlimited.
            living: Live workers known to the controller, in order; None, all. A policy sees only these, by rank, and
                moves that cannot start are dropped from its round.
        """
        self._adapted = adapted
        self._available = available
        self._controller = controller
        self._idle_clock_s = idle_clock_s
        self.rounds: list[Round] = []
        n, partitions = adapted.workers, len(adapted.of_partitions("owner"))
        self._began_s: NDArray[np.float64] = np.zeros(n)
        self._idle_before: NDArray[np.float64] = np.zeros(n)
        self._processed_before: NDArray[np.int64] = np.zeros(partitions, np.int64)
        self._collected_s: NDArray[np.float64] = np.zeros(n)
        self._idle_s: NDArray[np.float64] = np.zeros(n)
        self._processed: NDArray[np.int64] = np.zeros(partitions, np.int64)
        self._state_bytes: NDArray[np.int64] = np.zeros(partitions, np.int64)
        self._on_disk: NDArray[np.bool_] = np.zeros(partitions, np.bool_)
        self._unprocessed: NDArray[np.int64] = np.zeros(partitions, np.int64)
        self._limits: NDArray[np.float64] = np.full(n, np.inf)
        self._missing = 0
        self._living = living
        self._asked = list(range(n))
        self._round = 0
        self._collecting = False
        self._collect(None)

    def interrupt(self) -> None:
        """Restart the collection after a crash, if reports are pending."""
        if self._collecting:
            self._collect(self.rounds[-1] if self.rounds else None)

    def _collect(self, previous: Round | None) -> None:
        collection_s = self._controller.collection_s(previous)
        self._round += 1
        self._collecting = True
        self._adapted.after(self._adapted.message_s, partial(self._begin, self._round, collection_s))

    def _begin(self, number: int, collection_s: float) -> None:
        if number != self._round:
            return
        if self._living is not None:
            self._asked = self._living()
        self._missing = len(self._asked)
        self._when_read(self._asked, partial(self._reset, number, collection_s))

    def _when_read(self, workers: list[int], action: Callable[[list[int]], None]) -> None:
        """Run an action when workers read their messages."""
        at_once: list[int] = []
        is_now = True

        def read(worker: int) -> None:
            if is_now:
                at_once.append(worker)
            else:
                action([worker])

        for worker in workers:
            self._adapted.when_read(worker, partial(read, worker))
        is_now = False
        if at_once:
            action(at_once)

    def _owned(self, workers: list[int]) -> NDArray[np.bool_]:
        """Whether each partition is of one of some workers, shape (partitions,)."""
        named = np.zeros(self._adapted.workers, np.bool_)
        named[workers] = True
        return np.asarray(named[self._adapted.of_partitions("owner")])

    def _reset(self, number: int, collection_s: float, workers: list[int]) -> None:
        """Consumers start to collect."""
        if number != self._round:
            return
        own = self._owned(workers)
        self._began_s[workers] = self._adapted.now_s
        self._idle_before[workers] = self._adapted.idle_s()[workers]
        self._processed_before[own] = self._adapted.of_partitions("processed")[own]
        report = partial(self._report, number, collection_s)
        self._adapted.after(collection_s, lambda: self._when_read(workers, report))

    def _report(self, number: int, collection_s: float, workers: list[int]) -> None:
        """Consumers report their statistics."""
        if number != self._round:
            return
        own = self._owned(workers)
        self._collected_s[workers] = self._adapted.now_s - self._began_s[workers]
        idle_s = self._adapted.idle_s()[workers] - self._idle_before[workers]
        if self._idle_clock_s > 0:
            ticks = np.ceil(idle_s / self._idle_clock_s)
            idle_s = np.minimum(ticks * self._idle_clock_s, self._collected_s[workers])
        self._idle_s[workers] = idle_s
        self._processed[own] = self._adapted.of_partitions("processed")[own] - self._processed_before[own]
        self._state_bytes[own] = self._adapted.state_bytes()[own]
        self._on_disk[own] = self._adapted.of_partitions("on_disk")[own]
        self._unprocessed[own] = self._adapted.of_partitions("spilled")[own]
        if self._available is not None:
            self._limits[workers] = [self._available(worker) for worker in workers]
        self._missing -= len(workers)
        if self._missing == 0:
            self._adapted.after(self._adapted.message_s, partial(self._decide, number, collection_s))

    def _decide(self, number: int, collection_s: float) -> None:
        if number != self._round:
            return
        self._collecting = False
        moves = tuple(self._controller.plan(self._observation())) if len(self._asked) > 1 else ()
        if self._living is not None:
            named = (Move(one.partition, self._asked[one.donor], self._asked[one.receiver]) for one in moves)
            moves = tuple(move for move in named if self._adapted.may_start(move))
        decided_s = self._adapted.now_s
        if moves:
            self._adapted.start(moves, lambda: self._over(collection_s, moves, self._adapted.now_s - decided_s))
        else:
            self._over(collection_s, (), 0.0)

    def _over(self, collection_s: float, moves: tuple[Move, ...], moving_s: float) -> None:
        self.rounds.append(Round(collection_s, moves, moving_s))
        self._collect(self.rounds[-1])

    def _observation(self) -> Observation:
        return Observation(
            collected_s=self._collected_s[self._asked],
            idle_s=self._idle_s[self._asked],
            processed=self._adapted.weighed(self._processed),
            owners=self._ranks_of_owners(),
            state_bytes=self._state_bytes.copy(),
            on_disk=self._on_disk.copy(),
            unprocessed=self._unprocessed.copy(),
            available_bytes=self._limits[self._asked],
            at_s=self._adapted.now_s,
            in_flight=self._adapted.of_partitions("in_flight").astype(np.int64),
            numbers=() if self._living is None else tuple(self._asked),
            in_all=self._adapted.workers,
        )

    def _ranks_of_owners(self) -> NDArray[np.int32]:
        """Owners by rank among live workers; a partition moving from a dead worker belongs to its receiver."""
        owners = self._adapted.of_partitions("owner").copy()
        if self._living is not None:
            for partition in np.flatnonzero(~np.isin(owners, self._asked)):
                receiver = self._adapted.receiver_of(int(partition))
                owners[partition] = receiver if receiver in self._asked else self._asked[0]
        ranks = np.zeros(self._adapted.workers, np.int32)
        ranks[self._asked] = np.arange(len(self._asked))
        return np.asarray(ranks[owners])
