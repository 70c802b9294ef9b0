"""Buffers of workers that retain tuples for load shedding."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.movement.controller import Move
from adapt.core.stage.records.arrays import Records


class HeldTuples:
    """Buffered tuples of all workers; empty without load shedding."""

    def __init__(self, stage: Stage) -> None:
        """View of the arrays of a stage."""
        self._stage = stage
        self._room = int(stage.arrays.world["hold"])
        self.held_s = float(stage.arrays.world["held_for"])

    def take(self, workers: int) -> NDArray[np.int64] | None:
        """Most tuples buffered by each worker since the last call.

        Of the first workers, shape (workers,); None without buffers. A sample of one moment can miss every burst.
        """
        if not self._room:
            return None
        records = self._stage.arrays["worker"]
        most = records["held_most"][:workers].astype(np.int64)
        records["held_most"] = [len(self._of(worker)) for worker in range(len(records))]
        return most

    def move(self, move: Move) -> None:
        """Move buffered tuples of a partition; a full receiver drops the oldest."""
        if not self._room:
            return
        given, own = self._of(move.donor), self._of(move.receiver)
        goes = given["partition"] == move.partition
        self._put(move.donor, given[~goes])
        joined = np.concatenate([own, given[goes]])
        self._put(move.receiver, joined[np.argsort(joined["since"], kind="stable")][-self._room :])

    def _of(self, worker: int) -> Records:
        """Buffered tuples of a worker, oldest first."""
        record = self._stage.arrays["worker"][worker]
        places = (int(record["held_first"]) + np.arange(int(record["held"]))) % self._room
        ring = self._stage.arrays["held"][worker * self._room : (worker + 1) * self._room][places]
        return ring[np.searchsorted(ring["since"] + self.held_s, self._stage.now_s, "right") :]

    def _put(self, worker: int, held: Records) -> None:
        self._stage.arrays["held"][worker * self._room : worker * self._room + len(held)] = held
        record = self._stage.arrays["worker"][worker]
        record["held_first"], record["held"] = 0, len(held)
