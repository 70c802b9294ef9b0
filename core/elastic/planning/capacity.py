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

AGES = 8
"""Classes of age of a placement, each as long in periods as all before it together."""

Floats = NDArray[np.float64]


class Capacity:
    """Workers that can be busy, by imbalance and a learned share.

    The share is learned where rows wait. The imbalance of the present placement is measured. That of a new one is what
    the hottest partition leaves at least, times how much worse than that own placements were, by their age. Both are
    means over the time ahead, in which placements get stale.
    """

    def __init__(self) -> None:
        """Start without measurements."""
        self._offered: Floats | None = None
        self._loads: Floats | None = None
        self._imbalance = 1.0
        self._used = USED
        self._worse: Floats = np.full(AGES, np.nan)
        self._age: int | None = None
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
            self._age = 0
        elif self._age is not None:
            self._age += 1
        enough = seen.workers * seen.collected_s
        if not moved and min(waits, waited) > enough:
            used = float(seen.busy_s.sum()) / enough * self._imbalance
            self._used = (1 - NEW) * self._used + NEW * min(1.0, max(LEAST_USED, used))
        if self._age is not None and self._loads is not None and self._loads.any():
            best = float(self._least_imbalance(np.array([seen.workers]))[0])
            worse, at = max(1.0, self._imbalance / best), _aged(self._age)
            before = self._worse[at]
            self._worse[at] = worse if np.isnan(before) else (1 - NEW) * before + NEW * worse

    def busy(self, counts: NDArray[np.int64], ahead: int) -> Floats:
        """Workers that can be busy with each option, on average ahead.

        Args:
            counts: The present number of workers, for to stay, then others.
            ahead: The time ahead in periods.
        """
        worse = self._worse_by_age()
        imbalance = self._least_imbalance(counts) * _mean(worse, 0, ahead)
        imbalance[0] = self._imbalance
        if self._age is not None:
            imbalance[0] *= max(1.0, _mean(worse, self._age, ahead) / worse[_aged(self._age)])
        return np.asarray(counts * self._used / np.maximum(1.0, imbalance))

    def _worse_by_age(self) -> Floats:
        """How much worse than the least imbalance; ages not seen yet are like the last one seen before them."""
        worse = np.concatenate([[1.0], self._worse])
        seen = np.maximum.accumulate(np.where(np.isnan(worse), 0, np.arange(len(worse))))
        return np.asarray(worse[seen][1:])

    def _least_imbalance(self, counts: NDArray[np.int64]) -> Floats:
        """What the hottest partition leaves at least; without partitions, what is measured."""
        if self._loads is None:
            return np.full(len(counts), self._imbalance)
        total = float(self._loads.sum())
        return np.asarray(np.maximum(1.0, counts * (float(self._loads.max()) / total if total else 0.0)))


def _aged(age: int) -> int:
    """Which of `AGES` an age in periods is."""
    return min(AGES - 1, (age + 1).bit_length() - 1)


def _mean(by_age: Floats, since: int, ahead: int) -> float:
    """Mean over the periods ahead of a placement of some age."""
    ages = np.minimum(AGES - 1, np.log2(np.arange(since + 1, since + 1 + ahead)).astype(np.int64))
    return float(by_age[ages].mean())
