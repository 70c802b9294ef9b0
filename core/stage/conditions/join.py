"""A windowed equi-join as the operator of a stage: what it is, and what is known of the rows that may still match.

Tuples of two sides are joined on their group if they are at most a window apart. Whoever is processed later finds the
other, so that every order of processing gives the same answers. A tuple is kept as long as one that is still to come
may match it: rows come in the order of time, so that nothing later than the oldest row that waits is needed than what
is a window before it.

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
"""The side of a tuple that matches none, such as one without a key."""

LEAST_ROWS = 1024
"""There is place for so many, at least."""


@dataclass(frozen=True, slots=True)
class Join:
    """Tuples of one group and of different sides match if they are at most a window apart.

    Attributes:
        window: How far apart, both ends included, in the unit of `Chunk.times`; from 0 up.
        match_s: CPU for each match of a tuple, beside what it costs by itself.

    Raises:
        UsageError: a number is out of its range.
    """

    window: int
    match_s: float = 0.0

    def __post_init__(self) -> None:
        if self.window < 0:
            raise UsageError(f"tuples cannot be {self.window} apart; give a join a window from 0 up")
        if not 0 <= self.match_s < np.inf:
            raise UsageError(f"a match cannot cost {self.match_s:g} s; give a time from 0 up")


class SerialJoin:
    """Counts the matches of a stream in the order of time: of each tuple with those before it, in O(1)."""

    def __init__(self, join: Join, groups: int) -> None:
        """Nothing was read."""
        self._window = join.window
        self._live: NDArray[np.int64] = np.zeros(2 * groups, np.int64)
        self._times: NDArray[np.int64] = np.empty(0, np.int64)
        self._lists: NDArray[np.int64] = np.empty(0, np.int64)

    def matches(self, chunk: Chunk) -> NDArray[np.int64]:
        """The matches of each tuple of the next chunk, which says sides and times, shape (rows,).

        Raises:
            BadInput: a side or a time cannot be.
        """
        times, lists = _checked(chunk, int(self._times[-1]) if len(self._times) else None)
        before = len(self._times)
        self._times, self._lists = np.concatenate([self._times, times]), np.concatenate([self._lists, lists])
        found = np.empty(len(times), np.int64)
        passed = _count_in_order(self._times, self._lists, before, self._window, self._live, found)
        self._times, self._lists = self._times[passed:], self._lists[passed:]
        return found


class JoinedRows:
    """The rows of a stage that joins, from the oldest that may still match to the last that was read, by their rank."""

    def __init__(self, join: Join, arrays: Arrays) -> None:
        """Nothing was read."""
        self._join = join
        self._arrays = arrays
        self._serial = SerialJoin(join, int(arrays.world["groups"]))
        self._read = 0
        self._last = 0

    def read(self, chunk: Chunk) -> None:
        """Rows that come after those that were read; those that nothing matches any more are forgotten.

        Raises:
            BadInput: they do not say sides and times, or these cannot be.
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
        """CPU for the matches that rows have with those before them, if all are there; of rows that are not forgotten.

        Args:
            numbers: Their ranks, shape (rows,).
        """
        known = self._arrays["joined"]["matches"][numbers - int(self._arrays.world["joined_first"])]
        return np.asarray(known * self._join.match_s, np.float64)

    def held(self, groups: NDArray[np.int64]) -> int:
        """Tuples of some groups that were processed and may still match: the state of the join."""
        newest, first = self._arrays["newest"].view(np.int64), int(self._arrays.world["joined_first"])
        return int(_count_held(newest, self._arrays["joined"], np.ascontiguousarray(groups), first, self._earliest()))

    def _earliest(self) -> int:
        """The time before which nothing is needed: a window before the oldest row that is not processed."""
        oldest = self._oldest()
        known, first = self._arrays["joined"]["time"], int(self._arrays.world["joined_first"])
        return (self._last if oldest >= self._read else int(known[oldest - first])) - self._join.window

    def _oldest(self) -> int:
        """The least rank of a row that is not processed."""
        producers, rows = self._arrays["producer"], self._arrays["row"]
        unread = producers["row"][producers["row"] < producers["rows_end"]]
        waiting = [rows["number"][unread], self._in_pools(), self._in_connections()]
        workers = self._arrays["worker"]
        waiting.append(workers["number"][workers["doing"] == SERVING])
        return min((int(numbers.min()) for numbers in waiting if len(numbers)), default=self._read)

    def _in_pools(self) -> NDArray[np.int64]:
        """The first of each flow, which is its oldest."""
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
    """Times, and the list of each row: that of its group and side, or none."""
    if chunk.sides is None or chunk.times is None or not len(chunk.sides) == len(chunk.times) == len(chunk.groups):
        raise BadInput("a stage that joins is given rows without sides or times; give one of each for every row")
    if chunk.numbers is not None:
        raise BadInput("rows that are joined are called by their rank; leave their numbers away")
    sides, times = np.asarray(chunk.sides, np.int64), np.asarray(chunk.times, np.int64)
    if len(sides) and not NEITHER <= sides.min() <= sides.max() <= 1:
        raise BadInput(f"a join has sides 0 and 1, and {NEITHER} for neither; there is a row of side {sides.max()}")
    if (np.diff(times) < 0).any() or (last is not None and len(times) and times[0] < last):
        raise BadInput("a row to be joined is before the one ahead of it; sort by time")
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
    """The matches of each row from `first` on with those before it; the first row that is not a window past."""
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
    """Rows in the lists of some groups, from a time on."""
    held = 0
    for group in groups:
        for side in range(2):
            at = newest[2 * group + side]
            while at >= first and joined[at - first].time >= earliest:
                held += 1
                at = joined[at - first].link
    return held
