"""Load shedding of a stage: its log and its buffers."""

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.movement.controller import Move
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.tuples import REFUSAL

PARTS = 8
"""Resolution of the log: slots per retention time."""

MOST_PARTS = 2**16
"""Upper limit of slots per period."""


@dataclass(frozen=True, slots=True, eq=False)
class Watched:
    """Shed rows by time slot, without empty slots."""

    workers: NDArray[np.int64]  # number of active workers, shape (slots,)
    shed: NDArray[np.int64]  # rows shed in the slot, likewise
    offered: NDArray[np.int64]  # rows that arrived within the retention time before the end of the slot, likewise


class Sheddings:
    """Records the shed rows of a stage with load shedding."""

    def __init__(self, stage: Stage, held_s: float, period_s: float) -> None:
        """Start an empty log.

        Args:
            stage: The stage to record.
            held_s: Retention of rows in the buffers of workers; 0 without buffers.
            period_s: Interval between calls of `note`.
        """
        self._stage = stage
        self._width_s = max(held_s / PARTS, period_s / MOST_PARTS)
        self._held_parts = max(1, round(held_s / self._width_s))
        self._shed: list[tuple[int, NDArray[np.int64], NDArray[np.int64]]] = []
        self._due: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        if held_s > 0:
            stage.arrays.put("refusal", np.zeros(ceil(period_s / self._width_s) + 1, REFUSAL))
            stage.arrays.world["refusals"] = len(stage.arrays["refusal"])
            stage.arrays.world["refusal_s"] = self._width_s
            stage.arrays.world["watched_from"] = stage.now_s

    def note(self, due_s: NDArray[np.float64], workers: int) -> None:
        """Record a finished period.

        Args:
            due_s: Arrival times of the rows that producers took in the period.
            workers: Number of active workers.
        """
        if not self._stage.arrays.world["refusals"]:
            return
        refusals = self._stage.arrays["refusal"]["count"]
        filled = np.flatnonzero(refusals)
        if len(filled):
            since_s = float(self._stage.arrays.world["watched_from"])
            middles_s = np.minimum(since_s + (filled + 0.5) * self._width_s, self._stage.now_s)
            self._shed.append((workers, self._parts(middles_s), refusals[filled]))
            refusals[:] = 0
        self._stage.arrays.world["watched_from"] = self._stage.now_s
        if len(due_s):
            parts, counts = np.unique(self._parts(due_s), return_counts=True)
            self._due.append((parts, np.asarray(counts, np.int64)))

    def watched(self) -> Watched:
        """Shed rows of all finished periods."""
        if not self._shed:
            return Watched(*np.zeros((3, 0), np.int64))
        parts = np.concatenate([parts for _, parts, _ in self._shed])
        due, counts = (np.concatenate(each) for each in zip(*self._due, strict=True))
        order = np.argsort(due, kind="stable")
        due, come = due[order], np.concatenate([[0], np.cumsum(counts[order])])
        offered = come[np.searchsorted(due, parts, "right")]
        offered -= come[np.searchsorted(due, parts - self._held_parts, "right")]
        workers = np.concatenate([np.full(len(parts), workers) for workers, parts, _ in self._shed])
        return Watched(workers, np.concatenate([shed for _, _, shed in self._shed]), offered)

    def _parts(self, times_s: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.floor(times_s / self._width_s).astype(np.int64)


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
