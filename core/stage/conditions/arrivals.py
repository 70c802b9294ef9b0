"""Sources of tuples: unbounded random draws, or rows of a stream."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.errors import BadInput
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.world import ROW


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Unbounded source of random groups, as fast as producers can send."""

    shares: NDArray[np.float64] | None = None  # weight of each group, at least 0, shape (groups,); None, all equal


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Consecutive rows of a stream, in order per producer."""

    groups: NDArray[Any]  # the group of each row, shape (rows,)
    producers: NDArray[Any]  # the worker of its producer, shape (rows,)
    # arrival time in seconds from the start, ascending; None, as soon as a producer accepts it
    due_s: NDArray[np.float64] | None = None
    cost_s: NDArray[np.float64] | None = None  # CPU seconds to process it; None, drawn
    # identity of the row and the value to aggregate; None, its rank among all rows
    numbers: NDArray[np.int64] | None = None
    sides: NDArray[np.int8] | None = None  # side of a join: 0, 1, or -1 for neither
    # event time of a row, ascending, in the unit of the window of a join or of the state
    times: NDArray[np.int64] | None = None
    sizes: NDArray[np.int64] | None = None  # state of the row in bytes, at least 0, where rows have sizes of their own

    def part(self, first: int, end: int) -> "Chunk":
        """Rows from `first` to before `end`."""
        return self.taken(slice(first, end))

    def taken(self, rows: slice | NDArray[np.int64]) -> "Chunk":
        """Some rows, or all in another order."""
        columns: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        cut: dict[str, Any] = {name: None if column is None else column[rows] for name, column in columns.items()}
        return Chunk(**cut)


@dataclass(frozen=True, slots=True)
class Rows:
    """A stream in chunks, read on demand and repeatable from the start."""

    chunks: Callable[[], Iterator[Chunk]]


Source: TypeAlias = Drawn | Rows


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """Input of a later stage of a DAG: emitted tuples."""

    shares: NDArray[np.float64] | None = None  # weight of each group, at least 0, shape (groups,); None, all equal


def alias_table(shares: NDArray[np.float64] | None, groups: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Alias table to draw groups by weight in constant time.

    Args:
        shares: Weight of each group; None, all equal.

    Returns:
        Thresholds out of 2^32 and aliases, each of shape (groups,).
    """
    whole = 2**32
    aliases = np.arange(groups, dtype=np.int32)
    if shares is None:
        return np.full(groups, whole), aliases
    if len(shares) != groups or not np.isfinite(shares).all() or shares.min() < 0 or not shares.sum() > 0:
        raise BadInput(
            f"shares need one finite weight of at least 0 per group, not all 0 (got {len(shares)} for {groups} groups)"
        )
    cells = np.ascontiguousarray(shares / shares.sum() * groups, np.float64)
    _fill_cells(cells, aliases)
    return np.rint(cells * whole).astype(np.int64), aliases


@compiled
def _fill_cells(cells: NDArray[np.float64], aliases: NDArray[np.int32]) -> None:
    """Top up each cell below 1 from one above it (Vose's method)."""
    order = np.empty(len(cells), np.int64)
    small, large = 0, len(cells)  # two stacks in one array, from both ends
    for at in range(len(cells)):
        if cells[at] < 1:
            order[small] = at
            small += 1
        else:
            large -= 1
            order[large] = at
    while small > 0 and large < len(cells):
        small -= 1
        less, more = order[small], order[large]
        aliases[less] = more
        cells[more] -= 1 - cells[less]
        if cells[more] < 1:
            large += 1
            order[small] = more
            small += 1
    for at in range(small):
        cells[order[at]] = 1
    for at in range(large, len(cells)):
        cells[order[at]] = 1


@compiled
def _join(
    rows: Records,
    read: tuple[NDArray[np.int32], NDArray[np.float64], NDArray[np.float64], NDArray[np.int64]],
    of_read: NDArray[np.int32],
    first: int,
    producers: Records,
    joined: Records,
) -> None:
    """Append the rows that were read to the remaining rows of each producer, producer by producer.

    Args:
        read: Groups, arrival times, costs and numbers; all but groups may be empty.
        first: Number of rows read before.
    """
    more = np.zeros(len(producers), np.int64)
    for producer in of_read:
        more[producer] += 1
    place = 0
    for number in range(len(producers)):
        producer = producers[number]
        start = place
        for row in range(producer.row, producer.rows_end):
            joined[place] = rows[row]
            place += 1
        producer.seen += start - producer.row
        producer.row = start
        producer.rows_end = place + more[number]
        more[number] = place
        place = producer.rows_end
    groups, due_s, cost_s, numbers = read
    for row in range(len(of_read)):
        of = of_read[row]
        new = joined[more[of]]
        new.group = groups[row]
        new.due = due_s[row] if len(due_s) else -np.inf
        new.cost = cost_s[row] if len(cost_s) else -1.0
        new.number = numbers[row] if len(numbers) else first + row
        more[of] += 1


@compiled
def _due_before(rows: Records, producers: Records, now: float) -> int:
    """Number of remaining rows that arrived before `now`, found by bisection."""
    found = 0
    for number in range(len(producers)):
        first, end = producers[number].row, producers[number].rows_end
        start = first
        while first < end:
            middle = (first + end) >> 1
            if rows[middle].due < now:
                first = middle + 1
            else:
                end = middle
        found += first - start
    return found


class Feed:
    """Rows read ahead for producers, and the rest of the stream."""

    def __init__(self, source: Rows, workers: int, groups: int, logs: NDArray[np.int32] | None = None) -> None:
        """Start at the first row.

        Args:
            logs: The producer of each group, if it has one, shape (groups,); None, rows name theirs.
        """
        self._logs = logs
        self._source = source
        self._chunks = enumerate(source.chunks())
        self._workers = workers
        self._groups = groups
        self._read = 0
        self._last = -np.inf
        self._ahead: Iterator[Chunk] | None = None
        self._known: NDArray[np.float64] = np.empty(0)
        self._passed = 0
        self._loaded = 0
        self.ended = False
        self.last_read: Chunk | None = None
        """The chunk read last; None at the end of the stream."""
        self.timed = True
        """Whether the last chunk has arrival times."""

    @property
    def horizon(self) -> float:
        """Lower bound of the arrival times not yet read."""
        return np.inf if self.ended else self._last

    def more(self, rows: Records, producers: Records) -> Records:
        """Read a chunk and append it to the remaining rows.

        Args:
            rows: Remaining rows, grouped by producer, in order.
            producers: First and last position of each producer's rows; updated for the returned rows.
        """
        numbered = next(self._chunks, None)
        self.last_read = numbered[1] if numbered else None
        if numbered is None:
            self.ended = True
            return rows
        self._loaded, chunk = numbered[0] + 1, numbered[1]
        first = self._read
        self._check(chunk)
        left = int((producers["rows_end"] - producers["row"]).sum())
        joined = np.empty(left + len(chunk.groups), ROW)
        of_read = chunk.producers if self._logs is None else self._logs[chunk.groups]
        columns = (
            np.ascontiguousarray(chunk.groups, np.int32),
            _column(chunk.due_s, np.float64),
            _column(chunk.cost_s, np.float64),
            _column(chunk.numbers, np.int64),
        )
        _join(rows, columns, np.ascontiguousarray(of_read, np.int32), first, producers, joined)
        return joined

    def end(self, producers: Records) -> None:
        """End the stream with the rows that producers have taken."""
        self._read -= int((producers["rows_end"] - producers["row"]).sum())
        producers["rows_end"] = producers["seen"] = producers["row"]
        self.ended = True

    def arrived(self, now: float, rows: Records, producers: Records) -> int:
        """Number of rows that arrived before `now`, pulled or not.

        Rows beyond the last chunk are counted by reading ahead without keeping them.
        """
        waiting = _due_before(rows, producers, now)
        pulled = self._read - int((producers["rows_end"] - producers["row"]).sum())
        return pulled + waiting + (0 if now < self.horizon else self._due_beyond(now))

    def _due_beyond(self, now: float) -> int:
        """Rows that were not yet read and arrived before `now`."""
        if self._ahead is None:
            self._ahead = islice(self._source.chunks(), self._loaded, None)
            self._passed = self._read
        while len(self._known) == 0 or self._known[-1] < now:
            chunk = next(self._ahead, None)
            self._passed += len(self._known)
            self._known = np.empty(0)
            if chunk is None or chunk.due_s is None:
                self._ahead = iter(())
                break
            self._known = chunk.due_s
        return max(0, self._passed + int(np.searchsorted(self._known, now, "left")) - self._read)

    def _check(self, chunk: Chunk) -> None:
        """Check the next rows, and count them."""
        count = len(chunk.groups)
        for name, given, end in (("group", chunk.groups, self._groups), ("producer", chunk.producers, self._workers)):
            if len(given) != count or (count and not 0 <= given.min() <= given.max() < end):
                raise BadInput(
                    f"after row {self._read:,} of the stream a row has a {name} outside 0 to {end - 1}, or none"
                )
        due_s = chunk.due_s
        if (
            due_s is not None
            and count
            and not (due_s[0] >= max(self._last, -1e300) and (due_s[1:] >= due_s[:-1]).all())
        ):
            raise BadInput(f"after row {self._read:,} of the stream a row arrives before its predecessor; sort by time")
        if chunk.cost_s is not None and not (chunk.cost_s >= 0).all():
            raise BadInput(f"after row {self._read:,} of the stream a row has a negative cost; fix the cost column")
        self._read += count
        self.timed = due_s is not None
        if count:
            self._last = -np.inf if due_s is None else float(due_s[-1])


def _column(values: NDArray[Any] | None, kind: Any) -> NDArray[Any]:
    """A column for compiled code; empty if there is none."""
    return np.empty(0, kind) if values is None else np.ascontiguousarray(values, kind)
