"""Panes: the equal stretches of a stream from which windows are put together."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.units.row_or_time_span import Length

MOST_PER_LENGTH = 24
"""No length is cut into more panes; positions stay within int64 so, in microseconds too."""


@dataclass(frozen=True, slots=True)
class Panes:
    """A grid of panes over positions: row numbers from 0, or microseconds since the first row.

    Pane j begins at floor(j length / per_length). So `per_length` panes in a row are exactly one length together,
    wherever they begin, and any two panes differ by one position at most.

    Attributes:
        length: Of `per_length` panes.
        per_length: How many panes are one length, from 1 to `MOST_PER_LENGTH`.

    Raises:
        UsageError: a pane would be empty.
    """

    length: Length
    per_length: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.per_length <= MOST_PER_LENGTH:
            raise UsageError(f"a window has from 1 to {MOST_PER_LENGTH} panes, not {self.per_length}")
        if self.length.size < self.per_length:
            raise UsageError(f"a length of {self.length} is too short to be cut into {self.per_length} panes")

    def numbers(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The pane of each position; same shape."""
        return ((positions + 1) * self.per_length - 1) // self.length.size

    def start(self, number: int) -> int:
        """The first position of a pane."""
        return number * self.length.size // self.per_length
