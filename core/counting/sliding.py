"""Lossy counting over a sliding window, with staggered counters.

Source: partitioning functions, section 4.1.2 and Figure 2.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.counting.exact import KeyCounts
from adapt.core.counting.frequencies import Counts
from adapt.core.counting.lossy import (
    FLUSH_ROWS,
    CounterState,
    LossyCounter,
    LossySummary,
    check_epsilon,
    check_weights,
    counted_rows,
    window_of,
)
from adapt.core.counting.timeline import MOST_PER_LENGTH, Panes
from adapt.core.errors import BadInput, UsageError
from adapt.core.stream import Weight
from adapt.core.units.row_or_time_span import Length

DEFAULT_COUNTERS = 3

ROWS_PER_KEY = 2
"""Rows of a derived window per distinct key."""

LEAST_BUCKETS = 10
"""Least buckets of 1 / epsilon rows in a derived window. A key whose share is ten times epsilon, delta, then has 100
rows."""


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """The last `length` of a stream, plus up to one pane.

    x counters start one pane, W / (x - 1), apart. The oldest is in use; when the next one has seen W, the oldest
    restarts. So the counter in use has seen between W and (1 + 1/(x - 1)) W, and less only before the first W.
    """

    length: Length  # W, in rows or in time
    counters: int = DEFAULT_COUNTERS  # x, from 2

    def __post_init__(self) -> None:
        if not 2 <= self.counters <= MOST_PER_LENGTH + 1:
            raise UsageError(
                f"counters must be from 2 to {MOST_PER_LENGTH + 1} (got {self.counters});"
                " 3 overshoot the window by at most half"
            )
        Panes(self.length, self.counters - 1)  # checks the length

    @classmethod
    def derived(cls, distinct: int, epsilon: float) -> "SlidingWindow":
        """Window of a constant factor of the distinct keys, |D|.

        Source: partitioning functions, section 4.1.2, which leaves the factor open. Ours: on Zipf streams (z = 1, 10^6
        keys), a longer window balances no better; with few keys, the rows of a key at delta decide.
        """
        rows = max(ROWS_PER_KEY * distinct, LEAST_BUCKETS * window_of(epsilon))
        return cls(Length(rows, in_rows=True))

    @property
    def panes(self) -> Panes:
        """The panes at whose starts counters start."""
        return Panes(self.length, self.counters - 1)

    def in_use(self, pane: int) -> int:
        """The pane in which the counter in use during `pane` started."""
        return max(pane - (self.counters - 1), 0)

    def check_bucket(self, epsilon: float, rows_per_us: float | None = None) -> None:
        """Refuse a window shorter than a bucket of lossy counting.

        Args:
            rows_per_us: The stream's mean rate, needed to check a window in time.
        """
        bucket = window_of(epsilon)
        held = float(self.length.size) if self.length.in_rows else self.length.size * (rows_per_us or np.inf)
        if held < bucket:
            about = "" if self.length.in_rows else f" (about {held:,.0f} rows at this stream's rate)"
            coarser = f", or an epsilon of at least {_rounded_up(1 / held):g}" if held > 1 else ""
            raise UsageError(
                f"window {self.length}{about} must have at least {bucket:,} rows (1 / epsilon); give a longer"
                f" window{coarser}"
            )


def _rounded_up(share: float) -> float:
    """The number rounded up to two digits."""
    digits = 1 - math.floor(math.log10(share))
    return math.ceil(round(share * 10.0**digits, 6)) / 10.0**digits


@dataclass(frozen=True, slots=True)
class SlidingState:
    """A sliding counter between two rows."""

    counters: Mapping[int, CounterState]  # by the pane in which each started
    pane: int  # the pane of the last row
    next: int  # rows so far, for a window in rows
    origin: int | None  # time of the first row in microseconds, for a window in time; None before it
    last: int | None  # time of the last row


class SlidingLossyCounter:
    """Lossy counting of the last rows or hours of a stream."""

    def __init__(
        self,
        epsilon: float,
        kind: pa.DataType,
        window: SlidingWindow,
        weight: Weight = Weight.COUNT,
        *,
        flush_rows: int = FLUSH_ROWS,
    ) -> None:
        """Empty counters.

        Args:
            epsilon: The error as a share of the window, in (0, 1).
        """
        check_epsilon(epsilon)
        window.check_bucket(epsilon)
        self.epsilon, self.window = epsilon, window
        self._of_counter = (epsilon, kind, weight, flush_rows)
        self._counters = {0: self._new()}
        self._rows: list[tuple[pa.Array, Counts | None]] = []
        self._rows_held = 0
        self._pane = 0
        self._next = 0
        self._origin: int | None = None
        self._last: int | None = None

    @property
    def full(self) -> bool:
        """Whether the counter in use has seen a full window."""
        if self.window.length.in_rows:
            return self._next >= self.window.length.size
        return self._pane >= self.window.counters - 1

    def update(self, keys: pa.Array, weights: Counts | None = None, times_us: NDArray[np.int64] | None = None) -> None:
        """Count the next rows.

        Args:
            keys: Shape (rows,).
            weights: Row weights, shape (rows,); None if each row weighs 1.
            times_us: Row times in microseconds, in order; shape (rows,). Required by a window in time.
        """
        check_weights(self._of_counter[2], len(keys), weights)
        if not len(keys):
            return
        numbers = self.window.panes.numbers(self._positions(len(keys), times_us))
        cuts = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
        for first, end in pairwise(cuts):
            self._enter(int(numbers[first]))
            while first < end:
                due = min(counter.due for counter in self._counters.values())
                until = min(end, first + due - self._rows_held)
                self._rows.append((keys.slice(first, until - first), None if weights is None else weights[first:until]))
                self._rows_held += until - first
                if self._rows_held == due:
                    self._hand_out()
                first = until

    def summary(self) -> LossySummary:
        """The summary of the counter in use."""
        return self._counters[self.window.in_use(self._pane)].summary(self._held())

    def state(self) -> SlidingState:
        """What the counter holds, to `resume` from.

        The held rows go to the counters; sums of floats may then round otherwise than without this call.
        """
        self._hand_out()
        counters = {start: counter.state() for start, counter in self._counters.items()}
        return SlidingState(counters, self._pane, self._next, self._origin, self._last)

    def resume(self, state: SlidingState) -> None:
        """Continue from the state of a counter with the same parameters."""
        self._pane, self._next, self._origin, self._last = state.pane, state.next, state.origin, state.last
        self._counters = {start: self._new() for start in state.counters}
        for start, counter in self._counters.items():
            counter.resume(state.counters[start])

    def _held(self) -> KeyCounts | None:
        """The rows that no counter has yet, counted."""
        if not self._rows:
            return None
        kind = self._of_counter[1]
        counted = counted_rows(self._rows, kind)
        return replace(counted, keys=counted.keys.cast(kind))

    def _hand_out(self) -> None:
        """Give the held rows to all counters, counted once."""
        counted = self._held()
        self._rows, self._rows_held = [], 0
        if counted is not None:
            for counter in self._counters.values():
                counter.add(counted)

    def _positions(self, rows: int, times_us: NDArray[np.int64] | None) -> NDArray[np.int64]:
        if self.window.length.in_rows:
            first, self._next = self._next, self._next + rows
            return np.arange(first, self._next, dtype=np.int64)
        if times_us is None:
            raise ValueError("a window in time needs the times of the rows")
        if len(times_us) != rows:
            raise ValueError(f"{len(times_us)} times do not fit {rows} rows")
        if (np.diff(times_us, prepend=times_us[0] if self._last is None else self._last) < 0).any():
            raise BadInput("rows must be in time order for a sliding window; a row is earlier than the one before it")
        self._origin = int(times_us[0]) if self._origin is None else self._origin
        self._last = int(times_us[-1])
        return times_us - self._origin

    def _enter(self, pane: int) -> None:
        """Start the counters of the panes up to this one, and drop the unused ones."""
        if pane > self._pane:
            self._hand_out()
        oldest = self.window.in_use(pane)
        self._counters = {start: self._counters.get(start) or self._new() for start in range(oldest, pane + 1)}
        self._pane = pane

    def _new(self) -> LossyCounter:
        epsilon, kind, weight, flush_rows = self._of_counter
        return LossyCounter(epsilon, kind, weight, flush_rows=flush_rows)
