"""Standby replicas (process pairs): failover without lost or repeated tuples.

Every partition has a replica (twin) on another worker. The owner processes a tuple and forwards it to the replica; once
the replica has processed it too, the tuple is committed: its answer is emitted, it counts as processed, and its
producer drops it. Both copies thus see the same order, and everything committed before a crash is in both states. A
replica serves forwarded tuples before its own input.

A producer keeps sent tuples until they are acknowledged, numbered per partition, in a buffer of twice the size of its
connections. When the owner crashes, the replica reports the last number that it has per producer, becomes the owner
once it has processed those, and producers resend the rest in order, so nothing is repeated. When the replica crashes,
the owner commits what the replica had not, from the answers it has kept. The partition then runs without a replica
until the movement protocol has copied it to another worker. If both crash first, the state is lost, and uncommitted
tuples are resent to the worker where the partition restarts.

Every tuple is processed and sent twice, the second time at the cost of producing one. Replicas take no memory, since
standby excludes memory limits.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.engine.kernel.standby import answer_for, put_back
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.movement.controller import Move
from adapt.core.stage.movement.protocol import Movement
from adapt.core.stage.records.codes import NONE


class Standby:
    """Standby replicas of a stage."""

    def __init__(self, stage: Stage, movement: Movement, living: Callable[[], list[int]] | None = None) -> None:
        """Spread the replicas of each worker's partitions over all others.

        Args:
            stage: A stage built for standby, at time 0.
            living: Live workers known to the controller; None, all.
        """
        n = stage.settings.workers
        self._stage = stage
        self._movement = movement
        self._pairs = stage.arrays["pair"]
        self.living = living or (lambda: list(range(n)))
        self._at_once = n // 2
        self._coming = np.zeros(n, np.int64)
        self._suspended = False
        self._unprotected: list[Callable[[float], None]] = []
        for worker in range(n):
            owned = np.flatnonzero(stage.settings.owners == worker)
            self._pairs["twin"][owned] = (worker + 1 + np.arange(len(owned)) % (n - 1)) % n
        movement.on_change = self.replicate

    @property
    def mirrored(self) -> int:
        """Tuples sent to replicas."""
        return int(self._stage.arrays.world["mirrored"])

    @property
    def sent_bytes(self) -> int:
        """Bytes sent for standby: tuples and state copies to replicas."""
        copied = sum(one.state_bytes for one in self._movement.copied if "received" in one.times_s)
        return self.mirrored * self._stage.settings.costs.tuple_bytes + copied

    def twins_by_worker(self) -> NDArray[np.int64]:
        """Number of replicas on each worker, shape (workers,)."""
        twins = self._pairs["twin"]
        return np.bincount(twins[twins != NONE], minlength=self._stage.settings.workers)

    def promote(self, partition: int, living: Sequence[int]) -> int | None:
        """Make the replica of a partition its owner.

        Returns:
            Its worker; None without a live replica.
        """
        twin = int(self._pairs["twin"][partition])
        self._pairs["twin"][partition] = NONE
        kept = self._kept(partition)
        if twin not in living:
            kept["pending"] = 0
            return None
        states = self._movement.states
        states.put(partition, states.take(partition, twin=True))
        self._stage.arrays["partition"]["in_flight"][partition] = kept["pending"].sum()
        return twin

    def send_again(self, partitions: Sequence[int]) -> int:
        """Resend unacknowledged tuples of partitions that the owner lacks; returns their number."""
        return sum(put_back(self._stage.arrays.worlds, partition) for partition in partitions)

    def bury(self, worker: int) -> None:
        """Drop the replicas of a dead worker; owners commit their tuples."""
        alone = np.flatnonzero(self._pairs["twin"] == worker).tolist()
        self._pairs["answer_for"][alone] = [self._movement.state_survives(partition) for partition in alone]
        answer_for(self._stage.arrays.worlds, worker)
        self._pairs["answer_for"] = 0
        self._pairs["twin"][alone] = NONE
        for partition in alone:
            self._kept(partition)["pending"] = 0

    def suspend(self) -> None:
        """Pause replication during a takeover."""
        self._suspended = True

    def go_on(self, protected: Callable[[float], None]) -> None:
        """Resume replication.

        Args:
            protected: Called with the time when every partition has a replica.
        """
        self._suspended = False
        self._unprotected.append(protected)
        self.replicate()

    def replicate(self) -> None:
        """Copy partitions without a replica to the workers with the fewest copies.

        At most n/2 copies run at once, the number of moves per round in the paper.
        """
        if self._suspended or not self._unprotected:
            return
        alone = np.flatnonzero(self._pairs["twin"] == NONE).tolist()
        if not alone:
            for protected in self._unprotected:
                protected(self._stage.now_s)
            self._unprotected.clear()
        for partition in alone:
            if self._coming.sum() == self._at_once:
                return
            move = self._copy(partition)
            if move is not None and self._movement.may_start(move, copies=True):
                self._coming[move.receiver] += 1
                self._movement.start([move], partial(self._copied, move.receiver), copies=True)

    def _copy(self, partition: int) -> Move | None:
        """The copy to make of a partition, if a worker is available."""
        owners = self._stage.arrays["partition"]["owner"]
        owner, living = int(owners[partition]), self.living()
        others = [worker for worker in living if worker != owner]
        if owner not in living or not others:
            return None
        copies = np.bincount(owners, minlength=self._stage.settings.workers) + self.twins_by_worker() + self._coming
        return Move(partition, owner, min(others, key=lambda worker: (copies[worker], worker)))

    def _copied(self, receiver: int) -> None:
        self._coming[receiver] -= 1
        self.replicate()

    def _kept(self, partition: int) -> NDArray[np.void]:
        """Records of unacknowledged tuples of a partition, shape (producers,)."""
        return self._stage.arrays["kept"][partition :: self._stage.settings.partitions]
