"""Process pairs: every partition has a twin on another worker, so that a worker can die and nothing is lost or repeated.

A tuple goes from its producer to the owner of its partition, which processes it and sends it on to the twin; that
processes it too, and then it is committed: its answer is out, it counts as processed, and its producer forgets it. So
both copies see one order, though producers race, and what was committed before a crash is in the state of both. A twin
serves the tuples in its line before its own input, since those are nearer to their end.

A producer keeps, beside what waits in its buffer, what it has sent and what is not acknowledged, numbered within each
partition by its order; it has place for twice what its connections hold. When the owner dies, the twin says up to which
number it has the tuples of each producer, becomes the owner once it has processed those, and producers send the rest
again, in order, so that nothing comes twice. When the twin dies, the owner commits what the twin had not, from the
answers that it has kept. Either way the partition is then alone, its tuples being committed by its owner, until it has
been copied by the movement protocol to a worker where its new twin goes on. If both die first, the state is lost; what
was not committed is sent again to where the partition begins anew.

Every tuple is processed twice and is sent twice, the second time at the cost of making one. The state of a twin takes
no memory, as no limit of memory is kept with standby.
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
    """The pairs of a stage."""

    def __init__(self, stage: Stage, movement: Movement, living: Callable[[], list[int]] | None = None) -> None:
        """At the start the twins of a worker's partitions are spread over all other workers, the first on the next worker.

        Args:
            stage: Made for standby, at time 0.
            living: The workers that the controller knows to live; all if not given.
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
        """Tuples that were sent to twins."""
        return int(self._stage.arrays.world["mirrored"])

    @property
    def sent_bytes(self) -> int:
        """What standby has sent: tuples to twins, and states that were copied."""
        copied = sum(one.state_bytes for one in self._movement.copied if "received" in one.times_s)
        return self.mirrored * self._stage.settings.costs.tuple_bytes + copied

    def twins_by_worker(self) -> NDArray[np.int64]:
        """How many twins each worker has, shape (workers,)."""
        twins = self._pairs["twin"]
        return np.bincount(twins[twins != NONE], minlength=self._stage.settings.workers)

    def promote(self, partition: int, living: Sequence[int]) -> int | None:
        """The twin of a partition is the owner from now on, with its state and what it has yet to process.

        Returns:
            Its worker; None if the partition has no twin that lives.
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
        """Let producers send what they have kept of partitions, but for what its owner has; how many tuples."""
        return sum(put_back(self._stage.arrays.worlds, partition) for partition in partitions)

    def bury(self, worker: int) -> None:
        """The twins of a dead worker are gone. Owners commit what those had yet to process."""
        alone = np.flatnonzero(self._pairs["twin"] == worker).tolist()
        self._pairs["answer_for"][alone] = [self._movement.state_survives(partition) for partition in alone]
        answer_for(self._stage.arrays.worlds, worker)
        self._pairs["answer_for"] = 0
        self._pairs["twin"][alone] = NONE
        for partition in alone:
            self._kept(partition)["pending"] = 0

    def suspend(self) -> None:
        """Copy nothing while partitions change hands."""
        self._suspended = True

    def go_on(self, protected: Callable[[float], None]) -> None:
        """Copy again what has no twin.

        Args:
            protected: Told the time when every partition has a twin.
        """
        self._suspended = False
        self._unprotected.append(protected)
        self.replicate()

    def replicate(self) -> None:
        """Begin to copy partitions without a twin to the workers with the fewest copies.

        At most n/2 are under way, as many as a round of the paper moves.
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
        """Where to copy a partition, if there is a worker for it."""
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
        """What each producer keeps of a partition, as it lies in the arrays; shape (producers,)."""
        return self._stage.arrays["kept"][partition :: self._stage.settings.partitions]
