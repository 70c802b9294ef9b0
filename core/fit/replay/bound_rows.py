"""Rows of a trace as tuples of a query network."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import BadInput, did_you_mean
from adapt.core.fit.network.network import ColumnEquals, Input, KeyBucket, KeyRange, Network, Stream
from adapt.core.fit.network.settings import Execution
from adapt.core.fit.running.fluid import Offered
from adapt.core.partitioning.schemes.uniform import UniformPartitioner
from adapt.core.stage.input.keyed_rows import KEY, TIME, times_of
from adapt.core.units.settings import SettingError

MAX_TICKS = 5_000_000
"""Limit of ticks, whose measurements must all fit in memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Bound:
    """Rows in time order, once for each input that reads them."""

    at_us: NDArray[np.int64]  # arrival, in microseconds since the first row of the trace; shape (rows,)
    inputs: NDArray[np.int64]  # number of the input, shape (rows,)
    matched: int  # number of distinct rows of the trace: several inputs may read the same row
    shared: NDArray[np.int64]  # rows of each input that another one reads too, shape (inputs,)
    rows: int  # of the trace so far
    span_us: int  # of the trace so far, without the speed-up


@dataclass(frozen=True, slots=True)
class Binding:
    """How rows of a trace become tuples."""

    network: Network  # its inputs select the rows
    tick_us: int  # length of a tick, after the speed-up
    speedup: float = 1.0  # trace seconds per second in the network

    @property
    def columns(self) -> list[str]:
        """The columns to read."""
        named = [
            entering.stream.column for entering in self.network.inputs if isinstance(entering.stream, ColumnEquals)
        ]
        by_key = any(isinstance(entering.stream, KeyRange | KeyBucket) for entering in self.network.inputs)
        return list(dict.fromkeys([TIME, *([KEY] if by_key else []), *named]))

    def check(self, there: Sequence[str]) -> None:
        """Require a stream for every input, over columns of the trace."""
        for entering in self.network.inputs:
            match entering.stream:
                case None:
                    raise BadInput(
                        f"input {entering.name!r} has no stream; add stream = {{ column = NAME, equals = "
                        "VALUE }, { keys = [FIRST, END] } or { bucket = NUMBER, of = BUCKETS }"
                    )
                case ColumnEquals(column, _) if column not in there:
                    raise BadInput(
                        f"input {entering.name!r} reads column {column!r}, which the trace does not have"
                        f"{did_you_mean(column, there)}; ingest it with --keep {column}"
                    )
                case _:
                    pass

    def bound(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Bound]:
        """The rows of a trace, in time order, as tuples."""
        first_us: int | None = None
        last_us = np.iinfo(np.int64).min
        before = 0
        for batch in batches:
            if not batch.num_rows:
                continue
            times = times_of(batch, before)
            early = np.flatnonzero(times < np.concatenate(([last_us], times[:-1])))
            if len(early):
                raise BadInput(
                    f"row {before + early[0] + 1:,} is earlier than the row before it; sort the trace by {TIME!r}"
                )
            first_us, last_us = int(times[0]) if first_us is None else first_us, int(times[-1])
            before += batch.num_rows
            since = times - first_us
            arrivals = since if self.speedup == 1 else (since / self.speedup).astype(np.int64)
            yield self._bound(batch, arrivals, before, last_us - first_us)

    def ticks(self, batches: Iterable[pa.RecordBatch], count: int) -> Iterator[Offered]:
        """The same, cut into a number of ticks."""
        at_us, inputs = np.empty(0, np.int64), np.empty(0, np.int64)
        at = 0
        for bound in self.bound(batches):
            at_us, inputs = np.concatenate((at_us, bound.at_us)), np.concatenate((inputs, bound.inputs))
            whole = min(int(at_us[-1] // self.tick_us) if len(at_us) else at, count)
            rest = int(np.searchsorted(at_us, whole * self.tick_us))
            yield from self._cut(Offered(at * self.tick_us, whole * self.tick_us, at_us, inputs))
            at_us, inputs, at = at_us[rest:], inputs[rest:], whole
        yield from self._cut(Offered(at * self.tick_us, count * self.tick_us, at_us, inputs))

    def _cut(self, rows: Offered) -> Iterator[Offered]:
        """The ticks within a span, one by one, without later rows."""
        edges = np.arange(rows.begin_us, rows.end_us + 1, self.tick_us)
        cuts = zip(edges.tolist(), np.searchsorted(rows.at_us, edges).tolist(), strict=True)
        for (begin_us, begin), (end_us, stop) in pairwise(cuts):
            yield Offered(begin_us, end_us, rows.at_us[begin:stop], rows.inputs[begin:stop])

    def _bound(self, batch: pa.RecordBatch, at_us: NDArray[np.int64], so_far: int, span_us: int) -> Bound:
        matches = np.array([_matches(entering, batch) for entering in self.network.inputs])
        found = [np.flatnonzero(each) for each in matches]
        rows = np.concatenate(found)
        inputs = np.repeat(np.arange(len(found)), [len(each) for each in found])
        order = np.argsort(rows, kind="stable")
        readers = matches.sum(axis=0)
        shared = (matches & (readers > 1)).sum(axis=1)
        return Bound(at_us[rows[order]], inputs[order], int(np.count_nonzero(readers)), shared, so_far, span_us)


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """Rows per tick and input."""

    by_tick: NDArray[np.int64]  # rows of each input, shape (ticks, inputs)
    rows: int  # of the trace
    unbound: int  # rows that no input reads
    shared: NDArray[np.int64]  # rows of each input that another one reads too, shape (inputs,)

    @classmethod
    def from_batches(
        cls, binding: Binding, batches: Iterable[pa.RecordBatch], progress: Callable[[int], None] | None = None
    ) -> "Counts":
        """Count a trace; ticks span its first to its last row.

        Args:
            batches: In time order.
            progress: Called with the number of rows read.
        """
        inputs = len(binding.network.inputs)
        so_far: NDArray[np.int64] = np.zeros((0, inputs), np.int64)
        last_us, rows, bound_rows, shared = 0, 0, 0, np.zeros(inputs, np.int64)
        for bound in binding.bound(batches):
            rows, last_us = bound.rows, int(bound.span_us / binding.speedup)
            ticks = last_us // binding.tick_us + 1
            if ticks > MAX_TICKS:
                longer = f"the trace lasts longer than {MAX_TICKS:,} ticks; increase the tick or {{speedup}}"
                raise SettingError(Execution, longer)
            if ticks > len(so_far):
                so_far = np.concatenate(
                    (so_far, np.zeros((max(ticks, 2 * len(so_far)) - len(so_far), inputs), np.int64))
                )
            cells = bound.at_us // binding.tick_us * inputs + bound.inputs
            if len(cells):
                first = int(cells.min())
                added = np.bincount(cells - first)
                so_far.reshape(-1)[first : first + len(added)] += added
            bound_rows += bound.matched
            shared += bound.shared
            if progress is not None:
                progress(rows)
        if not rows:
            raise BadInput("the trace has no rows")
        return cls(so_far[: last_us // binding.tick_us + 1], rows, rows - bound_rows, shared)

    def unmatched(self, network: Network) -> list[str]:
        """Warnings about inputs that read no rows, or those of others."""
        totals = self.by_tick.sum(axis=0)
        said = [
            f"input {entering.name!r} ({binding_text(entering.stream)}) shares {rows:,} of its rows with other inputs;"
            " each reads them as tuples of its own"
            for entering, rows in zip(network.inputs, self.shared, strict=True)
            if rows
        ]
        return said + [
            f"input {entering.name!r} ({binding_text(entering.stream)}) matches none of the {self.rows:,} rows"
            for entering, total in zip(network.inputs, totals, strict=True)
            if total == 0
        ]


def binding_text(stream: Stream | None) -> str:
    """How messages and tables describe a stream."""
    match stream:
        case ColumnEquals(column, value):
            return f"{column} = {value!r}"
        case KeyRange(first, end):
            begin, stop = "the first" if first is None else repr(first), "the last" if end is None else repr(end)
            return f"keys from {begin} to {stop}"
        case KeyBucket(bucket, of):
            return f"bucket {bucket} of {of}"
        case None:
            return "no rows"


def _matches(entering: Input, batch: pa.RecordBatch) -> NDArray[np.bool_]:
    """Whether an input reads each row; missing values never match. Shape (rows,)."""
    match entering.stream:
        case ColumnEquals(column, value):
            cells = batch.column(column)
            return _truths(pc.equal(cells, _value(entering.name, value, cells.type)))
        case KeyRange(first, end):
            keys = batch.column(KEY)
            within = np.ones(len(keys), np.bool_) if first is not None or end is not None else _truths(keys.is_valid())
            if first is not None:
                within &= _truths(pc.greater_equal(keys, _value(entering.name, first, keys.type)))
            if end is not None:
                within &= _truths(pc.less(keys, _value(entering.name, end, keys.type)))
            return within
        case KeyBucket(bucket, of):
            return np.asarray(UniformPartitioner(of).channels_of(batch.column(KEY)) == bucket)
        case None:
            raise BadInput(f"input {entering.name!r} has no stream")


def _value(name: str, value: str | int, kind: pa.DataType) -> pa.Scalar:
    """A value in the type of a column."""
    text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if not (text and isinstance(value, int)):
        try:
            return pa.scalar(value, pa.string() if isinstance(value, str) else pa.int64()).cast(kind)
        except pa.ArrowException:
            pass
    raise BadInput(f"input {name!r} selects {value!r}, but the column holds {kind}; give a value of that type")


def _truths(array: pa.Array) -> NDArray[np.bool_]:
    return np.asarray(pc.fill_null(array, False).to_numpy(zero_copy_only=False))
