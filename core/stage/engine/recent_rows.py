"""Tables of recent rows and of spilled tuples."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput
from adapt.core.stage.conditions.arrivals import Chunk
from adapt.core.stage.conditions.growth import Growth, Join, SerialJoin, join_lists
from adapt.core.stage.engine.kernel.growth import append_rows, expire, lose, move_rows
from adapt.core.stage.records.arrays import NONE, SERVING, UNUSED, Arrays
from adapt.core.stage.records.world import SPILLED

LEAST_ROWS = 1024
"""Smallest capacity of the table."""


class RecentRows:
    """Rows in the state, and those that wait, by rank."""

    def __init__(self, growth: Growth, join: Join | None, arrays: Arrays, interrupted: set[int]) -> None:
        """Start with an empty table.

        Args:
            growth: How the state of groups grows.
            join: The join, whose matches are counted ahead; None, no join.
            interrupted: Dead workers whose tuple in service is not lost.
        """
        self._growth = growth
        self._join = join
        self._arrays = arrays
        self._interrupted = interrupted
        self._serial = None if join is None else SerialJoin(join, int(arrays.world["groups"]))
        self._matches: NDArray[np.int64] = np.empty(0, np.int64)
        """Matches of each row of a join with rows before it, if all are there; in a ring, as the table."""
        self._read = 0

    def read(self, chunk: Chunk) -> None:
        """Append rows, and drop those that have expired."""
        matches = None if self._serial is None else self._serial.matches(chunk)
        times, lists, sizes = self._columns(chunk)
        world, end = self._arrays.world, self._read + len(times)
        if end - int(world["joined_first"]) > len(self._arrays["joined"]):
            self.expire()
            first = self._oldest() if self._growth.window is None else int(world["expired"])
            world["joined_first"] = first
            world["expired"] = max(int(world["expired"]), first)
            self._make_room(first, end)
        append_rows(self._arrays.worlds, self._read, times, lists, sizes)
        if matches is not None:
            self._matches[np.arange(self._read, end) & len(self._matches) - 1] = matches
        self._read = end

    def _make_room(self, first: int, end: int) -> None:
        """Enlarge the table if it has no room for rows of these ranks."""
        known, known_matches = self._arrays["joined"], self._matches
        if end - first <= len(known):
            return
        places = max(LEAST_ROWS, 2 ** int(end - first - 1).bit_length())
        self._enlarge("joined", places, first)
        if self._join is not None or self._growth.sized:
            self._enlarge("linked", places, first)
        self._arrays.world["joined_last"] = places - 1
        if self._join is not None:
            kept = np.arange(first, self._read)
            self._matches = np.empty(places, np.int64)
            self._matches[kept & places - 1] = known_matches[kept & len(known) - 1]

    def _enlarge(self, name: str, places: int, first: int) -> None:
        known = self._arrays[name]
        self._arrays.put(name, np.empty(places, known.dtype))
        if len(known):
            move_rows(known, self._arrays[name], first, self._read)

    def match_s(self, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
        """CPU seconds for the matches of rows with earlier rows.

        Args:
            numbers: Ranks of rows that are still kept, shape (rows,).
        """
        known = self._matches[numbers & len(self._matches) - 1]
        return np.asarray(known * (0.0 if self._join is None else self._join.match_s), np.float64)

    def expire(self) -> None:
        """Remove rows a window older than the watermark from the state."""
        if self._growth.window is not None and self._read:
            known = self._arrays["joined"]
            watermark = int(known["time"][self._oldest() & len(known) - 1])
            expire(self._arrays.worlds, watermark - self._growth.window, self._read)

    def lose(self, partition: int) -> None:
        """Mark the rows of a partition as not in its state."""
        lose(self._arrays.worlds, partition, self._read)

    def _columns(self, chunk: Chunk) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Time, list and size of each row."""
        rows = len(chunk.groups)
        sizes = np.zeros(rows, np.int64)
        if self._growth.sized:
            if chunk.sizes is None or len(chunk.sizes) != rows or (rows and chunk.sizes.min() < 0):
                raise BadInput("state by the size of rows needs a size of at least 0 for every row")
            sizes = np.asarray(chunk.sizes, np.int64)
        if self._join is not None:
            return *join_lists(chunk, None), sizes
        times = np.zeros(rows, np.int64)
        if self._growth.window is not None:
            if chunk.times is None or len(chunk.times) != rows or (np.diff(chunk.times) < 0).any():
                raise BadInput("a window of state needs a time for every row, in order; sort by time")
            times = np.asarray(chunk.times, np.int64)
        if chunk.numbers is not None:
            raise BadInput("rows of a window are numbered by rank; omit `numbers`")
        return times, 2 * np.asarray(chunk.groups, np.int64), sizes

    def _oldest(self) -> int:
        """Rank of the oldest row that waits; without any, of the last that arrived."""
        producers, rows = self._arrays["producer"], self._arrays["row"]
        unread = rows[producers["row"][producers["row"] < producers["rows_end"]]]
        due = unread["due"] <= self._arrays.world["now"]
        workers = self._arrays["worker"]
        at_hand = workers["doing"] == SERVING
        at_hand[list(self._interrupted)] = True
        waiting = [unread["number"][due], self._first_of("flow"), self._in_connections(), workers["number"][at_hand]]
        waiting += [self._first_of("kept"), self._arrays["spilled"]["number"]]
        oldest = min((int(numbers.min()) for numbers in waiting if len(numbers)), default=self._read)
        arrived = int(unread["number"][~due].min()) if not due.all() else self._read
        return max(0, min(oldest, arrived - 1, self._read - 1))

    def _first_of(self, name: str) -> NDArray[np.int64]:
        """The oldest row of each list of a producer and partition."""
        world, heads = self._arrays.world, self._arrays[name]["head"]
        lists = np.flatnonzero(heads != NONE)
        places = lists // int(world["partitions"]) * int(world["places"]) + heads[lists]
        return np.asarray(self._arrays["pooled"]["number"][places])

    def _in_connections(self) -> NDArray[np.int64]:
        connections, credits = self._arrays["connection"], int(self._arrays.world["credits"])
        passed = (np.arange(credits) - connections["first"][:, None]) % credits
        numbers = self._arrays["queued"]["number"].reshape(-1, credits)
        return np.asarray(numbers[passed < connections["count"][:, None]])


def spilled_groups(arrays: Arrays, worker: int) -> list[int]:
    """Group of each spilled tuple of a worker's partitions."""
    owned = np.flatnonzero(arrays["partition"]["owner"] == worker).tolist()
    found: list[int] = arrays["spilled"]["group"][places_of(arrays, owned)].tolist()
    return found


def places_of(arrays: Arrays, partitions: list[int]) -> list[int]:
    """Places of the spilled tuples of partitions."""
    links, found = arrays["spilled"]["link"], []
    for place in arrays["partition"]["spill_head"][partitions].tolist():
        while place != NONE:
            found.append(place)
            place = int(links[place])
    return found


def forget_spilled(arrays: Arrays, partition: int) -> int:
    """Drop the spilled input of a partition; returns the number of tuples."""
    record, spilled = arrays["partition"][partition], arrays["spilled"]
    count = int(record["spilled"])
    if record["spill_head"] != NONE:
        spilled["number"][places_of(arrays, [partition])] = UNUSED
        spilled["link"][record["spill_tail"]] = arrays.world["spill_free"]
        arrays.world["spill_free"] = record["spill_head"]
    record["spill_head"] = record["spill_tail"] = NONE
    record["spilled"] = 0
    return count


def enlarge_spill(arrays: Arrays) -> None:
    """Double the capacity for spilled tuples."""
    old = arrays["spilled"]
    more = max(1024, len(old))
    enlarged = np.concatenate([old, np.zeros(more, SPILLED)])
    enlarged["number"][len(old) :] = UNUSED
    enlarged["link"][len(old) :] = np.arange(len(old) + 1, len(old) + more + 1)
    enlarged["link"][-1] = NONE
    arrays.put("spilled", enlarged)
    arrays.world["spill_free"] = len(old)
