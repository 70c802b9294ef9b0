"""Records of a topic by key and partition."""

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.engines.names import Engine
from adapt.core.engines.registry import placement_of
from adapt.core.keys.partitioner import AtRandom, random_keys
from adapt.core.stream import KeyType


@dataclass(frozen=True, slots=True)
class KeyPartitions:
    """Records of some keys, by the partition that they lie in."""

    keys: pa.Array  # distinct keys; null is a key of its own
    key: NDArray[np.int64]  # row of the key of each cell, rising; shape (cells,)
    partition: NDArray[np.int64]  # partition of each cell, from 0; shape (cells,)
    records: NDArray[np.int64]  # records of each cell, from 1; shape (cells,)
    stands_for: NDArray[np.float64]  # how many keys of the topic each key represents; shape (keys,)
    loads: NDArray[np.int64]  # records of each partition, of all keys; shape (partitions,)
    key_type: KeyType  # the type of the keys in their source

    @classmethod
    def from_table(
        cls, cells: pa.Table, loads: NDArray[np.int64], stands_for: NDArray[np.float64], key_type: KeyType
    ) -> "KeyPartitions":
        """The cells of a table of key, partition and records.

        Args:
            stands_for: As above, for each row of the table.
        """
        column = cells["key"].combine_chunks().dictionary_encode(null_encoding="encode")
        codes, places = column.indices.to_numpy(), cells["partition"].to_numpy()
        order = np.lexsort((places, codes))
        weights = np.ones(len(column.dictionary))
        weights[codes] = stands_for
        records = cells["records"].to_numpy()[order]
        rows, at = codes[order].astype(np.int64), places[order].astype(np.int64)
        return cls(column.dictionary, rows, at, records, weights, loads, key_type)

    @property
    def is_plain(self) -> NDArray[np.bool_]:
        """Mask of the keys that are neither null nor empty.

        Every client hashes these. Shape (keys,).
        """
        return ~random_keys(AtRandom.NULL_AND_EMPTY, self.keys)

    @property
    def starts(self) -> NDArray[np.int64]:
        """First cell of each key; shape (keys,)."""
        return np.searchsorted(self.key, np.arange(len(self.keys)))

    def of_keys(self, mask: NDArray[np.bool_]) -> "KeyPartitions":
        """The cells of some keys, with the same loads."""
        cells, rows = mask[self.key], np.cumsum(mask) - 1
        return replace(
            self,
            keys=self.keys.filter(pa.array(mask)),
            key=rows[self.key[cells]],
            partition=self.partition[cells],
            records=self.records[cells],
            stands_for=self.stands_for[mask],
        )

    def homes(self, engine: Engine, partitions: int) -> NDArray[np.int64]:
        """Where an engine places each key; shape (keys,)."""
        placed = placement_of(engine, partitions, key_type=self.key_type)
        return placed.channels_of(self.keys).astype(np.int64)
