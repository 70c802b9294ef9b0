"""Tap on the rows that producers take from the stream."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.tuples import ROW

_SPARSE = 8
"""Numbers per row up to which rows are sorted by a table of all numbers between the first and the last."""


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """Rows taken by producers, sorted by arrival time and number."""

    partitions: NDArray[np.int32]  # partition of each row, shape (rows,)
    # CPU seconds of each row, with matches in order for a join; negative if unknown. Shape (rows,)
    cost_s: NDArray[np.float64]
    times_s: NDArray[np.float64]  # arrival time of each row, at least that of rows taken earlier; shape (rows,)


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
        rows = rows[_by_arrival(rows)]
        times_s = np.maximum(rows["due"], self._last_s)
        self._last_s = float(times_s[-1]) if len(rows) else self._last_s
        return Taken(self._stage.settings.partition_of[rows["group"]], rows["cost"].copy(), times_s)

    def _note(self) -> None:
        """Keep the rows taken before they are overwritten."""
        producers = self._stage.arrays["producer"]
        generated, ends = producers["generated"].copy(), producers["row"]
        taken = generated - self._seen
        self._seen = generated
        source = self._stage.arrays["row"]
        rows = np.concatenate(
            [source[end - more : end] for end, more in zip(ends.tolist(), taken.tolist(), strict=True)]
        )
        recent = self._stage.recent
        if recent is not None and self._stage.settings.join is not None:
            own_s = np.where(rows["cost"] < 0, self._stage.settings.costs.service_s, rows["cost"])
            rows["cost"] = own_s + recent.match_s(rows["number"])
        self._parts.append(rows)


def _by_arrival(rows: Records) -> NDArray[np.int64]:
    """The order of rows by arrival time, then number, shape (rows,)."""
    number, due_s = np.ascontiguousarray(rows["number"]), np.ascontiguousarray(rows["due"])
    first = int(number.min(initial=0))
    if len(rows) and int(number.max()) - first < _SPARSE * len(rows):
        places = np.full(int(number.max()) - first + 1, len(rows))
        places[number - first] = np.arange(len(rows))
        order = places[places < len(rows)]
        sorted_s = due_s[order]
        if len(order) == len(rows) and (sorted_s[1:] >= sorted_s[:-1]).all():
            return order
    return np.lexsort((number, due_s))
