"""Keys to the mini-partitions of a stage: so many for each worker, which move as a whole."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.stage.conditions.settings import even_owners

MOST = 2**22
"""No stage has more partitions; such a number is a slip."""

OTHER = {HashName.MURMUR3: HashName.XXHASH64, HashName.XXHASH64: HashName.MURMUR3}
"""Spreads the keys that a hash brought together."""


@dataclass(frozen=True, slots=True)
class MiniPartitions:
    """Partitions 0 .. k-1 begin at worker 0, the next k at worker 1, and so on.

    Without a partitioner the hash of a key decides both. With one, its channel is the worker where the key begins, and
    another hash spreads the keys of a channel over its partitions: the partitioner's own would leave most of them
    empty, since it is what brought these keys together. Keys that are to be routed by themselves have the first
    partitions, one each, and the hash of any other key decides among the rest.

    Attributes:
        workers: n.
        per_worker: k.
        hash: Of keys; that of the partitioner, if there is one.
        partitioner: From keys to workers; none if not given.
        own: Keys with a partition each, which is what they are mapped to: 0 and up; without a partitioner alone.
    """

    workers: int
    per_worker: int
    hash: HashName = HashName.MURMUR3
    partitioner: Partitioner | None = None
    own: ExplicitMap | None = None

    def __post_init__(self) -> None:
        if self.per_worker < 1:
            raise UsageError(f"a worker cannot have {self.per_worker} partitions; give it 1 or more")
        if self.workers * self.per_worker > MOST:
            raise UsageError(
                f"{self.workers:,} workers with {self.per_worker:,} partitions each are more than the {MOST:,} partitions"
                " there may be; give fewer"
            )

    @property
    def owners(self) -> NDArray[np.int32]:
        """The worker of each partition at the start, shape (partitions,)."""
        return even_owners(self.workers, self.per_worker)

    def partitions_of(self, keys: pa.Array) -> NDArray[np.int32]:
        """The partition of each key of a column, which may be encoded by a dictionary; null is a key."""
        if isinstance(keys, pa.DictionaryArray):
            words, codes = words_of(keys)
            return np.asarray(self.partitions_of(words)[codes])
        if self.own:
            rows, first = self.own.rows_of(keys), len(self.own)
            hashed = HASHES[self.hash].modulo(keys, self.workers * self.per_worker - first) + np.int32(first)
            return np.asarray(np.where(rows >= 0, self.own.channels[rows], hashed), np.int32)
        if self.partitioner is None:
            return HASHES[self.hash].modulo(keys, self.workers * self.per_worker)
        within = HASHES[OTHER[self.hash]].modulo(keys, self.per_worker)
        return np.asarray(self.partitioner.channels_of(keys) * np.int32(self.per_worker) + within, np.int32)


def words_of(column: pa.Array) -> tuple[pa.Array, Any]:
    """The values of a column, those of a dictionary once, and which of them each row has."""
    if not isinstance(column, pa.DictionaryArray):
        return column, slice(None)
    words, codes = column.dictionary, column.indices
    if codes.null_count:
        words = pa.concat_arrays([words, pa.nulls(1, words.type)])
        codes = codes.fill_null(pa.scalar(len(words) - 1, codes.type))
    return words, codes.to_numpy(zero_copy_only=False)
