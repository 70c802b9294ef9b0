"""What is to be done at which time."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np

Action: TypeAlias = Callable[[], None]
"""Something that is done at a time."""


class Agenda:
    """Actions by their time; those of one time in the order in which they were entered."""

    def __init__(self) -> None:
        """An agenda with nothing on it."""
        self._entries: list[tuple[float, int, Action]] = []
        self._entered = 0

    @property
    def next_s(self) -> float:
        """The time of the next action; infinite if there is none."""
        return self._entries[0][0] if self._entries else np.inf

    def at(self, time_s: float, action: Action) -> None:
        """Enter an action."""
        heappush(self._entries, (time_s, self._entered, action))
        self._entered += 1

    def take(self) -> Action:
        """The next action, which is taken off."""
        return heappop(self._entries)[2]
