"""Exact counts of the keys in a window of recent steps."""

from collections import deque

from adapt.core.counting.exact import KeyCounts, merge
from adapt.core.repartition.periods import Period
from adapt.core.units.row_or_time_span import Length


class RecentKeys:
    """Counts of the last steps that fill a window.

    A step leaves as a whole, once those after it fill the window; the last one stays.

    Attributes:
        full: Whether a whole window was counted.
    """

    def __init__(self, length: Length) -> None:
        """Start without rows."""
        self._length = length
        self._steps: deque[Period] = deque()
        self._rows = 0
        self._first_us: int | None = None
        self.full = False

    @property
    def is_empty(self) -> bool:
        """Whether no step was added."""
        return not self._steps

    def add(self, step: Period) -> None:
        """Add the next step."""
        self._first_us = step.start_us if self._first_us is None else self._first_us
        self._steps.append(step)
        self._rows += step.counted.rows

    def move_to(self, at_us: int) -> None:
        """End the window at a time, after its last step."""
        while len(self._steps) > 1 and self._is_filled_without(self._steps[0], at_us):
            self._rows -= self._steps.popleft().counted.rows
        past = self._rows if self._length.in_rows else at_us - (at_us if self._first_us is None else self._first_us)
        self.full = self.full or past >= self._length.size

    def counted(self) -> KeyCounts:
        """The keys of the window, which has a step."""
        return merge([step.counted for step in self._steps])

    def _is_filled_without(self, first: Period, at_us: int) -> bool:
        if self._length.in_rows:
            return self._rows - first.counted.rows >= self._length.size
        return first.end_us <= at_us - self._length.size
