"""Forecast of a load from similar times of its own past."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.elastic.planning.horizon import Outlook

STAGES = 16
"""Stages of the horizon."""

KEPT = 1024
"""Control periods that are remembered."""

LOADS = 12
"""Most similar times of the past whose continuations are taken as possible."""

SHORT, LONG = 2, 8
"""Periods that make the level, and the level before it."""

UNSEEN = (0.7, 1.0, 1.5)
"""Growth that counts as seen once each while the past is short, so that it does not promise a still load."""

Floats = NDArray[np.float64]


class Past:
    """Rates of a stream, one per control period.

    What followed the times that were most like now, in level and trend, is what may come; so a burst that ends as
    others did, or a time of day, is foreseen once it has been seen.
    """

    def __init__(self) -> None:
        """Start without a past."""
        self._rates: Floats = np.empty(0)
        self._last_s = 0.0

    def add(self, at_s: float, period_s: float, rate: float) -> None:
        """Note the rate of the last period; fill a gap linearly."""
        gap = max(1, round((at_s - self._last_s) / period_s)) if len(self._rates) else 1
        last = self._rates[-1] if len(self._rates) else rate
        filled = last + (rate - last) * np.arange(1, gap + 1) / gap
        self._rates = np.concatenate([self._rates, filled[-KEPT:]])[-KEPT:]
        self._last_s = at_s

    def outlook(self, period_s: float, stage: int) -> Outlook:
        """Loads that may come, in worker seconds if rates are in workers.

        Args:
            stage: Length of a stage in periods.
        """
        rates, ends = self._rates, np.arange(1, len(self._rates) + 1)
        sums = np.concatenate([[0.0], np.cumsum(rates)])
        short = (sums[ends] - sums[np.maximum(0, ends - SHORT)]) / np.minimum(ends, SHORT)
        long = (sums[ends] - sums[np.maximum(0, ends - LONG)]) / np.minimum(ends, LONG)
        level = float(short[-1])
        apart = np.abs(short - level) + 0.5 * np.abs((short - long) - (short[-1] - long[-1]))
        followed = ends[: max(0, len(ends) - stage)]
        like = followed[np.argsort(apart[: len(followed)], kind="stable")[:LOADS]]
        cuts = np.minimum(like[:, None] + stage * np.arange(STAGES + 1), len(rates))
        known = np.diff(cuts, axis=1)
        means = np.where(known, np.diff(sums[cuts], axis=1) / np.maximum(known, 1), rates.mean())
        seen = np.maximum(0.0, means + (level - short[like - 1])[:, None] * 0.8 ** np.arange(STAGES))
        unseen = UNSEEN if len(like) < LOADS else ()
        grown = np.outer(unseen, np.full(STAGES, level if level > 0 else float(rates.mean())))
        return Outlook(stage * period_s, np.concatenate([seen, grown]) * stage * period_s)
