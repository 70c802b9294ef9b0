"""Counted keys, exact or lossy."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.counting.names import CountMethod
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.keys.columns import key_type_of
from adapt.core.keys.hashes import HashedKeys
from adapt.core.keys.key_index import KeyIndex
from adapt.core.keys.names import HashName
from adapt.core.statistics.beta import beta_part
from adapt.core.stream import KeyType, Weight
from adapt.core.table import Tabular

Counts: TypeAlias = NDArray[np.int64] | NDArray[np.float64]


MOST_TOTAL = 2.0**63
"""Totals are below this: whole ones then fit an int64, and powers of counts stay finite."""

MEASURED = "measured_"
"""Beginning of the names of measured columns in tables."""


@dataclass(frozen=True, slots=True)
class MeasuredColumn:
    """Sums of a column by key."""

    source: str
    values: NDArray[np.float64]  # the sum over the rows of each listed key; shape (keys,)
    total: float  # the sum over all rows

    @property
    def unlisted(self) -> float:
        """The sum over unlisted keys; 0 within rounding."""
        left = self.total - float(self.values.sum())
        return left if left > 1e-9 * self.total else 0.0


@dataclass(frozen=True, slots=True)
class CounterMemory:
    """Keys that a lossy counter holds at its peak.

    Of several counters the largest: each counts one block of rows, so tasks and their number do not matter.

    Source: partitioning functions, section 5, third metric.
    """

    entries: int = 0  # most keys kept by a purge
    buffer: int = 0  # most keys held before a purge

    def or_more(self, other: "CounterMemory") -> "CounterMemory":
        """The larger of both, number by number."""
        return CounterMemory(max(self.entries, other.entries), max(self.buffer, other.buffer))


@dataclass(frozen=True, slots=True, repr=False)
class Frequencies(Tabular):
    """Counted keys by descending count, then key bytes, null first.

    Attributes:
        keys: The listed keys, distinct; string, int64 or binary; one may be null. Shape (keys,).
        count_low: Lower bounds, shape (keys,); int64 for counts and bytes, float64 for cost.
        count_high: Upper bounds, shape (keys,); equal to `count_low` if exact.
        total: The weight of all rows.
        epsilon: Error bound as a share of `total`: true - epsilon * total <= count_low <= true of a listed key; 0 if
            exact.
        complete_above: Every key above this weight is listed; 0 if all are.
        distinct: Number of distinct keys, estimated unless `epsilon` is 0.
        measured: Further columns summed by listed key.
        memory: Keys that the counter held; None if exact.
        typed: The type of the keys in their source; None, that of their column.
        stand_ins: The last of the keys, out of order, if they stand for records placed at random; None without any.
    """

    keys: pa.Array
    count_low: Counts
    count_high: Counts
    total: float
    rows: int
    weight: Weight = Weight.COUNT
    epsilon: float = 0.0
    complete_above: float = 0.0
    distinct: int = 0
    measured: tuple[MeasuredColumn, ...] = ()
    stand_ins: pa.Array | None = None
    memory: CounterMemory | None = None
    typed: KeyType | None = None
    _index: KeyIndex = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not len(self.keys) == len(self.count_low) == len(self.count_high):
            raise ValueError(
                f"{len(self.keys)} keys do not fit {len(self.count_low)} and {len(self.count_high)} counts"
            )
        totals = {f"total {self.weight}": self.total} | {f"sum of {each.source}": each.total for each in self.measured}
        for what, total in totals.items():
            if not total < MOST_TOTAL:
                raise BadInput(f"the {what} is {total:.3g}; it must be below 2^63, about 9.2e18: use a larger unit")
        for column in self.measured:
            if len(column.values) != len(self.keys):
                raise ValueError(f"{len(self.keys)} keys do not fit {len(column.values)} values of {column.source!r}")
        object.__setattr__(self, "_index", KeyIndex(self.keys))

    @property
    def real(self) -> int:
        """Number of listed keys without stand-ins; they come first."""
        return len(self.keys) - (0 if self.stand_ins is None else len(self.stand_ins))

    @property
    def exact(self) -> bool:
        """Whether an exact counter made these."""
        return self.epsilon == 0

    def to_arrow(self) -> pa.Table:
        """The listed keys with their counts.

        Measured columns are named `measured_` and their source.
        """
        counts = {"count_low": self.count_low, "count_high": self.count_high}
        counts |= {f"{MEASURED}{column.source}": column.values for column in self.measured}
        return pa.table({"key": self.keys, **{name: pa.array(values) for name, values in counts.items()}})

    def __repr__(self) -> str:
        bounds = "exact" if self.exact else f"epsilon={self.epsilon:.3g}"
        return f"Frequencies({self.distinct:,} keys, {len(self.keys):,} listed, {self.rows:,} rows, {bounds})"

    def as_counted(self) -> dict[str, Any]:
        """How the keys were counted, as JSON data."""
        if self.exact:
            omitted = {"complete_above": self.complete_above} if self.complete_above else {}
            return {"weight": self.weight.value, "counts": CountMethod.EXACT.value, **omitted}
        bounds = {"epsilon": self.epsilon, "complete_above": self.complete_above}
        return {"weight": self.weight.value, "counts": CountMethod.LOSSY.value, **bounds}

    def memory_as_data(self) -> dict[str, int | None]:
        """Keys that the counter held, as JSON data; null if exact."""
        held = self.memory
        return {
            "peak_entries": None if held is None else held.entries,
            "peak_buffer": None if held is None else held.buffer,
        }

    def intervals(self, keys: pa.Array) -> tuple[Counts, Counts]:
        """Bounds on the weights of any keys; shapes (keys,).

        Raises:
            ValueError: the keys are of another type.
        """
        rows = self.rows_of(keys)
        if not len(self.keys):
            return np.zeros(len(keys)), np.full(len(keys), self.complete_above)
        low = np.where(rows >= 0, self.count_low[rows], 0)
        return low, np.where(rows >= 0, self.count_high[rows], self.complete_above)

    def rows_of(self, keys: pa.Array) -> NDArray[np.int32]:
        """The row of each key, -1 if unlisted; shape (keys,).

        Raises:
            ValueError: the keys are of another type.
        """
        if key_type_of(keys.type) is not self.key_type.storage:
            raise ValueError(f"keys must be {self.key_type} (got {keys.type})")
        if not len(self.keys):
            return np.full(len(keys), -1, np.int32)
        return self._index.rows_of(HashedKeys.from_column(keys, HashName.MURMUR3))

    def column(self, source: str) -> MeasuredColumn:
        """The measured column of a name, or exact counts by their weight.

        Raises:
            UsageError: no measured column has that name.
        """
        known = {column.source: column for column in self.measured}
        if source not in known and source == self.weight and self.exact:
            return MeasuredColumn(source, self.count_low.astype(np.float64), self.total)
        if source not in known:
            names = sorted({*known, *([self.weight.value] if self.exact else [])})
            raise UsageError(f"column {source!r} was not measured{did_you_mean(source, names)}")
        return known[source]

    def first(self, kept: int) -> "Frequencies":
        """The first keys, in their order."""
        if kept >= len(self.keys):
            return self
        dropped = float(self.count_high[kept:].max())
        return replace(
            self,
            keys=self.keys[:kept],
            count_low=self.count_low[:kept],
            count_high=self.count_high[:kept],
            measured=tuple(replace(column, values=column.values[:kept]) for column in self.measured),
            complete_above=max(self.complete_above, dropped),
        )

    @property
    def key_type(self) -> KeyType:
        """The type of the keys in their source."""
        return self.typed or key_type_of(self.keys.type)


def key_order(keys: pa.Array, counts: Counts) -> NDArray[np.int64]:
    """Positions by descending count, then key bytes, null first; shape (keys,).

    Key bytes are the hashed bytes: UTF-8 for strings, 8 little-endian bytes for integers (so 256 comes before 1).
    """
    columns = {"count": np.ascontiguousarray(counts), "present": keys.is_valid(), "key": in_byte_order(keys)}
    order = pc.sort_indices(
        pa.table(columns), sort_keys=[("count", "descending"), ("present", "ascending"), ("key", "ascending")]
    )
    return np.asarray(order.to_numpy(), dtype=np.int64)


def heaviest(keys: pa.Array, counts: Counts, most: int) -> NDArray[np.int64]:
    """The first `most` positions of `key_order`, without sorting the others."""
    if len(counts) <= most:
        return key_order(keys, counts)
    least = np.partition(counts, -most)[-most]
    chosen = np.flatnonzero(counts >= least)
    return chosen[key_order(keys.take(pa.array(chosen)), counts[chosen])[:most]]


def in_byte_order(keys: pa.Array) -> pa.Array:
    """A column that sorts as key bytes; integers are byte-swapped."""
    if key_type_of(keys.type) is not KeyType.INT64:
        return keys
    missing = keys.is_null().to_numpy(zero_copy_only=False)
    values: NDArray[np.int64] = keys.fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(values.view(np.uint64).byteswap(), mask=missing)


def top_share(frequencies: Frequencies) -> tuple[float, float] | None:
    """Bounds on the share of the hottest key, which may be unlisted.

    None if the total weight is 0.
    """
    if not frequencies.total > 0:
        return None
    low = float(frequencies.count_low.max(initial=0))
    high = max(float(frequencies.count_high.max(initial=0)), frequencies.complete_above, low)
    # without listed keys, the only bound is the whole stream
    return low / frequencies.total, min(high / frequencies.total, 1.0) or 1.0


LEVEL = 0.95
"""The confidence level."""

METHOD = (
    "Clopper and Pearson (1934), the lower end with a Bonferroni correction for selecting the hottest key;"
    " assumes independent messages"
)

_HALVINGS = 60


def top_share_interval(low: int, high: int, messages: int) -> tuple[float, float]:
    """A confidence interval of the top-key share, from a sample.

    The truly hottest key occurs at most as often as the hottest key of the sample, so the upper end is that of Clopper
    and Pearson for the largest count. The lower end accounts for selecting the largest of several counts: at most 1/f
    keys have a share of f, and the probability that any key occurs so often, if none has more than f, is at most 1/f
    times that of one with f (a binomial tail over f rises with f up to the count).

    Args:
        low, high: Bounds on the largest count; equal if it was counted exactly.
        messages: n, from 1.

    Source: Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
    Biometrika 26, 1934; the lower end by the union bound, ours.
    """
    side = (1 - LEVEL) / 2
    return _least(low, messages, side), _most(high, messages, side)


def _most(count: int, messages: int, side: float) -> float:
    """The share at which a count this small has probability `side`."""
    if count >= messages:
        return 1.0
    return _crossing(lambda share: 1 - beta_part(count + 1, messages - count, share), side, 0.0, 1.0, rising=False)


def _least(count: int, messages: int, side: float) -> float:
    """The share at which any of 1/share keys has a count this large with probability `side`."""
    if count < 2:
        return 0.0
    highest = (count - 1) / max(messages - 1, 1)
    return _crossing(
        lambda share: beta_part(count, messages - count + 1, share) / share, side, 0.0, highest, rising=True
    )


def _crossing(chance: Callable[[float], float], side: float, low: float, high: float, *, rising: bool) -> float:
    """The share at which a monotonic probability is `side`, by bisection."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if (chance(middle) < side) == rising:
            low = middle
        else:
            high = middle
    return (low + high) / 2
