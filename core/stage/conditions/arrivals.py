"""Where tuples come from: drawn by shares without end, or rows of a stream in chunks."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.records.arrays import Records
from adapt.core.stage.records.tuples import ROW


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """Every producer draws groups by their shares, as fast as its tuples are taken.

    Attributes:
        shares: What each group weighs, from 0, shape (groups,); all alike if not given.
    """

    shares: NDArray[np.float64] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Consecutive rows of a stream. The rows of a producer keep their order.

    Attributes:
        groups: The group of each row, shape (rows,).
        producers: The worker of its producer, shape (rows,).
        due_s: When it arrives, in seconds from the start, rising; if not given, as soon as it can be taken.
        cost_s: CPU to process it; drawn if not given.
        numbers: What it is called and what is aggregated; the rank among all rows if not given.
        sides: 0 or 1, or -1 for neither, where rows are joined.
        times: When it happened, rising, in the unit of the join's window; likewise.
    """

    groups: NDArray[Any]
    producers: NDArray[Any]
    due_s: NDArray[np.float64] | None = None
    cost_s: NDArray[np.float64] | None = None
    numbers: NDArray[np.int64] | None = None
    sides: NDArray[np.int8] | None = None
    times: NDArray[np.int64] | None = None

    def part(self, first: int, end: int) -> "Chunk":
        """Its rows from one to before another."""
        columns: dict[str, Any] = {one.name: getattr(self, one.name) for one in fields(self)}
        cut: dict[str, Any] = {name: None if column is None else column[first:end] for name, column in columns.items()}
        return Chunk(**cut)


@dataclass(frozen=True, slots=True)
class Rows:
    """A stream in chunks, which are asked for as they are needed and can be asked for again from the start."""

    chunks: Callable[[], Iterator[Chunk]]


Source: TypeAlias = Drawn | Rows


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """Producers take what the consumers of the stage before them, at their workers, make of its tuples.

    Attributes:
        selectivity: Tuples of this stage for each of the one before, on average; from 0 up.
        shares: What each group weighs, from 0, shape (groups,); all alike if not given.
    """

    selectivity: float = 1.0
    shares: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.selectivity < np.inf:
            raise UsageError(f"a tuple cannot make {self.selectivity:g} others; give a selectivity from 0 up")


def alias_table(shares: NDArray[np.float64] | None, groups: int) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """For drawing groups in constant time: of 2^32, the draws in its cell that stay with a group, and who has the rest.

    Args:
        shares: What each group weighs; None, all alike.

    Returns:
        Thresholds and aliases, each of shape (groups,).

    Raises:
        BadInput: the shares are not one for each group, are negative or infinite, or are all 0.
    """
    whole = 2**32
    aliases = np.arange(groups, dtype=np.int32)
    if shares is None:
        return np.full(groups, whole), aliases
    if len(shares) != groups or not np.isfinite(shares).all() or shares.min() < 0 or not shares.sum() > 0:
        raise BadInput(
            f"{len(shares)} shares are given for {groups} groups; give one for each, from 0 up and not all 0"
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
def _join(rows: Records, read: Records, of_read: NDArray[np.int32], producers: Records, joined: Records) -> None:
    """Put the rows that each producer has left, then its rows of those that were read, one producer after the other."""
    more = np.zeros(len(producers), np.int64)
    for producer in of_read:
        more[producer] += 1
    place = 0
    for number in range(len(producers)):
        producer = producers[number]
        first = place
        for row in range(producer.row, producer.rows_end):
            joined[place] = rows[row]
            place += 1
        producer.row = first
        producer.rows_end = place + more[number]
        more[number] = place
        place = producer.rows_end
    for row in range(len(read)):
        number = of_read[row]
        joined[more[number]] = read[row]
        more[number] += 1


class Feed:
    """The rows that producers have not yet pulled, and what comes after them."""

    def __init__(self, source: Rows, workers: int, groups: int) -> None:
        """A feed from which nothing was pulled."""
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
        """The chunk that was read last; None at the end."""
        self.timed = True
        """Whether the rows that were read are due at a time."""

    @property
    def horizon(self) -> float:
        """No row that is still to be read is due before."""
        return np.inf if self.ended else self._last

    def more(self, rows: Records, producers: Records) -> Records:
        """Read a chunk behind the rows that are left.

        Args:
            rows: Those of each producer together, in order.
            producers: Where the next row of each is, and where its rows end; changed to what is returned.

        Raises:
            BadInput: a row is of no group or producer, is due before the one before it, or costs less than nothing.
        """
        numbered = next(self._chunks, None)
        self.last_read = numbered[1] if numbered else None
        if numbered is None:
            self.ended = True
            return rows
        self._loaded, chunk = numbered[0] + 1, numbered[1]
        read = self._checked(chunk)
        left = int((producers["rows_end"] - producers["row"]).sum())
        joined = np.empty(left + len(read), ROW)
        _join(rows, read, np.ascontiguousarray(chunk.producers, np.int32), producers, joined)
        return joined

    def arrived(self, now: float, rows: Records, producers: Records) -> int:
        """How many rows are due before now, whether they were pulled or not: those of this moment are about to be.

        Rows that are so and not yet read are counted by reading ahead of them, not by keeping them.
        """
        waiting = sum(
            int(np.searchsorted(rows["due"][first:end], now, "left"))
            for first, end in zip(producers["row"].tolist(), producers["rows_end"].tolist(), strict=True)
        )
        pulled = self._read - int((producers["rows_end"] - producers["row"]).sum())
        return pulled + waiting + (0 if now < self.horizon else self._due_beyond(now))

    def _due_beyond(self, now: float) -> int:
        """Rows after those that were read that are due before now."""
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

    def _checked(self, chunk: Chunk) -> Records:
        rows = np.empty(len(chunk.groups), ROW)
        for name, given, end in (("group", chunk.groups, self._groups), ("producer", chunk.producers, self._workers)):
            if len(given) != len(rows) or (len(rows) and not 0 <= given.min() <= given.max() < end):
                raise BadInput(
                    f"after row {self._read:,} of the stream there is a {name} outside 0 to {end - 1}, or a row without"
                )
        rows["group"] = chunk.groups
        rows["due"] = -np.inf if chunk.due_s is None else chunk.due_s
        rows["cost"] = -1.0 if chunk.cost_s is None else chunk.cost_s
        rows["number"] = np.arange(self._read, self._read + len(rows)) if chunk.numbers is None else chunk.numbers
        if chunk.due_s is not None and not (np.diff(rows["due"], prepend=max(self._last, -1e300)) >= 0).all():
            raise BadInput(
                f"after row {self._read:,} of the stream a row is due before the one ahead of it; sort by time"
            )
        if chunk.cost_s is not None and not (rows["cost"] >= 0).all():
            raise BadInput(f"after row {self._read:,} of the stream a row costs less than 0 s; mend the cost column")
        self._read += len(rows)
        self.timed = chunk.due_s is not None
        if len(rows):
            self._last = float(rows["due"][-1])
        return rows
