"""What workers can do with a placement, learned from the partitions."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.control.workers import Seen

NEW = 0.1
"""Weight of a new measurement in a running mean."""

USED = 0.9
"""Share of its time in which the busiest worker works when rows wait, until it is measured."""

LEAST_USED = 0.1
"""The least share that is believed: below it, something else stops the workers."""

SHOWN = 10
"""Periods in which a new placement shows what it is worth."""

Floats = NDArray[np.float64]


class Capacity:
    """Workers that can be busy, by imbalance and a learned share.

    The share is learned where rows wait. The imbalance of the present placement is measured. That of a new one is what
    the hottest partition leaves at least, times how much worse than that the policy's own placements turned out to be.
    """

    def __init__(self) -> None:
        """Start without measurements."""
        self._offered: Floats | None = None
        self._loads: Floats | None = None
        self._imbalance = 1.0
        self._used = USED
        self._worse = 1.0
        self._young = 0
        self._waited = 0.0

    def add(self, seen: Seen, row_s: float, *, moved: bool) -> None:
        """Note the last period; `moved` if a move ended in it."""
        if seen.partitions is not None:
            now = seen.partitions()
            offered = (now.processed + now.queued).astype(np.float64)
            before = np.zeros_like(offered) if self._offered is None else self._offered
            new = np.maximum(0.0, offered - before)
            loads = new if self._loads is None else (1 - NEW) * self._loads + NEW * new
            self._offered, self._loads = offered, loads
            by_worker = np.bincount(now.owners, loads, seen.workers)
            self._imbalance = float(by_worker.max() / by_worker.mean()) if loads.any() else 1.0
        elif seen.processed.sum() > 10 * seen.workers:
            self._imbalance = (1 - NEW) * self._imbalance + NEW * seen.imbalance
        waits, waited = seen.waiting * row_s, self._waited
        self._waited = waits
        if moved:
            self._young = SHOWN
            return
        enough = seen.workers * seen.collected_s
        if min(waits, waited) > enough:
            used = float(seen.busy_s.sum()) / enough * self._imbalance
            self._used = (1 - NEW) * self._used + NEW * min(1.0, max(LEAST_USED, used))
        if self._young and self._loads is not None and self._loads.any():
            self._young -= 1
            best = float(self._least_imbalance(np.array([seen.workers]))[0])
            self._worse = (1 - NEW) * self._worse + NEW * max(1.0, self._imbalance / best)

    def busy(self, counts: NDArray[np.int64]) -> Floats:
        """Workers that can be busy with each option.

        Args:
            counts: The present number of workers, for to stay, then others.
        """
        imbalance = self._least_imbalance(counts) * self._worse
        imbalance[0] = self._imbalance
        return np.asarray(counts * self._used / np.maximum(1.0, imbalance))

    def _least_imbalance(self, counts: NDArray[np.int64]) -> Floats:
        """What the hottest partition leaves at least; without partitions, what is measured."""
        if self._loads is None:
            return np.full(len(counts), self._imbalance)
        total = float(self._loads.sum())
        return np.asarray(np.maximum(1.0, counts * (float(self._loads.max()) / total if total else 0.0)))
