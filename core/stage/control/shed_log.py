"""Log of shed rows and of the load offered at that time."""

from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.records.tables import REFUSAL

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
