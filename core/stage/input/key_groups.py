"""Keys of a trace as the groups of a stage."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.keys.hashes import HashedKeys
from adapt.core.keys.key_index import KeyIndex
from adapt.core.keys.names import HashName
from adapt.core.stage.input.mini_partitions import MiniPartitions, words_of


@dataclass(frozen=True, slots=True)
class KeyGroups:
    """The distinct keys of a trace, each a group."""

    keys: pa.Array  # distinct keys; a key's position is its group. Shape (keys,)
    index: KeyIndex

    @classmethod
    def from_columns(cls, columns: Iterable[pa.Array]) -> "KeyGroups":
        """Groups of the keys of several columns."""
        known = pc.unique(pa.concat_arrays([distinct(column) for column in columns]))
        return cls(known, KeyIndex(known))

    def groups_of(self, keys: pa.Array) -> NDArray[np.int32]:
        """Group of each key of a plain or dictionary-encoded column, shape (rows,)."""
        words, codes = words_of(keys)
        return np.asarray(self.index.rows_of(HashedKeys.from_column(words, HashName.MURMUR3))[codes])

    def partitions_by(self, partitions: MiniPartitions) -> NDArray[np.int32]:
        """The partition of each key, shape (keys,)."""
        return partitions.partitions_of(self.keys)


def distinct(column: pa.Array) -> pa.Array:
    """Distinct values of a column."""
    found = pc.unique(column)
    return found.dictionary_decode() if isinstance(found, pa.DictionaryArray) else found
