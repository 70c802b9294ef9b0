"""Mergeable sketches of keys: heavy hitters and distinct count."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.counting.key_order import heaviest
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
        """The top `most` of these, ties by key bytes."""
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
