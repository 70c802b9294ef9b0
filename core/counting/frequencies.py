"""Counted keys: what every counter returns, exact or lossy."""

from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.counting.names import CountMethod
from adapt.core.errors import UsageError, did_you_mean
from adapt.core.keys.columns import key_type_of
from adapt.core.keys.hashes import HashedKeys
from adapt.core.keys.key_index import KeyIndex
from adapt.core.keys.names import HashName
from adapt.core.stream import KeyType, Weight

Counts: TypeAlias = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MeasuredColumn:
    """What a column adds up to, key by key.

    Attributes:
        values: The sum over the rows of each listed key, from 0; shape (keys,).
        total: The sum over all rows, listed or not.
    """

    source: str
    values: NDArray[np.float64]
    total: float

    @property
    def unlisted(self) -> float:
        """What is on keys that are not listed; 0 where the two sums differ by no more than rounding."""
        left = self.total - float(self.values.sum())
        return left if left > 1e-9 * self.total else 0.0


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The counted keys of a stream, by falling count, then key bytes; null comes before every other key of its count.

    Attributes:
        keys: The listed keys, distinct; string, int64 or binary; one of them may be null. Shape (keys,).
        count_low: No key weighs less, shape (keys,); int64 for counts and bytes, float64 for cost.
        count_high: No key weighs more, shape (keys,). Exact counters give `count_low` itself.
        total: The weight of all rows, listed or not.
        epsilon: Error bound as a share of `total`: true - epsilon * total <= count_low <= true; 0 if exact.
        complete_above: Every key that weighs more than this is listed; 0 if exact.
        distinct: Number of distinct keys, estimated unless `epsilon` is 0.
        measured: Columns that were added up for the listed keys beside their counts, each under a name of its own.
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
    _index: KeyIndex = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not len(self.keys) == len(self.count_low) == len(self.count_high):
            raise ValueError(
                f"{len(self.keys)} keys do not fit {len(self.count_low)} and {len(self.count_high)} counts"
            )
        for column in self.measured:
            if len(column.values) != len(self.keys):
                raise ValueError(f"{len(self.keys)} keys do not fit {len(column.values)} values of {column.source!r}")
        object.__setattr__(self, "_index", KeyIndex(self.keys))

    @property
    def exact(self) -> bool:
        """Whether an exact counter made these; a lossy one may have dropped nothing all the same."""
        return self.epsilon == 0

    def as_counted(self) -> dict[str, Any]:
        """How the keys were counted, as JSON data for whatever is built from the counts."""
        if self.exact:
            return {"weight": self.weight.value, "counts": CountMethod.EXACT.value}
        bounds = {"epsilon": self.epsilon, "complete_above": self.complete_above}
        return {"weight": self.weight.value, "counts": CountMethod.LOSSY.value, **bounds}

    def intervals(self, keys: pa.Array) -> tuple[Counts, Counts]:
        """The least and the most that each of some keys weighs, listed or not; shapes (keys,).

        Raises:
            ValueError: the keys are of another type.
        """
        rows = self.rows_of(keys)
        if not len(self.keys):
            return np.zeros(len(keys)), np.full(len(keys), self.complete_above)
        low = np.where(rows >= 0, self.count_low[rows], 0)
        return low, np.where(rows >= 0, self.count_high[rows], self.complete_above)

    def rows_of(self, keys: pa.Array) -> NDArray[np.int32]:
        """The row of each of some keys among the listed ones, -1 where it is not listed; shape (keys,).

        Raises:
            ValueError: the keys are of another type.
        """
        if key_type_of(keys.type) is not self.key_type:
            raise ValueError(f"{keys.type} keys are not among {self.key_type} keys")
        if not len(self.keys):
            return np.full(len(keys), -1, np.int32)
        return self._index.rows_of(HashedKeys.from_column(keys, HashName.MURMUR3))

    def column(self, source: str) -> MeasuredColumn:
        """The measured column of a name; exact counts are one, under the name of their weight.

        Raises:
            UsageError: nothing of that name was measured; the sentence has what was.
        """
        known = {column.source: column for column in self.measured}
        if source not in known and source == self.weight and self.exact:
            return MeasuredColumn(source, self.count_low.astype(np.float64), self.total)
        if source not in known:
            names = sorted({*known, *([self.weight.value] if self.exact else [])})
            raise UsageError(f"nothing was measured as {source!r}{did_you_mean(source, names)}")
        return known[source]

    def above(self, support: float) -> "Frequencies":
        """Only the keys that a counter reports for this support: those with count_low >= (support - epsilon) total.

        Every key whose share is at least `support` is among them.

        Raises:
            UsageError: a share of `support` cannot be told from the error.

        Source: Manku and Motwani; partitioning functions, decision 18.
        """
        check_support(support, self.epsilon)
        shares = self.count_low / (self.total or 1.0)  # as shares are shown: 7 of 100 reach 0.07
        kept = int(np.count_nonzero(shares >= support - self.epsilon))
        if kept == len(self.keys):
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
        """The type of the keys."""
        return key_type_of(self.keys.type)


def check_support(support: float, epsilon: float) -> None:
    """Refuse a share that a counter of this error cannot tell from nothing.

    Raises:
        UsageError: it is not above epsilon, or not a share.
    """
    if not epsilon < support <= 1:
        raise UsageError(
            f"support {support:g} is not above epsilon ({epsilon:g}) and at most 1: a key of that share could not be"
            f" told from one that is not there; give a support from {2 * epsilon:.2g} up, or a smaller epsilon"
        )
