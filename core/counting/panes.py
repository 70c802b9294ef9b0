"""Panes: equal parts of a stream that windows consist of."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.units.row_or_time_span import Length

MOST_PER_LENGTH = 24
"""The most panes per length; positions in microseconds then fit an int64."""


@dataclass(frozen=True, slots=True)
class Panes:
    """A grid of panes over row numbers or microseconds.

    Pane j begins at floor(j length / per_length). So any `per_length` consecutive panes are exactly one length,
    and pane sizes differ by at most one position.
    """

    length: Length  # the length of `per_length` panes
    per_length: int = 1  # panes per length, from 1 to `MOST_PER_LENGTH`

    def __post_init__(self) -> None:
        if not 1 <= self.per_length <= MOST_PER_LENGTH:
            raise UsageError(f"a window must have 1 to {MOST_PER_LENGTH} panes (got {self.per_length})")
        if self.length.size < self.per_length:
            raise UsageError(f"a length of {self.length} is too short for {self.per_length} panes")

    def numbers(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """The pane of each position; same shape."""
        return ((positions + 1) * self.per_length - 1) // self.length.size

    def start(self, number: int) -> int:
        """The first position of a pane."""
        return number * self.length.size // self.per_length
