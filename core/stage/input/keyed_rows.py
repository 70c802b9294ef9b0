"""Rows of a trace as tuples of a stage, and their state."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.names import HashName
from adapt.core.random_bits import output
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.growth import Growth
from adapt.core.stage.input.mini_partitions import KeyGroups, MiniPartitions, Sides
from adapt.core.stage.input.row_costs import Reader, RowCosts, amounts
from adapt.core.stage.input.split_join import SplitJoin
from adapt.core.stage.input.split_rows import Dealer, SplitKeys
from adapt.core.units.row_or_time_span import Length

TIME, KEY, STREAM, COST, BYTES = "ts", "key", "stream", "cost_us", "bytes"
"""Columns of a trace."""

ROTATED_ROWS = 65_536
"""Rows of a row group that go to all workers, one after another, if arrivals rotate."""


Route: TypeAlias = Callable[[MiniPartitions, pa.Array, int], NDArray[Any]]
"""The partition of each key of a column, given the number of rows before it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How rows become tuples."""

    partitions: MiniPartitions  # the partition of each key
    speedup: float | None = 1.0  # trace seconds per simulated second; None, as fast as producers accept rows
    costs: RowCosts | None = None  # the CPU time of each row; None, service times are drawn
    by_stream: bool = False  # whether rows are assigned to producers by stream, not by row
    until_s: float = np.inf  # rows that arrive later are omitted
    split: SplitKeys | None = None  # how keys are split over workers; None, keys stay whole
    groups: KeyGroups | None = None  # the keys that are groups; None, partitions are the groups
    sides: Sides | None = None  # the two sides of a join, if any
    split_join: SplitJoin | None = None  # how keys of the join are split; None, they stay whole
    sized: bool = False  # whether rows have the bytes of the trace
    timed: bool = False  # whether rows have event times, in microseconds; with sides they do
    rotates: bool = False  # whether blocks of rows go to one worker after another, as fast as producers accept them

    def __post_init__(self) -> None:
        if self.rotates and (self.speedup is not None or self.timed or self.sides is not None):
            raise UsageError("--arrivals rotate changes the order of rows; omit --join, or the window of --state")

    @property
    def columns(self) -> list[str]:
        """The columns that are read."""
        wanted = {TIME: True, KEY: True, STREAM: self.by_stream, BYTES: self.sized}
        if self.costs is not None:
            wanted[self.costs.column] = True
        if self.sides is not None:
            wanted[self.sides.column] = True
        return [name for name, is_wanted in wanted.items() if is_wanted]

    @property
    def is_hashed(self) -> bool:
        """Whether the hash of its key alone decides a row's partition.

        Such readings can be compared.
        """
        of, here = self.partitions, (self.split, self.groups, self.sides)
        return all(each is None for each in (of.partitioner, of.own, of.units, *here))

    def rows(self, batches: Callable[[], Iterable[pa.RecordBatch]], route: Route | None = None) -> Rows:
        """Tuples of a trace in time order, repeatable.

        Args:
            route: Finds partitions instead of the placement, which it may remember.
        """
        rows = Rows(lambda: self._chunks(batches(), route))
        return rows if self.split_join is None else self.split_join.rows(rows)

    def _chunks(self, batches: Iterable[pa.RecordBatch], route: Route | None) -> Iterator[Chunk]:
        first_us: int | None = None
        before = 0
        dealer = None if self.split is None else Dealer(self.split, self.partitions)
        costs = None if self.costs is None else self.costs.reader()
        for batch in batches:
            if not batch.num_rows:
                continue
            times = times_of(batch, before)
            first_us = int(times[0]) if first_us is None else first_us
            groups = self._groups_of(batch.column(KEY), before, route)
            chunk = self._chunk(batch, times, first_us, before, groups, dealer, costs)
            before += batch.num_rows
            if chunk.due_s is None or chunk.due_s[-1] <= self.until_s:
                yield chunk
            else:
                yield chunk.part(0, int(np.searchsorted(chunk.due_s, self.until_s, "right")))
                return

    def _groups_of(self, keys: pa.Array, before: int, route: Route | None) -> NDArray[Any]:
        """The group of each row; split keys find theirs later."""
        if self.groups is not None:
            return self.groups.groups_of(keys)
        if self.split is not None:
            return np.zeros(len(keys), np.int32)
        return self.partitions.partitions_of(keys) if route is None else route(self.partitions, keys, before)

    def _chunk(
        self,
        batch: pa.RecordBatch,
        times: NDArray[np.int64],
        first_us: int,
        before: int,
        groups: NDArray[Any],
        dealer: Dealer | None,
        costs: Reader | None,
    ) -> Chunk:
        workers, since_us, keys = self.partitions.workers, times - first_us, batch.column(KEY)
        whole = Chunk(
            groups=groups,
            producers=_by_stream(batch.column(STREAM), workers)
            if self.by_stream
            else spread(before, len(batch), workers),
            due_s=None if self.speedup is None else since_us / (1e6 * self.speedup),
            cost_s=None if costs is None or self.costs is None else costs(batch.column(self.costs.column), before),
            sides=None if self.sides is None else self.sides.sides_of(batch.column(self.sides.column), keys),
            times=times if self.timed or self.sides is not None else None,
            sizes=amounts(batch.column(BYTES)).astype(np.int64) if self.sized else None,
        )
        if self.rotates:
            blocks = np.arange(before, before + len(batch)) // ROTATED_ROWS
            whole = whole.taken(np.lexsort((self.partitions.partitions_of(keys), blocks)))
        return whole if dealer is None else dealer.dealt(batch.column(KEY), whole)


def bytes_by_partition(batches: Iterable[pa.RecordBatch], partitions: MiniPartitions) -> NDArray[np.int64]:
    """Total bytes of each partition, shape (partitions,); missing sizes count 0."""
    sums: NDArray[np.int64] = np.zeros(partitions.count, np.int64)
    for batch in batches:
        sizes = batch.column(BYTES).fill_null(0).to_numpy(zero_copy_only=False)
        np.add.at(sums, partitions.partitions_of(batch.column(KEY)), sizes.astype(np.int64, copy=False))
    return sums


def spread(first: int, rows: int, workers: int) -> NDArray[np.int32]:
    """Producer of each row by a hash of its number, shape (rows,)."""
    producers = np.empty(rows, np.int32)
    _spread(np.uint64(first), np.uint64(workers), producers)
    return producers


@compiled
def _spread(first: np.uint64, workers: np.uint64, producers: NDArray[np.int32]) -> None:
    for row in range(len(producers)):
        word = output(np.uint64(0), first + np.uint64(row))
        producers[row] = ((word >> np.uint64(32)) * workers) >> np.uint64(32)


def _by_stream(streams: pa.Array, workers: int) -> NDArray[np.int32]:
    """Producer of each row by the hash of its stream."""
    return MiniPartitions(workers, 1, HashName.MURMUR3).partitions_of(streams)


def times_of(batch: pa.RecordBatch, before: int) -> NDArray[np.int64]:
    """Timestamps in microseconds.

    Args:
        before: Number of earlier rows, for the error.
    """
    column = batch.column(TIME)
    if column.null_count:
        raise BadInput(f"a row after row {before:,} has no timestamp; a replay needs one for every row")
    times: NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
    return times


class StateUnit(StrEnum):
    """What adds to the state."""

    ROWS = "rows"
    """Each row, by a tuple."""

    BYTES = "bytes"
    """Each row, by its bytes."""

    KEYS = "keys"
    """The first row of a key, by a tuple."""


@dataclass(frozen=True, slots=True)
class StateSource:
    """What adds to the state, and how long it stays."""

    unit: StateUnit  # what adds to the state
    # how long rows stay, in trace time, or how many rows of a key stay; None, forever and all
    window: Length | None = None

    def __post_init__(self) -> None:
        if self._last_rows and self.unit is not StateUnit.ROWS:
            raise UsageError(
                f"a state of {self.unit} takes a window of time (got {self.window}); use rows@{self.window}, or"
                f" {self.unit}@10m"
            )

    @classmethod
    def parse(cls, text: str, what: str) -> "StateSource":
        """Parse a state such as rows@10m."""
        unit, limited, window = text.partition("@")
        if unit not in [one.value for one in StateUnit]:
            raise UsageError(f"{what} takes a number of tuples, or rows, bytes or keys, as in rows@10m (got {text!r})")
        return cls(StateUnit(unit), Length.parse(window, f"{what}: the window") if limited else None)

    @property
    def by_key(self) -> bool:
        """Whether the state depends on the keys of the rows."""
        return self.unit is StateUnit.KEYS or self._last_rows > 0

    @property
    def _last_rows(self) -> int:
        return self.window.size if self.window is not None and self.window.in_rows else 0

    def growth(self, tuple_bytes: int) -> Growth:
        """Growth of a stage, with times in microseconds."""
        return Growth(
            group_bytes=tuple_bytes if self.unit is StateUnit.KEYS else 0,
            row_bytes=tuple_bytes if self.unit is StateUnit.ROWS else 0,
            sized=self.unit is StateUnit.BYTES,
            window=self.window.size if self.window is not None and not self.window.in_rows else None,
            rows_per_group=self._last_rows,
        )

    def parameters(self) -> dict[str, Any]:
        """The same as JSON data."""
        return {"state_from": self.unit.value, "state_window": None if self.window is None else str(self.window)}
