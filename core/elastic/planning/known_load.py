"""Load of a stream known in advance, window by window."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.conditions.arrivals import Chunk
from adapt.core.stage.conditions.join import SerialJoin
from adapt.core.stage.conditions.settings import StageSettings

WINDOWS = 200
"""Windows of a stream, at most."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class KnownLoad:
    """Work of a stream in consecutive windows.

    Attributes:
        window_s: Length of a window.
        work: Worker seconds that arrive in each window, shape (windows,).
    """

    window_s: float
    work: Floats

    @classmethod
    def from_chunks(
        cls, chunks: Iterable[Chunk], settings: StageSettings, last_s: float, period_s: float
    ) -> "KnownLoad":
        """Sum up a stream in windows of whole control periods.

        Args:
            last_s: Arrival of the last row, or the end of the replay if it is earlier.
            period_s: Time between decisions.
        """
        window_s = period_s * max(1, int(np.ceil(last_s / WINDOWS / period_s)))
        work: Floats = np.zeros(int(last_s / window_s) + 1)
        costs = settings.costs
        serial = None if settings.join is None else SerialJoin(settings.join, len(settings.partition_of))
        for chunk in chunks:
            work_s = np.full(len(chunk.groups), costs.service_s) if chunk.cost_s is None else chunk.cost_s
            if serial is not None and settings.join is not None:
                work_s = work_s + serial.matches(chunk) * settings.join.match_s
            due_s = np.zeros(len(work_s)) if chunk.due_s is None else chunk.due_s
            at = (due_s / window_s).astype(np.int64)
            known = at < len(work)
            work += np.bincount(at[known], (work_s + costs.produce_s)[known], len(work))
        return cls(window_s, work)
