"""A mergeable sample of distinct keys with exact counts."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.counting.sketches import DistinctSketch, Hashes, hashes_of


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
