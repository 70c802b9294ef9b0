"""The rows that the producers of a stage have taken, as they take them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.tuples import ROW


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """Rows by when they were due, and those of one time by their numbers.

    Attributes:
        partitions: Of each, shape (rows,).
        cost_s: What each costs, if all come in order where they are joined; negative if it does not say. Shape (rows,).
        times_s: When each was due, but not before any row that was taken earlier; shape (rows,).
    """

    partitions: NDArray[np.int32]
    cost_s: NDArray[np.float64]
    times_s: NDArray[np.float64]


class Intake:
    """Watches the producers of a stage to which rows come."""

    def __init__(self, stage: Stage) -> None:
        """Nothing was taken yet."""
        self._stage = stage
        self._seen: NDArray[np.int64] = np.zeros(stage.settings.workers, np.int64)
        self._parts: list[Records] = []
        self._last_s = 0.0
        stage.on_rows_wanted = self._note

    def take(self) -> Taken:
        """What was taken since this was last asked."""
        self._note()
        rows = np.concatenate([np.empty(0, ROW), *self._parts])
        self._parts.clear()
        rows = rows[np.lexsort((rows["number"], rows["due"]))]
        times_s = np.maximum(rows["due"], self._last_s)
        self._last_s = float(times_s[-1]) if len(rows) else self._last_s
        return Taken(self._stage.settings.partition_of[rows["group"]], rows["cost"].copy(), times_s)

    def _note(self) -> None:
        """Keep the rows that were taken and are still there."""
        producers = self._stage.arrays["producer"]
        generated, ends = producers["generated"].copy(), producers["row"]
        taken = generated - self._seen
        self._seen = generated
        places = np.repeat(ends - np.cumsum(taken), taken) + np.arange(int(taken.sum()))
        rows = self._stage.arrays["row"][places]
        joined = self._stage.joined
        if joined is not None:
            own_s = np.where(rows["cost"] < 0, self._stage.settings.costs.service_s, rows["cost"])
            rows["cost"] = own_s + joined.match_s(rows["number"])
        self._parts.append(rows)
