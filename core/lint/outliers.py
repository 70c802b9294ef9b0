"""Detect outlier dates: a few rows far from all others in time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.lint.thresholds import OUTLIER_GAP, OUTLIER_NEIGHBOUR_GAP, OUTLIERS

SPACINGS = 100
"""A gap below this multiple of the mean row distance may be random."""


@dataclass(frozen=True, slots=True)
class Outliers:
    """Outliers at both ends of a trace, and the times between."""

    before: int
    after: int
    first_us: int
    last_us: int

    @property
    def rows(self) -> int:
        """Number of outliers."""
        return self.before + self.after


def outliers(head_us: Sequence[int], tail_us: Sequence[int], rows: int) -> Outliers:
    """Rows at both ends beyond an unusual gap.

    Args:
        head_us, tail_us: First and last times of the trace, ascending; `OUTLIERS` + 1 of each, or all rows.
    """
    most = min(OUTLIERS, rows // 100, len(head_us) - 1)
    if most < 1:
        return Outliers(0, 0, head_us[0], tail_us[-1])
    head, tail = np.array(head_us[: most + 1]), np.array(tail_us[-most - 1 :])
    span = int(tail[0] - head[-1])
    # from the middle of the trace outwards
    gaps = (np.diff(head)[::-1], np.diff(tail))
    wide = max(int(gap.max()) for gap in gaps)
    if span <= 0 or wide < OUTLIER_GAP * span:
        return Outliers(0, 0, head_us[0], tail_us[-1])
    least = max(OUTLIER_NEIGHBOUR_GAP * span, SPACINGS * span / rows)
    cut = [int(np.argmax(gap >= least)) if (gap >= least).any() else most for gap in gaps]
    before, after = most - cut[0], most - cut[1]
    return Outliers(before, after, int(head[before]), int(tail[-1 - after]))
