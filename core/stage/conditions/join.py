"""A windowed equi-join as the operator of a stage.

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
from adapt.core.stage.records.arrays import Arrays, Records
from adapt.core.stage.records.codes import NONE, SERVING
from adapt.core.stage.records.tuples import JOINED

NEITHER = -1
"""The side of a tuple without matches, such as one without a key."""

LEAST_ROWS = 1024
"""Smallest capacity of the table of rows."""


@dataclass(frozen=True, slots=True)
class Join:
    """A windowed equi-join on the group.

    Attributes:
        window: Largest distance of matching tuples, inclusive, in the unit of `Chunk.times`; at least 0.
        match_s: CPU seconds per match, on top of the tuple's own cost.

    Raises:
        UsageError: A number is out of range.
    """

    window: int
    match_s: float = 0.0

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
        """Matches of each tuple of the next chunk, shape (rows,).

        Raises:
            BadInput: Sides or times are missing or invalid.
        """
        times, lists = _checked(chunk, int(self._times[-1]) if len(self._times) else None)
        before = len(self._times)
        self._times, self._lists = np.concatenate([self._times, times]), np.concatenate([self._lists, lists])
        found = np.empty(len(times), np.int64)
        passed = _count_in_order(self._times, self._lists, before, self._window, self._live, found)
        self._times, self._lists = self._times[passed:], self._lists[passed:]
        return found


class JoinedRows:
    """Rows of a join that may still match, by rank."""

    def __init__(self, join: Join, arrays: Arrays) -> None:
        """Start with an empty window."""
        self._join = join
        self._arrays = arrays
        self._serial = SerialJoin(join, int(arrays.world["groups"]))
        self._read = 0
        self._last = 0

    def read(self, chunk: Chunk) -> None:
        """Append rows, and drop those that cannot match any more.

        Raises:
            BadInput: Sides or times are missing or invalid.
        """
        matches = self._serial.matches(chunk)
        times, lists = _checked(chunk, None)
        world, known = self._arrays.world, self._arrays["joined"]
        first, used = int(world["joined_first"]), self._read - int(world["joined_first"])
        if used + len(times) > len(known):
            gone = int(np.searchsorted(known["time"][:used], self._earliest(), "left"))
            left = used - gone
            enlarged = np.empty(max(LEAST_ROWS, 2 * (left + len(times))), JOINED)
            enlarged[:left] = known[gone:used]
            self._arrays.put("joined", enlarged)
            world["joined_first"] = first + gone
            known, used = self._arrays["joined"], left
        added = known[used : used + len(times)]
        added["time"], added["list"], added["matches"], added["link"] = times, lists, matches, NONE
        self._read += len(times)
        self._last = int(times[-1]) if len(times) else self._last

    def match_s(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """CPU seconds for the matches of rows with earlier rows.

        Args:
            numbers: Ranks of rows that are still kept, shape (rows,).
        """
        known = self._arrays["joined"]["matches"][numbers - int(self._arrays.world["joined_first"])]
        return np.asarray(known * self._join.match_s, np.float64)

    def held(self, groups: NDArray[np.int64]) -> int:
        """Join state of these groups: processed tuples that may still match."""
        newest, first = self._arrays["newest"].view(np.int64), int(self._arrays.world["joined_first"])
        return int(_count_held(newest, self._arrays["joined"], np.ascontiguousarray(groups), first, self._earliest()))

    def _earliest(self) -> int:
        """Time before which rows are not needed: a window before the oldest unprocessed row."""
        oldest = self._oldest()
        known, first = self._arrays["joined"]["time"], int(self._arrays.world["joined_first"])
        return (self._last if oldest >= self._read else int(known[oldest - first])) - self._join.window

    def _oldest(self) -> int:
        """Smallest rank of an unprocessed row."""
        producers, rows = self._arrays["producer"], self._arrays["row"]
        unread = producers["row"][producers["row"] < producers["rows_end"]]
        waiting = [rows["number"][unread], self._in_pools(), self._in_connections()]
        workers = self._arrays["worker"]
        waiting.append(workers["number"][workers["doing"] == SERVING])
        return min((int(numbers.min()) for numbers in waiting if len(numbers)), default=self._read)

    def _in_pools(self) -> NDArray[np.int64]:
        """The oldest row of each flow."""
        world = self._arrays.world
        heads = self._arrays["flow"]["head"].reshape(int(world["workers"]), int(world["partitions"]))
        producers, partitions = np.nonzero(heads != NONE)
        places = producers * int(world["places"]) + heads[producers, partitions]
        return np.asarray(self._arrays["pooled"]["number"][places])

    def _in_connections(self) -> NDArray[np.int64]:
        connections, credits = self._arrays["connection"], int(self._arrays.world["credits"])
        passed = (np.arange(credits) - connections["first"][:, None]) % credits
        numbers = self._arrays["queued"]["number"].reshape(-1, credits)
        return np.asarray(numbers[passed < connections["count"][:, None]])


def _checked(chunk: Chunk, last: int | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Times, and the list of each row by group and side, or `NONE`."""
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


@compiled
def _count_held(
    newest: NDArray[np.int64], joined: Records, groups: NDArray[np.int64], first: int, earliest: int
) -> int:
    """Rows of these groups from a time on."""
    held = 0
    for group in groups:
        for side in range(2):
            at = newest[2 * group + side]
            while at >= first and joined[at - first].time >= earliest:
                held += 1
                at = joined[at - first].link
    return held
