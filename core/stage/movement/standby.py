"""Standby replicas (process pairs): failover without lost or repeated tuples.

Every partition has a replica (twin) on another worker. The owner processes a tuple and forwards
it to the replica; once the replica has processed it too, the tuple is committed: its answer is emitted, it counts as
processed, and its producer drops it. Both copies thus see the same order, and everything committed before a crash is in
both states. A replica serves forwarded tuples before its own input.

A producer keeps sent tuples until they are acknowledged, numbered per partition, in a buffer of twice the size of its
connections. When the owner crashes, the replica reports the last number that it has per producer, becomes the owner
once it has processed those, and producers resend the rest in order, so nothing is repeated. When the replica crashes,
the owner commits what the replica had not, from the answers it has kept. The partition then runs without a replica
until the movement protocol has copied it to another worker. If both crash first, the state is lost, and uncommitted
tuples are resent to the worker where the partition restarts.

A tuple of a partition with a replica is processed and sent twice, the second time at the cost of producing one. A shed
tuple is not forwarded, and its producer drops it.

Under a memory limit a replica takes as much as its partition. Replicas yield: before a worker writes a partition to
disk, it drops its replicas, largest first, and their owners commit what these had not. A dropped replica is copied
again to a worker with room, after the next crash or once a move has ended.
"""

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.engine.kernel.standby import answer_for, put_back
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.movement.controller import Move
from adapt.core.stage.movement.protocol import Movement
from adapt.core.stage.movement.spilling import Spilling
from adapt.core.stage.records.arrays import NONE


class Standby:
    """Standby replicas of a stage."""

    def __init__(self, stage: Stage, movement: Movement, spilling: Spilling | None = None) -> None:
        """Spread the replicas of each worker's partitions over all others.

        Args:
            stage: A stage built for standby, at time 0.
            spilling: Memory limits, if any.
        """
        n = stage.settings.workers
        self._stage = stage
        self._movement = movement
        self._pairs = stage.arrays["pair"]
        self.living: Callable[[], list[int]] = lambda: list(range(n))
        """Live workers known to the controller."""
        self._spilling = spilling
        self._at_once = n // 2
        self._coming = np.zeros(n, np.int64)
        self._suspended = False
        self._unprotected: list[Callable[[float], None]] = []
        for worker in range(n):
            owned = np.flatnonzero(stage.settings.owners == worker)
            self._pairs["twin"][owned] = (worker + 1 + np.arange(len(owned)) % (n - 1)) % n
        movement.on_change = self.replicate
        movement.awaits_replica = lambda _: spilling is None
        if spilling is not None:
            spilling.replicas, spilling.drop = self._replicas_on, self._drop
            self._unprotected.append(lambda _: None)
            for worker in range(n):
                spilling.grown(worker)

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
        twin, partitions = int(self._pairs["twin"][partition]), self._stage.arrays["partition"]
        owner = int(partitions["owner"][partition])
        self._pairs["twin"][partition] = NONE
        if twin not in living:
            answer_for(self._stage.arrays.worlds, owner, partition, False)
            return None
        partitions["owner"][partition] = twin  # which has all that the owner had not processed when they changed places
        answer_for(self._stage.arrays.worlds, owner, partition, True)
        states = self._movement.states
        states.put(partition, states.take(partition, twin=True))
        partitions["in_flight"][partition] = self._movement.pending(partition)
        return twin

    def send_again(self, partitions: Sequence[int]) -> int:
        """Resend unacknowledged tuples of partitions that the owner lacks; returns their number."""
        for partition in partitions:
            self._stage.kept_alone.pop(partition, None)
        return sum(put_back(self._stage.arrays.worlds, partition) for partition in partitions)

    def bury(self, worker: int) -> None:
        """Drop the replicas of a dead worker; owners commit their tuples."""
        self._stage.arrays["line"]["ack"][worker] = 0
        for partition in self._replicas_on(worker):
            survives = self._movement.state_survives(partition)
            if not survives:
                self._stage.kept_alone[partition] = self._movement.pending(partition)
            answer_for(self._stage.arrays.worlds, worker, partition, survives)
            self._pairs["twin"][partition] = NONE

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
        if self._spilling is not None:
            size = int(self._stage.state_bytes()[partition])
            others = [one for one in others if not self._coming[one] and self._spilling.has_room(one, 2 * size)]
            if self._stage.arrays["partition"]["on_disk"][partition]:
                return None
        if owner not in living or not others:
            return None
        copies = np.bincount(owners, minlength=self._stage.settings.workers) + self.twins_by_worker() + self._coming
        return Move(partition, owner, min(others, key=lambda worker: (copies[worker], worker)))

    def _copied(self, receiver: int) -> None:
        self._coming[receiver] -= 1
        self.replicate()

    def _replicas_on(self, worker: int) -> list[int]:
        found: list[int] = np.flatnonzero(self._pairs["twin"] == worker).tolist()
        return found

    def _drop(self, worker: int) -> bool:
        """Drop the largest replica of a worker; its owner commits what it had not."""
        owners, sizes = self._stage.arrays["partition"]["owner"], self._stage.state_bytes()
        found = [
            one
            for one in self._replicas_on(worker)
            if sizes[one] and not self._movement.moves(one) and int(owners[one]) not in self._stage.dead
        ]
        if not found:
            return False
        partition = max(found, key=lambda one: (sizes[one], -one))
        self._pairs["twin"][partition] = NONE
        answer_for(self._stage.arrays.worlds, worker, partition, True)
        if not self._unprotected:
            self._unprotected.append(lambda _: None)
        return True
