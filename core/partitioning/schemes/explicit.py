"""The explicit map of a partitioner: tracked keys, each with a channel of its own."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.columns import ARROW_TYPES, column_of, key_type_of, one_array
from adapt.core.keys.hashes import HashedKeys
from adapt.core.keys.key_index import KeyIndex
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import Channels
from adapt.core.stream import Key, KeyType


class ExplicitMap(Mapping[Key, int]):
    """Keys with their channels, in key order (null, then by bytes or value): two columns, readable as a mapping.

    Source: partitioning functions, section 4.1 (H_p).

    Attributes:
        column: The keys, distinct, of one type; one of them may be null. Shape (keys,).
        channels: Their channels, read-only. Shape (keys,).
    """

    column: pa.Array
    channels: Channels

    def __init__(self, column: pa.Array | pa.ChunkedArray, channels: ArrayLike) -> None:
        """Give each key of a column the channel of the same row.

        Raises:
            ValueError: the columns differ in length, or the keys are none of string, int64 and binary.
            BadInput: a key stands twice, or a channel is negative or 2^31 and more.
        """
        keys, owners = one_array(column), np.asarray(channels, np.int64)
        if len(keys) != len(owners):
            raise ValueError(f"{len(keys)} keys do not fit {len(owners)} channels")
        keys = keys.cast(ARROW_TYPES[key_type_of(keys.type)])
        order = pc.array_sort_indices(keys, null_placement="at_start")
        self.column, owners = keys.take(order), owners[order.to_numpy()]
        self.channels = owners.astype(np.int32)
        self.channels.flags.writeable = False
        self._index = KeyIndex(self.column)
        self._dictionary: Mapping[Key, int] | None = None
        _refuse_twins(self.column)
        refuse_out_of_range(self.column, owners, 2**31 - 1)

    @classmethod
    def from_mapping(cls, mapping: Mapping[Key, int], key_type: KeyType | None = None) -> "ExplicitMap":
        """The map that holds what a mapping holds; `key_type` decides where it has no key but null.

        Raises:
            UsageError: the keys are of several types, or not of `key_type`.
        """
        if isinstance(mapping, ExplicitMap) and key_type in (None, mapping.key_type):
            return mapping
        types = {key_type_of(column_of(key).type) for key in mapping if key is not None}
        types |= {key_type} if key_type else set()
        if len(types) > 1:
            raise UsageError(f"the keys of an explicit map are of one type, not {' and '.join(sorted(types))}")
        arrow = ARROW_TYPES[types.pop() if types else KeyType.STRING]
        return cls(pa.array(list(mapping), arrow), list(mapping.values()))

    def over(self, others: "ExplicitMap") -> "ExplicitMap":
        """This map, and the entries of another for keys that this one does not have; both are of one type of keys."""
        added = others.column.cast(self.column.type)
        absent = ~np.asarray(pc.is_in(added, value_set=self.column).to_numpy(zero_copy_only=False))
        if not absent.any():
            return self
        column = pa.concat_arrays([self.column, added.filter(pa.array(absent))])
        return ExplicitMap(column, np.concatenate((self.channels, others.channels[absent])))

    @property
    def key_type(self) -> KeyType:
        """The type of the keys; string if there are none and none was given."""
        return key_type_of(self.column.type)

    @property
    def of_null(self) -> int | None:
        """The channel of the null key, if it has one."""
        return int(self.channels[0]) if self.column.null_count else None

    def rows_of(self, keys: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
        """The row of this map at which each of `keys` stands, or -1; null matches null. Shape (rows,).

        Raises:
            UsageError: this map holds keys of another type.
        """
        return self.rows_of_hashed(HashedKeys.from_column(keys, HashName.MURMUR3), keys.type)

    def rows_of_hashed(self, keys: HashedKeys, kind: pa.DataType) -> NDArray[np.int32]:
        """As `rows_of`, for keys of an Arrow type `kind` that are hashed already."""
        self.refuse_other_type(kind)
        return self._index.rows_of(keys)

    def refuse_other_type(self, kind: pa.DataType) -> None:
        """Do nothing if a column of this Arrow type may be looked up; null alone is of any type.

        Raises:
            UsageError: this map holds keys of another type.
        """
        if self.column.null_count < len(self) and not self._holds_type(kind):
            raise UsageError(f"the column has {key_type_of(kind)} keys, but the explicit map has {self.key_type} keys")

    def _holds_type(self, kind: pa.DataType) -> bool:
        return key_type_of(kind) is self.key_type

    def _as_dictionary(self) -> Mapping[Key, int]:
        if self._dictionary is None:
            pairs = zip(self.column.to_pylist(), self.channels.tolist(), strict=True)
            self._dictionary = MappingProxyType(dict(pairs))
        return self._dictionary

    def __getitem__(self, key: Key) -> int:
        return self._as_dictionary()[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._as_dictionary())

    def __len__(self) -> int:
        return len(self.column)

    def __repr__(self) -> str:
        return f"ExplicitMap({len(self)} {self.key_type} keys)"

    def __reduce__(self) -> tuple[type["ExplicitMap"], tuple[pa.Array, Channels]]:
        return ExplicitMap, (self.column, self.channels)


def refuse_out_of_range(keys: pa.Array, channels: ArrayLike, n: int) -> None:
    """Do nothing if every channel is in [0, n).

    Raises:
        BadInput: one is not; the first such key is named.
    """
    owners = np.asarray(channels)
    outside = np.flatnonzero((owners < 0) | (owners >= n))
    if len(outside):
        key, owner = keys[int(outside[0])].as_py(), owners[outside[0]]
        raise BadInput(f"key {key!r} is mapped to channel {owner}, but channels run from 0 to {n - 1}")


def _refuse_twins(ordered: pa.Array) -> None:
    twins = pc.equal(ordered[1:], ordered[:-1]).fill_null(False).to_numpy(zero_copy_only=False)
    if twins.any():
        raise BadInput(f"key {ordered[int(twins.argmax())].as_py()!r} has two explicit channels")
    if ordered.null_count > 1:
        raise BadInput("the null key has two explicit channels")
