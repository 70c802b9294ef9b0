"""Tap on the rows that producers take from the stream."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.tuples import ROW


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """Rows taken by producers, sorted by arrival time and number.

    Attributes:
        partitions: Partition of each row, shape (rows,).
        cost_s: CPU seconds of each row, with matches in order for a join; negative if unknown. Shape (rows,).
        times_s: Arrival time of each row, at least that of rows taken earlier; shape (rows,).
    """

    partitions: NDArray[np.int32]
    cost_s: NDArray[np.float64]
    times_s: NDArray[np.float64]


class Intake:
    """Records the rows that producers take."""

    def __init__(self, stage: Stage) -> None:
        """Start recording."""
        self._stage = stage
        self._seen: NDArray[np.int64] = np.zeros(stage.settings.workers, np.int64)
        self._parts: list[Records] = []
        self._last_s = 0.0
        stage.on_rows_wanted = self._note

    def take(self) -> Taken:
        """Rows taken since the last call."""
        self._note()
        rows = np.concatenate([np.empty(0, ROW), *self._parts])
        self._parts.clear()
        rows = rows[np.lexsort((rows["number"], rows["due"]))]
        times_s = np.maximum(rows["due"], self._last_s)
        self._last_s = float(times_s[-1]) if len(rows) else self._last_s
        return Taken(self._stage.settings.partition_of[rows["group"]], rows["cost"].copy(), times_s)

    def _note(self) -> None:
        """Keep the rows taken before they are overwritten."""
        producers = self._stage.arrays["producer"]
        generated, ends = producers["generated"].copy(), producers["row"]
        taken = generated - self._seen
        self._seen = generated
        places = np.repeat(ends - np.cumsum(taken), taken) + np.arange(int(taken.sum()))
        rows = self._stage.arrays["row"][places]
        recent = self._stage.recent
        if recent is not None and self._stage.settings.join is not None:
            own_s = np.where(rows["cost"] < 0, self._stage.settings.costs.service_s, rows["cost"])
            rows["cost"] = own_s + recent.match_s(rows["number"])
        self._parts.append(rows)
