"""Counted keys: what every counter returns, exact or lossy."""

from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.frequencies.names import CountMethod
from adapt.core.hashing.columns import key_type_of
from adapt.core.hashing.hashes import HashedKeys
from adapt.core.hashing.key_index import KeyIndex
from adapt.core.hashing.names import HashName
from adapt.core.stream import KeyType, Weight

Counts: TypeAlias = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Frequencies:
    """The counted keys of a stream, by falling count, then key bytes; null comes before every other key of its count.

    Attributes:
        keys: The listed keys, distinct; string, int64 or binary; one of them may be null. Shape (keys,).
        count_low: No key weighs less, shape (keys,); int64 for counts and bytes, float64 for cost.
        count_high: No key weighs more, shape (keys,). Exact counters give `count_low` itself.
        total: The weight of all rows, listed or not.
        rows: The rows counted.
        weight: What a row weighs.
        epsilon: Error bound as a share of `total`: true - epsilon * total <= count_low <= true; 0 if exact.
        complete_above: Every key that weighs more than this is listed; 0 if exact.
        distinct: Number of distinct keys, estimated unless `epsilon` is 0.
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
    _index: KeyIndex = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not len(self.keys) == len(self.count_low) == len(self.count_high):
            raise ValueError(
                f"{len(self.keys)} keys do not fit {len(self.count_low)} and {len(self.count_high)} counts"
            )
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
        if key_type_of(keys.type) is not self.key_type:
            raise ValueError(f"{keys.type} keys are not among {self.key_type} keys")
        if not len(self.keys):
            return np.zeros(len(keys)), np.full(len(keys), self.complete_above)
        at = self._index.rows_of(HashedKeys.of(keys, HashName.MURMUR3))
        return np.where(at >= 0, self.count_low[at], 0), np.where(at >= 0, self.count_high[at], self.complete_above)

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
