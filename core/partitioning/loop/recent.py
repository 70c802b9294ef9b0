"""Sums over the last rows or hours of a stream."""

from collections import deque
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.units.row_or_time_span import Length


@dataclass(frozen=True, slots=True)
class _Part:
    last_us: float
    rows: int
    sums: Floats


class RecentSums:
    """Sums of the parts of a stream within a window.

    A part leaves as a whole, once those after it fill the window.
    """

    def __init__(self, window: Length, size: int) -> None:
        """Start without rows.

        Args:
            size: Numbers that are summed up.
        """
        self._window = window
        self._parts: deque[_Part] = deque()
        self._rows = 0
        self.sums: Floats = np.zeros(size)

    def add(self, sums: Floats, rows: int, last_us: float) -> None:
        """Add the next part; `last_us` is the time of its last row."""
        self._parts.append(_Part(last_us, rows, sums))
        self._rows, self.sums = self._rows + rows, self.sums + sums
        while self._has_left(self._parts[0]):
            left = self._parts.popleft()
            self._rows, self.sums = self._rows - left.rows, self.sums - left.sums

    def share_out(self, shares: Floats) -> None:
        """Divide all that is in the window anew.

        Args:
            shares: Of each number, not all 0; shape (size,), of any size.
        """
        shares = shares / shares.sum()
        self._parts = deque(_Part(part.last_us, part.rows, shares * part.sums.sum()) for part in self._parts)
        self.sums = shares * self.sums.sum()

    def _has_left(self, part: _Part) -> bool:
        if self._window.in_rows:
            return self._rows - part.rows >= self._window.size
        return self._parts[-1].last_us - part.last_us >= self._window.size
