"""Lossy counting of hot keys (Manku and Motwani) in bounded memory.

After a total weight n, a counter of error epsilon guarantees for every key, in any order of rows:

    true - epsilon n <= count <= true <= count + error,    and    true <= missed <= epsilon n    if unlisted.

It holds O(1/epsilon log(epsilon n)) keys. Summaries of parts merge into one with the same guarantee.

Source: Manku and Motwani, "Approximate frequency counts over data streams", VLDB 2002; partitioning functions, section
4.1.2, read as docs/theory.md says. With weights, windows of w = ceil(1/epsilon) rows become windows of w units.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import pairwise
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.counting.exact import KeyCounts, check_counts, count_keys, merge
from adapt.core.counting.frequencies import CounterMemory, Counts, Frequencies, key_order
from adapt.core.counting.sketches import DistinctSketch, hashed_keys
from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.columns import one_array
from adapt.core.keys.key_index import KeyIndex
from adapt.core.stream import KeyType, Weight

FLUSH_ROWS = 1 << 18
"""Rows between two purges; purging in batches is cheaper."""

DISTINCT_LIMIT = 4096
"""Hashes kept to estimate distinct keys, with a standard error of 1.6 %."""


@dataclass(frozen=True, slots=True)
class LossySummary:
    """The hot keys of some rows, with bounds; summaries merge."""

    keys: pa.Array  # listed keys, distinct, by descending count, then key bytes; one may be null. Shape (keys,)
    counts: Counts  # lower bounds (c_a); shape (keys,), int64 for counts and bytes, float64 for cost
    errors: Counts  # the largest undercount of each (c_e); same shape and type
    missed: float  # the largest weight of any unlisted key
    total: float  # the weight of all rows (n)
    rows: int
    distinct: DistinctSketch  # a sketch of all keys, listed or not
    memory: CounterMemory = field(default_factory=CounterMemory)  # keys that the counter held

    def __len__(self) -> int:
        return len(self.keys)

    def cut(self, most: int) -> "LossySummary":
        """The `most` keys with the largest upper bounds."""
        if len(self) <= most:
            return self
        high = self.counts + self.errors
        order = key_order(self.keys, high)
        kept = np.sort(order[:most])
        missed = max(self.missed, high[order[most]].item())
        return replace(
            self, keys=self.keys.take(pa.array(kept)), counts=self.counts[kept], errors=self.errors[kept], missed=missed
        )

    def frequencies(
        self, epsilon: float, weight: Weight = Weight.COUNT, key_type: KeyType | None = None
    ) -> Frequencies:
        """The frequencies of a counter of error `epsilon`.

        Args:
            key_type: The type of the keys in their source. Default: that of their column.
        """
        if self.missed > epsilon * self.total * (1 + 1e-12):
            raise ValueError(f"the summary misses {self.missed:g} of {self.total:g}, more than epsilon {epsilon:g}")
        complete = self.missed == 0
        return Frequencies(
            keys=self.keys,
            count_low=self.counts,
            count_high=self.counts + self.errors,
            total=float(self.total),
            rows=self.rows,
            weight=weight,
            epsilon=epsilon,
            complete_above=_not_below(self.missed),
            distinct=len(self) if complete and weight is Weight.COUNT else max(len(self), self.distinct.estimate()),
            memory=self.memory,
            typed=key_type,
        )


def merge_lossy(parts: Iterable[LossySummary]) -> LossySummary:
    """Merge summaries in any order; the bound epsilon n holds.

    A key that a part does not list has that part's `missed` as its error there. Float counts are added in descending
    order, so the result does not depend on the order of parts.

    Source: Agarwal et al., "Mergeable summaries", PODS 2012.
    """
    held = list(parts)
    if not held:
        raise ValueError("no summaries to merge")
    if len(held) == 1:
        return held[0]
    keys = pa.concat_arrays([part.keys for part in held])
    # `missed` minus the part's own error: in this sum, absent parts count 0
    spared = np.concatenate([part.missed - part.errors for part in held])
    counts = np.concatenate([part.counts for part in held])
    missed, total = _added([part.missed for part in held]), _added([part.total for part in held])
    if counts.dtype == np.float64:
        by_size = np.lexsort((spared, -counts))
        keys, counts, spared = keys.take(pa.array(by_size)), counts[by_size], spared[by_size]
    elif total >= 2**63:
        raise BadInput(f"the total weight of {total:,} overflows an int64; use a larger unit")
    listed = pc.dictionary_encode(keys, null_encoding="encode")
    codes = listed.indices.to_numpy()
    errors = np.maximum(missed - _by_code(codes, spared, len(listed.dictionary)), 0).astype(counts.dtype)
    distinct = held[0].distinct
    for part in held[1:]:
        distinct = distinct.merged(part.distinct)
    sums = _by_code(codes, counts, len(listed.dictionary))
    memory = reduce(CounterMemory.or_more, [part.memory for part in held])
    return replace(summary_of(listed.dictionary, sums, errors, missed, total, _rows(held), distinct), memory=memory)


def summary_of(
    keys: pa.Array, counts: Counts, errors: Counts, missed: float, total: float, rows: int, distinct: DistinctSketch
) -> LossySummary:
    """A summary of keys in any order."""
    order = key_order(keys, counts)
    return LossySummary(keys.take(pa.array(order)), counts[order], errors[order], missed, total, rows, distinct)


@dataclass(frozen=True, slots=True)
class CounterState:
    """A lossy counter between two rows."""

    kept: LossySummary  # what the last purge left
    pending: KeyCounts | None  # the rows since then, by key; None without any
    peak_entries: int
    peak_buffer: int


class LossyCounter:
    """Lossy counting of key columns.

    Rows are counted exactly until the next purge, which then advances by all closed windows. So every bound of the
    per-item form holds, and a purge costs no more than reading its rows. Purges depend on row numbers alone, so the
    summary does not depend on batches.

    Attributes:
        entries: Keys kept by the last purge.
        memory: Keys held at the peak.
    """

    def __init__(
        self,
        epsilon: float,
        kind: pa.DataType,
        weight: Weight = Weight.COUNT,
        *,
        flush_rows: int = FLUSH_ROWS,
        purge_above: int = 0,
    ) -> None:
        """An empty counter.

        Args:
            epsilon: The error as a share of the total, in (0, 1).
            flush_rows: Rows between purges; at least a window, if rows weigh 1.
            purge_above: Do not purge until more keys than this are held, so streams with fewer keys are counted
                exactly.
        """
        check_epsilon(epsilon)
        self.epsilon = epsilon
        self.memory = CounterMemory()
        self._weight = weight
        self._window = window_of(epsilon)
        self._purge_above = purge_above
        self._flush_rows = max(flush_rows, self._window if weight is Weight.COUNT else 1)
        self._pending: list[tuple[pa.Array, Counts | None]] = []
        self._counted: list[KeyCounts] = []
        self._pending_rows = 0
        self._rows = 0
        self._total: float = 0.0 if weight is Weight.COST else 0
        self._keys = pa.array([], kind)
        self._counts = amounts([], weight)
        self._errors = amounts([], weight)
        self._missed: float = self._total
        self._distinct = DistinctSketch.empty(DISTINCT_LIMIT)

    @property
    def entries(self) -> int:
        """Keys kept by the last purge."""
        return len(self._keys)

    @property
    def due(self) -> int:
        """Rows until the next purge."""
        return self._flush_rows - self._pending_rows

    def update(self, keys: pa.Array | pa.ChunkedArray, weights: Counts | None = None) -> None:
        """Count the next rows.

        Args:
            keys: Shape (rows,); may be dictionary-encoded, with distinct keys.
            weights: Row weights, shape (rows,); None if each row weighs 1.
        """
        check_weights(self._weight, len(keys), weights)
        for column in keys.chunks if isinstance(keys, pa.ChunkedArray) else [keys]:
            for first, end in self._cuts(len(column)):
                self._pending.append(
                    (column.slice(first, end - first), None if weights is None else weights[first:end])
                )
                self._pending_rows += end - first
                if self._pending_rows >= self._flush_rows:
                    self._flush()
            weights = None if weights is None else weights[len(column) :]

    def add(self, counted: KeyCounts) -> None:
        """Count the next rows, counted by key already.

        At most as many rows as are `due`. For counters that share rows, which are then counted once. Raises as
        `update` does.
        """
        self._counted.append(counted)
        self._pending_rows += counted.rows
        if self._pending_rows >= self._flush_rows:
            self._flush()

    def summary(self, further: KeyCounts | None = None) -> LossySummary:
        """The purged summary so far, with further rows if given.

        The counter itself is not changed.
        """
        told = copy(self)
        if further is not None:
            told._counted = [*told._counted, further]
        told._flush()
        kept = told._keys, told._counts, told._errors
        summary = summary_of(*kept, told._missed, told._total, told._rows, told._distinct)
        return replace(summary, memory=told.memory)

    def state(self) -> CounterState:
        """What the counter holds, to `resume` from."""
        kept = (self._keys, self._counts, self._errors, self._missed, self._total, self._rows, self._distinct)
        return CounterState(summary_of(*kept), self._unpurged(), self.memory.entries, self.memory.buffer)

    def resume(self, state: CounterState) -> None:
        """Continue from a state.

        It must be of a counter of the same error, weight and type of keys.
        """
        kept = state.kept
        self._keys, self._counts, self._errors, self._missed = kept.keys, kept.counts, kept.errors, kept.missed
        self._total, self._rows, self._distinct = kept.total, kept.rows, kept.distinct
        self._pending, self._counted = [], [] if state.pending is None else [state.pending]
        self._pending_rows = 0 if state.pending is None else state.pending.rows
        self.memory = CounterMemory(state.peak_entries, state.peak_buffer)

    def _unpurged(self) -> KeyCounts | None:
        """The rows since the last purge."""
        pending = [counted_rows(self._pending, self._keys.type)] if self._pending else []
        return merge([*self._counted, *pending]) if self._counted or pending else None

    def _cuts(self, rows: int) -> Iterator[tuple[int, int]]:
        """Ranges of the next rows that end at purges."""
        ends = [0, *range(self.due, rows, self._flush_rows), rows]
        return pairwise(ends) if rows else iter(())

    def _flush(self) -> None:
        """Count pending rows and purge."""
        counted = self._unpurged()
        if counted is None:
            return
        check_counts(counted, self._total)
        self._pending, self._counted, self._pending_rows = [], [], 0
        self._rows += counted.rows
        self._total += counted.counts.sum().item()
        hashed = hashed_keys(counted.keys)
        self._distinct = self._distinct.with_keys(hashed)
        places = KeyIndex(self._keys).rows_of(hashed)
        known = places >= 0
        self._counts = self._counts.copy()
        self._counts[places[known]] += counted.counts[known]
        held = len(counted.keys) + len(self._keys) - int(known.sum())
        before = self._missed
        if held > self._purge_above or self._missed:
            self._missed = allowance(self._total, self._window)
        self._admit(counted, ~known & (counted.counts + before > self._missed), before)
        self.memory = self.memory.or_more(CounterMemory(self.entries, held))

    def _admit(self, counted: KeyCounts, new: NDArray[np.bool_], error: float) -> None:
        """Keep surviving and new keys; a new key may have had a weight of `error` before."""
        kept = self._counts + self._errors > self._missed
        keys = [self._keys.filter(pa.array(kept)), counted.keys.filter(pa.array(new)).cast(self._keys.type)]
        self._keys = pa.concat_arrays(keys)
        self._counts = cast(Counts, np.concatenate((self._counts[kept], counted.counts[new])))
        errors = np.full(int(new.sum()), error, self._errors.dtype)
        self._errors = cast(Counts, np.concatenate((self._errors[kept], errors)))


def amounts(values: Sequence[float], weight: Weight) -> Counts:
    """Amounts of a weight, in the type of its sums."""
    return np.array(values, np.float64) if weight is Weight.COST else np.array(values, np.int64)


def check_epsilon(epsilon: float) -> None:
    """Check the error of a counter."""
    if not 0 < epsilon < 1:
        raise UsageError(
            f"epsilon, the largest undercount as a share of the total, must be between 0 and 1 (got {epsilon:g})"
        )


def check_weights(weight: Weight, rows: int, weights: Counts | None) -> None:
    """Check that a counter has the weights of rows that it needs."""
    if (weights is None) != (weight is Weight.COUNT):
        wanted = "needs a weight for each row" if weights is None else "takes no weights"
        raise ValueError(f"a counter by {weight} {wanted}")
    if weights is not None and len(weights) != rows:
        raise ValueError(f"{len(weights)} weights do not fit {rows} rows")


def window_of(epsilon: float) -> int:
    """w = ceil(1/epsilon): a window, or bucket, in units of weight."""
    return math.ceil(1 / epsilon)


def allowance(total: float, window: int) -> float:
    """The largest weight of an unlisted key, at most epsilon total."""
    return total // window if isinstance(total, int) else total / window


def counted_rows(pending: list[tuple[pa.Array, Counts | None]], kind: pa.DataType) -> KeyCounts:
    """Rows by key; float weights are added in row order."""
    weights = [part for _, part in pending if part is not None]
    columns = [keys for keys, _ in pending]
    if len(columns) == 1:
        return count_keys(columns[0], weights[0] if weights else None)
    alike = len({column.type for column in columns}) == 1
    if weights or not alike or not pa.types.is_dictionary(columns[0].type):
        joined = pa.chunked_array([one_array(column).cast(kind) for column in columns])
        return count_keys(joined, cast(Counts, np.concatenate(weights)) if weights else None)
    return count_keys(pa.chunked_array(columns))


def _by_code(codes: NDArray[np.int32], amounts: Counts, keys: int) -> Counts:
    """The sum of amounts by key, added in order; shape (keys,)."""
    sums = cast(Counts, np.zeros(keys, amounts.dtype))
    np.add.at(sums, codes, amounts)
    return sums


def _added(amounts: list[float]) -> float:
    """The sum, an integer if all amounts are, otherwise rounded once."""
    return sum(amounts) if all(isinstance(amount, int) for amount in amounts) else math.fsum(amounts)


def _not_below(amount: float) -> float:
    """An amount as a float, rounded up if it is a large integer."""
    rounded = float(amount)
    return rounded if rounded >= amount else math.nextafter(rounded, math.inf)


def _rows(parts: list[LossySummary]) -> int:
    return sum(part.rows for part in parts)
