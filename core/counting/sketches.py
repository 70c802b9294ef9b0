"""Mergeable sketches of keys: heavy hitters, samples, distinct count."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.counting.frequencies import heaviest, key_order
from adapt.core.keys.hashes import HashedKeys
from adapt.core.keys.names import HashName

Hashes: TypeAlias = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class HeavyKeys:
    """The top keys (heavy hitters) of some rows.

    For every key: count <= true count <= count + missed (an unlisted key counts 0).
    """

    keys: pa.Array  # keys, counts: listed keys by descending count, then key bytes; shape (keys,)
    counts: NDArray[np.int64]
    missed: int = 0  # the largest weight of any key beyond its count here

    @classmethod
    def from_column(cls, keys: pa.Array, most: int) -> "HeavyKeys":
        """The top `most` keys of a column, counted exactly."""
        counted = keys.value_counts()
        return cls(counted.field("values"), counted.field("counts").to_numpy(), 0).cut(most)

    def cut(self, most: int) -> "HeavyKeys":
        """The `most` heaviest of these.

        Equal ones in the order of the bytes of their keys.
        """
        order = heaviest(self.keys, self.counts, most + 1)
        kept, dropped = order[:most], order[most:]
        missed = self.missed + (int(self.counts[dropped[0]]) if len(dropped) else 0)
        return HeavyKeys(self.keys.take(pa.array(kept)), self.counts[kept], missed)


def merge_heavy(summaries: Iterable[HeavyKeys]) -> HeavyKeys:
    """Merge summaries; errors add up."""
    parts = list(summaries)
    if not parts:
        raise ValueError("no summaries to merge")
    keys, each = pa.concat_arrays([part.keys for part in parts]), np.concatenate([part.counts for part in parts])
    table = pa.table({"key": keys, "count": each})
    summed = table.group_by("key", use_threads=False).aggregate([("count", "sum")])
    counts = summed["count_sum"].combine_chunks().to_numpy()
    merged = HeavyKeys(summed["key"].combine_chunks(), counts, sum(part.missed for part in parts))
    return merged.cut(len(counts))


@dataclass(frozen=True, slots=True)
class DistinctSketch:
    """The k smallest hashes of distinct keys (k minimum values)."""

    smallest: Hashes  # ascending, distinct; at most `limit` of them
    limit: int = 2048  # k; the estimate's relative standard error is about 1 / sqrt(k - 2)

    @classmethod
    def from_hashes(cls, hashes: Hashes, limit: int = 2048) -> "DistinctSketch":
        """The sketch of hashed keys, which may repeat."""
        ordered = np.sort(hashes)
        return cls(ordered[np.diff(ordered, prepend=~ordered[:1]) != 0][:limit], limit)

    @classmethod
    def empty(cls, limit: int = 2048) -> "DistinctSketch":
        """The sketch of no keys."""
        return cls(np.zeros(0, np.uint64), limit)

    def merged(self, other: "DistinctSketch") -> "DistinctSketch":
        """The sketch of both streams."""
        return DistinctSketch.from_hashes(np.concatenate((self.smallest, other.smallest)), min(self.limit, other.limit))

    def with_keys(self, keys: pa.Array | HashedKeys) -> "DistinctSketch":
        """The sketch after more keys, which may repeat."""
        hashes = hashes_of(keys)
        if len(self.smallest) == self.limit:  # the path of nearly all keys of a long stream
            hashes = hashes[hashes < self.smallest[-1]]
        return DistinctSketch.from_hashes(np.concatenate((self.smallest, hashes)), self.limit) if len(hashes) else self

    def estimate(self) -> int:
        """The number of distinct keys; exact below `limit`."""
        if len(self.smallest) < self.limit:
            return len(self.smallest)
        return max(self.limit, round((self.limit - 1) * 2.0**64 / (float(self.smallest[-1]) + 1.0)))


def hashes_of(keys: pa.Array | HashedKeys) -> Hashes:
    """The hashes for sampling, shape (keys,)."""
    hashed = keys if isinstance(keys, HashedKeys) else hashed_keys(keys)
    # null and the empty key hash alike; null gets a hash of its own
    return hashed.high if hashed.missing is None else np.where(hashed.missing, np.uint64(42), hashed.high)


def hashed_keys(keys: pa.Array) -> HashedKeys:
    """The keys, hashed as sketches hash them."""
    return HashedKeys.from_column(keys, HashName.XXHASH64)


@dataclass(frozen=True, slots=True)
class KeySample:
    """The keys with the k smallest hashes, counted in two parts.

    Every distinct key is equally likely to be sampled. Counts are exact: a key among the k smallest of the whole is
    among the k smallest of each part.
    """

    hashes: Hashes  # ascending, distinct; at most `limit` of them
    first: NDArray[np.int64]  # first, second: rows of each key in the two parts; shapes as `hashes`
    second: NDArray[np.int64]
    limit: int = 2048  # k

    @classmethod
    def from_counts(
        cls, keys: pa.Array, first: NDArray[np.int64], second: NDArray[np.int64], limit: int = 2048
    ) -> "KeySample":
        """The sample of distinct keys (one may be null) and their counts."""
        hashes = hashes_of(keys)
        if len(hashes) > 2 * limit:
            near = hashes <= np.partition(hashes, limit)[limit]
            sample = cls._smallest(hashes[near], first[near], second[near], limit)
            if len(sample.hashes) == limit:  # fewer only on hash collisions
                return sample
        return cls._smallest(hashes, first, second, limit)

    @classmethod
    def _smallest(cls, hashes: Hashes, first: NDArray[np.int64], second: NDArray[np.int64], limit: int) -> "KeySample":
        """The smallest hashes, counts of equal ones added."""
        smallest, at = np.unique(hashes, return_inverse=True)
        sums = []
        for counts in (first, second):
            total = np.zeros(len(smallest), np.int64)
            np.add.at(total, at, counts)
            sums.append(total[:limit])
        return cls(smallest[:limit], sums[0], sums[1], limit)

    def merged(self, other: "KeySample") -> "KeySample":
        """The sample of both streams, parts merged in order."""
        return KeySample._smallest(
            np.concatenate((self.hashes, other.hashes)),
            np.concatenate((self.first, other.first)),
            np.concatenate((self.second, other.second)),
            min(self.limit, other.limit),
        )

    def distinct(self) -> DistinctSketch:
        """The number of distinct keys, as a sketch."""
        return DistinctSketch(self.hashes, self.limit)

    def again(self) -> tuple[int, int]:
        """Sampled keys in the first part, and in both parts."""
        came = self.first > 0
        return int(came.sum()), int((came & (self.second > 0)).sum())

    def again_by_chance(self, share: float) -> float | None:
        """The share of keys that would recur if rows were shuffled.

        A key of c rows is then in the first part with probability 1 - (1 - share)^c, and only there with share^c.

        Args:
            share: The first part's share of the rows.

        Returns:
            None where there are no keys.
        """
        counts = self.first + self.second
        in_first = 1 - (1 - share) ** counts
        in_both = in_first - share**counts
        return float(in_both.sum() / in_first.sum()) if in_first.sum() > 0 else None


MOST_KEYS = 1 << 16
"""Keys kept when twice as many have accumulated."""

_KEY = "key"


@dataclass(slots=True)
class HeavySums:
    """Sums several amounts per key.

    For every key: reported amounts <= true amounts, and reported weight + `missed` >= true weight, the sum of the first
    `weighing` amounts. The result depends on the order of the summaries.
    """

    amounts: Sequence[str]
    weighing: int = 1  # how many of the first amounts make up the weight that keys are ranked by
    missed: int = 0  # the largest weight that any key may have beyond what is reported
    _held: list[pa.Table] = field(default_factory=list)
    _keys: int = 0

    def add(self, keys: pa.Array, amounts: Mapping[str, NDArray[np.int64]], missed: int) -> None:
        """Add a summary; `missed` is the largest unreported weight of any key."""
        self._hold(pa.table({_KEY: keys, **{name: amounts[name] for name in self.amounts}}))
        self.missed += missed
        if self._keys > 2 * MOST_KEYS:
            self._cut()

    def done(self) -> tuple[pa.Array, dict[str, NDArray[np.int64]]]:
        """Distinct keys by descending weight, then key bytes, with their amounts."""
        keys, amounts = self._summed()
        order = key_order(keys, self._weights(amounts))
        return keys.take(pa.array(order)), {name: amount[order] for name, amount in amounts.items()}

    def top(self, most: int) -> tuple[pa.Array, dict[str, NDArray[np.int64]], int]:
        """The first keys of `done`, with their amounts.

        Last comes the largest weight that any key may have beyond what is reported.
        """
        keys, amounts = self.done()
        dropped = int(self._weights(amounts)[most]) if len(keys) > most else 0
        return keys[:most], {name: amount[:most] for name, amount in amounts.items()}, self.missed + dropped

    def _cut(self) -> None:
        keys, amounts = self._summed()
        self._held, self._keys = [], 0
        weights = self._weights(amounts)
        order = heaviest(keys, weights, MOST_KEYS + 1)
        kept, dropped = order[:MOST_KEYS], order[MOST_KEYS:]
        self.missed += int(weights[dropped[0]]) if len(dropped) else 0
        held = {name: amount[kept] for name, amount in amounts.items()}
        self._hold(pa.table({_KEY: keys.take(pa.array(kept)), **held}))

    def _hold(self, table: pa.Table) -> None:
        self._held.append(table)
        self._keys += len(table)

    def _summed(self) -> tuple[pa.Array, dict[str, NDArray[np.int64]]]:
        joined = pa.concat_tables(self._held)
        summed: Any = joined.group_by(_KEY, use_threads=False).aggregate([(name, "sum") for name in self.amounts])
        amounts = {name: summed[f"{name}_sum"].combine_chunks().to_numpy() for name in self.amounts}
        return summed[_KEY].combine_chunks(), amounts

    def _weights(self, amounts: Mapping[str, NDArray[np.int64]]) -> NDArray[np.int64]:
        weights: NDArray[np.int64] = np.sum([amounts[name] for name in self.amounts[: self.weighing]], axis=0)
        return weights
