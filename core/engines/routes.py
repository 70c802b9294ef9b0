"""Routes: integers that an engine's own hash maps to planned places."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Numbers: TypeAlias = NDArray[np.int32]


def least_numbers(places: int, place: Callable[[Numbers], Numbers]) -> Numbers:
    """The smallest number >= 0 that `place` maps to each place."""
    least = np.full(places, -1, np.int32)
    start, size = 0, 4 * places + 64
    while (least < 0).any():
        numbers = np.arange(start, start + size, dtype=np.int32)
        found, first = np.unique(place(numbers), return_index=True)
        new = least[found] < 0
        least[found[new]] = numbers[first[new]]
        start += size
    return least
