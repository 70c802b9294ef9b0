"""State of a stage: growth, expiry, and a windowed equi-join.

Tuples of two sides are joined on their group if they are at most a window apart. The tuple that is processed later
finds the other, so every processing order gives the same matches. Rows arrive in time order, so a tuple is dropped once
it is more than a window older than the oldest row that waits.

Source: ESJ, adaptive workload.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.arrivals import Chunk
from adapt.core.stage.records.arrays import NONE


@dataclass(frozen=True, slots=True)
class Growth:
    """Growth and expiry of the state of a group.

    State begins empty. A processed row enters the state of its group, and leaves it once it is more than a window older
    than the watermark: the event time of the oldest row that has arrived and is not processed. A group without rows
    takes no state.
    """

    group_bytes: int = 0  # state of a group with rows, besides the rows
    row_bytes: int = 0  # state of a row
    sized: bool = False  # whether each row has its own size too (`Chunk.sizes`)
    window: int | None = None  # how long rows stay, in the unit of `Chunk.times`; None, forever
    rows_per_group: int = 0  # last rows that a group keeps; 0, all

    def __post_init__(self) -> None:
        least = min(self.group_bytes, self.row_bytes, self.rows_per_group, self.window or 0)
        if least < 0:
            raise UsageError(
                f"state cannot shrink as rows are added; sizes and windows must be at least 0 (got {least})"
            )
        if self.rows_per_group and self.is_ranked:
            raise UsageError("a group keeps its last rows, or those of a window of time or with own sizes, not both")

    @property
    def is_ranked(self) -> bool:
        """Whether the state depends on times or sizes of single rows."""
        return self.sized or self.window is not None


NEITHER = -1
"""The side of a tuple without matches, such as one without a key."""


@dataclass(frozen=True, slots=True)
class Join:
    """A windowed equi-join on the group."""

    window: int  # largest distance of matching tuples, inclusive, in the unit of `Chunk.times`; at least 0
    match_s: float = 0.0  # CPU seconds per match, on top of the tuple's own cost

    def __post_init__(self) -> None:
        if self.window < 0:
            raise UsageError(f"the join window must be at least 0 (got {self.window})")
        if not 0 <= self.match_s < np.inf:
            raise UsageError(f"the CPU time per match must be finite and at least 0 (got {self.match_s:g} s)")


class SerialJoin:
    """Counts the matches of each tuple with earlier ones, in O(1)."""

    def __init__(self, join: Join, groups: int) -> None:
        """Start with an empty window."""
        self._window = join.window
        self._live: NDArray[np.int64] = np.zeros(2 * groups, np.int64)
        self._times: NDArray[np.int64] = np.empty(0, np.int64)
        self._lists: NDArray[np.int64] = np.empty(0, np.int64)

    def matches(self, chunk: Chunk) -> NDArray[np.int64]:
        """Matches of each tuple of the next chunk, shape (rows,)."""
        times, lists = join_lists(chunk, int(self._times[-1]) if len(self._times) else None)
        before = len(self._times)
        self._times, self._lists = np.concatenate([self._times, times]), np.concatenate([self._lists, lists])
        found = np.empty(len(times), np.int64)
        passed = _count_in_order(self._times, self._lists, before, self._window, self._live, found)
        self._times, self._lists = self._times[passed:], self._lists[passed:]
        return found


def join_lists(chunk: Chunk, last: int | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Times and lists of the rows of a join.

    The list of a row is that of its group and side, or `NONE`.

    Args:
        last: Time of the row before; None, unknown.
    """
    if chunk.sides is None or chunk.times is None or not len(chunk.sides) == len(chunk.times) == len(chunk.groups):
        raise BadInput("a join needs a side and a time for every row")
    if chunk.numbers is not None:
        raise BadInput("rows of a join are numbered by rank; omit `numbers`")
    sides, times = np.asarray(chunk.sides, np.int64), np.asarray(chunk.times, np.int64)
    if len(sides) and not NEITHER <= sides.min() <= sides.max() <= 1:
        raise BadInput(f"a join has sides 0 and 1, and {NEITHER} for neither (got {sides.max()})")
    if (np.diff(times) < 0).any() or (last is not None and len(times) and times[0] < last):
        raise BadInput("a row of a join is before its predecessor; sort by time")
    return times, np.where(sides < 0, NONE, 2 * np.asarray(chunk.groups, np.int64) + sides)


@compiled
def _count_in_order(
    times: NDArray[np.int64],
    lists: NDArray[np.int64],
    first: int,
    window: int,
    live: NDArray[np.int64],
    found: NDArray[np.int64],
) -> int:
    """Matches of each row from `first` on with earlier rows; returns the first row still in the window."""
    passed = 0
    for row in range(first, len(times)):
        while times[passed] < times[row] - window:
            if lists[passed] != NONE:
                live[lists[passed]] -= 1
            passed += 1
        found[row - first] = 0
        if lists[row] != NONE:
            found[row - first] = live[lists[row] ^ 1]
            live[lists[row]] += 1
    return passed
