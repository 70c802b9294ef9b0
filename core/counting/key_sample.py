"""A sample of the distinct keys of a stream, each with its exact counts: it merges, and tells how keys come again."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.counting.sketches import DistinctSketch, Hashes, hashes_of


@dataclass(frozen=True, slots=True)
class KeySample:
    """The keys with the k smallest hashes, and how often each came in the first and the second part of the stream.

    Every distinct key is as likely to be among them as any other, however often it comes. The counts are exact: a key
    that is among the k smallest of the whole was among the k smallest of every part that it came in.

    Attributes:
        hashes: Rising, distinct; at most `limit` of them.
        first, second: Rows of each key in the two parts; shapes as `hashes`.
        limit: k.
    """

    hashes: Hashes
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    limit: int = 2048

    @classmethod
    def from_counts(
        cls, keys: pa.Array, first: NDArray[np.int64], second: NDArray[np.int64], limit: int = 2048
    ) -> "KeySample":
        """The sample of distinct keys (one may be null) and their counts."""
        hashes = hashes_of(keys)
        if len(hashes) > 2 * limit:
            near = hashes <= np.partition(hashes, limit)[limit]
            sample = cls._smallest(hashes[near], first[near], second[near], limit)
            if len(sample.hashes) == limit:  # fewer only if hashes collide
                return sample
        return cls._smallest(hashes, first, second, limit)

    @classmethod
    def _smallest(cls, hashes: Hashes, first: NDArray[np.int64], second: NDArray[np.int64], limit: int) -> "KeySample":
        """The smallest of some hashes, counts of equal ones added up."""
        smallest, at = np.unique(hashes, return_inverse=True)
        sums = []
        for counts in (first, second):
            total = np.zeros(len(smallest), np.int64)
            np.add.at(total, at, counts)
            sums.append(total[:limit])
        return cls(smallest[:limit], sums[0], sums[1], limit)

    def merged(self, other: "KeySample") -> "KeySample":
        """The sample of both streams, first parts with first parts."""
        return KeySample._smallest(
            np.concatenate((self.hashes, other.hashes)),
            np.concatenate((self.first, other.first)),
            np.concatenate((self.second, other.second)),
            min(self.limit, other.limit),
        )

    def distinct(self) -> DistinctSketch:
        """How many distinct keys there are, as a sketch."""
        return DistinctSketch(self.hashes, self.limit)

    def again(self) -> tuple[int, int]:
        """How many sampled keys came in the first part, and how many of these in the second too."""
        came = self.first > 0
        return int(came.sum()), int((came & (self.second > 0)).sum())

    def again_by_chance(self, share: float) -> float | None:
        """The share of the first part's keys that would come again in the second, were all rows shuffled.

        A key of c rows is then in the first part with probability 1 - (1 - share)^c, and in the first alone with
        share^c.

        Args:
            share: The part of all rows that is in the first part.

        Returns:
            None where there are no keys.
        """
        counts = self.first + self.second
        in_first = 1 - (1 - share) ** counts
        in_both = in_first - share**counts
        return float(in_both.sum() / in_first.sum()) if in_first.sum() > 0 else None
