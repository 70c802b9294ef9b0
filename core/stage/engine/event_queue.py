"""Event queue of actions, ordered by time."""

from collections.abc import Callable
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np

Action: TypeAlias = Callable[[], None]
"""A scheduled action."""


class Agenda:
    """Event queue ordered by (time, insertion)."""

    def __init__(self) -> None:
        """An empty queue."""
        self._entries: list[tuple[float, int, Action]] = []
        self._entered = 0

    @property
    def next_s(self) -> float:
        """Time of the next action; infinite if the queue is empty."""
        return self._entries[0][0] if self._entries else np.inf

    def at(self, time_s: float, action: Action) -> None:
        """Schedule an action."""
        heappush(self._entries, (time_s, self._entered, action))
        self._entered += 1

    def take(self) -> Action:
        """Remove and return the next action."""
        return heappop(self._entries)[2]
