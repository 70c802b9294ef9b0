"""Explicit map of a partitioner: the pinned keys with their channels."""

import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import ArrayLike, NDArray

from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.columns import ARROW_TYPES, column_of, key_type_of, one_array, type_of
from adapt.core.keys.hashes import HashedKeys
from adapt.core.keys.key_index import KeyIndex
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import Channels
from adapt.core.stream import Key, KeyType


class ExplicitMap(Mapping[Key, int]):
    """Pinned keys with their channels, in key order.

    Two columns, readable as a mapping.

    Source: partitioning functions, section 4.1 (H_p).
    """

    column: pa.Array  # the keys, distinct, of one type; one of them may be null. Shape (keys,)
    channels: Channels  # their channels, read-only. Shape (keys,)

    def __init__(self, column: pa.Array | pa.ChunkedArray, channels: ArrayLike) -> None:
        """Give each key of a column the channel of the same row."""
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
        self._held = self.key_type if self.column.null_count < len(self) else None  # the type of keys but null
        _refuse_twins(self.column)
        refuse_out_of_range(self.column, owners, 2**31 - 1)

    @classmethod
    def from_mapping(cls, mapping: Mapping[Key, int], key_type: KeyType | None = None) -> "ExplicitMap":
        """The explicit map of a mapping.

        `key_type` is that of a mapping without keys but null.
        """
        if isinstance(mapping, ExplicitMap) and key_type in (None, mapping.key_type):
            return mapping
        types = {key_type_of(column_of(key).type) for key in mapping if key is not None}
        types |= {key_type} if key_type else set()
        if len(types) > 1:
            raise UsageError(f"pinned keys must have one type (got {' and '.join(sorted(types))})")
        arrow = ARROW_TYPES[types.pop() if types else KeyType.STRING]
        return cls(pa.array(list(mapping), arrow), list(mapping.values()))

    def over(self, others: "ExplicitMap") -> "ExplicitMap":
        """This map, with another's entries for keys that it lacks.

        Both have one type of keys.
        """
        added = others.column.cast(self.column.type)
        absent = ~np.asarray(pc.is_in(added, value_set=self.column).to_numpy(zero_copy_only=False))
        if not absent.any():
            return self
        column = pa.concat_arrays([self.column, added.filter(pa.array(absent))])
        return ExplicitMap(column, np.concatenate((self.channels, others.channels[absent])))

    @property
    def key_type(self) -> KeyType:
        """The type of the keys; string if the map is empty."""
        return key_type_of(self.column.type)

    @property
    def of_null(self) -> int | None:
        """The channel of the null key, if it has one."""
        return int(self.channels[0]) if self.column.null_count else None

    def rows_of(self, keys: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
        """The row of each key in this map, or -1.

        Null matches null. Shape (rows,).
        """
        return self.rows_of_hashed(HashedKeys.from_column(keys, HashName.MURMUR3), keys.type)

    def rows_of_hashed(self, keys: HashedKeys, kind: pa.DataType) -> NDArray[np.int32]:
        """As `rows_of`, for hashed keys of an Arrow type."""
        self.refuse_other_type(kind)
        return self._index.rows_of(keys)

    def refuse_other_type(self, kind: pa.DataType) -> None:
        """Check that this map can look up an Arrow type.

        Null has every type.
        """
        if self._held and key_type_of(kind) is not self._held:
            raise UsageError(f"the column has {key_type_of(kind)} keys, but the pinned keys are {self.key_type}")

    def _as_dictionary(self) -> Mapping[Key, int]:
        if self._dictionary is None:
            pairs = zip(self.column.to_pylist(), self.channels.tolist(), strict=True)
            self._dictionary = MappingProxyType(dict(pairs))
        return self._dictionary

    def __getitem__(self, key: Key) -> int:
        return self._as_dictionary()[key]

    def pinned(self, key: Key) -> int | None:
        """The channel of a pinned key, None of another.

        Raises as `rows_of` does.
        """
        found = self._as_dictionary().get(key)
        if found is None and key is not None and self._held and type_of(key) is not self._held:
            self.refuse_other_type(column_of(key).type)
        return found

    def __iter__(self) -> Iterator[Key]:
        return iter(self._as_dictionary())

    def __len__(self) -> int:
        return len(self.column)

    def __repr__(self) -> str:
        return f"ExplicitMap({len(self)} {self.key_type} keys)"

    def __reduce__(self) -> tuple[type["ExplicitMap"], tuple[pa.Array, Channels]]:
        return ExplicitMap, (self.column, self.channels)


def beyond(key: Key, channel: int, channels: int) -> str:
    """The error of a key pinned to a missing channel."""
    exist = "the only worker is 0" if channels == 1 else f"workers run from 0 to {channels - 1}"
    return f"key {key!r} is pinned to worker {channel}, but {exist}"


def refuse_out_of_range(keys: pa.Array, channels: ArrayLike, n: int) -> None:
    """Check that every channel is in [0, n)."""
    owners = np.asarray(channels)
    outside = np.flatnonzero((owners < 0) | (owners >= n))
    if len(outside):
        key, owner = keys[int(outside[0])].as_py(), owners[outside[0]]
        raise BadInput(beyond(key, owner, n))


def _refuse_twins(ordered: pa.Array) -> None:
    twins = pc.equal(ordered[1:], ordered[:-1]).fill_null(False).to_numpy(zero_copy_only=False)
    if twins.any():
        raise BadInput(f"key {ordered[int(twins.argmax())].as_py()!r} is pinned to two workers")
    if ordered.null_count > 1:
        raise BadInput("the null key is pinned to two workers")


_ESCAPED = r'[\x00-\x1f"\\]'
_TEXT = pa.large_string()
_DIGITS = np.array([f"{byte:02x}" for byte in range(256)], "S2")


def explicit_data(explicit: ExplicitMap) -> dict[str, int]:
    """Key text to channel, in key order, without the null key."""
    texts, channels = _texts_and_channels(explicit)
    return dict(zip(texts.to_pylist(), channels.to_pylist(), strict=True))


def explicit_json(explicit: ExplicitMap) -> bytes:
    """The same object, sorted by text, as JSON without spaces."""
    texts, channels = _texts_and_channels(explicit)
    order = pc.sort_indices(texts)
    quoted, channels = _quoted(texts.take(order)), channels.take(order).cast(_TEXT)
    entries = _side_by_side(_side_by_side(quoted, channels, ":"), "", ",")
    return b"{" + _joined(entries)[:-1] + b"}"


def _texts_and_channels(explicit: ExplicitMap) -> tuple[pa.Array, pa.Array]:
    """Of each key but null."""
    present = explicit.column.is_valid()
    return _texts(explicit.column.filter(present), explicit.key_type), pa.array(explicit.channels).filter(present)


def _texts(keys: pa.Array, key_type: KeyType) -> pa.Array:
    """The text of each key, as `key_to_text` gives it."""
    if key_type is not KeyType.BINARY:
        return keys.cast(_TEXT)
    column = keys.cast(pa.large_binary())
    digits = _DIGITS[np.frombuffer(_joined(column), np.uint8)].tobytes()
    lengths = pc.binary_length(column).to_numpy()
    offsets = np.concatenate(([0], np.cumsum(2 * lengths))).astype(np.int64)
    return pa.LargeStringArray.from_buffers(len(column), pa.py_buffer(offsets), pa.py_buffer(digits))


def _quoted(texts: pa.Array) -> pa.Array:
    """Each text quoted and escaped as JSON."""
    plain = _side_by_side("", texts, "", '"')
    escaped = pc.match_substring_regex(texts, _ESCAPED)
    if not pc.any(escaped).as_py():
        return plain
    spelt = [json.dumps(text, ensure_ascii=False) for text in texts.filter(escaped).to_pylist()]
    return pc.replace_with_mask(plain, escaped, pa.array(spelt, _TEXT))


def _side_by_side(*parts: pa.Array | str) -> pa.Array:
    """The parts of each row joined by the last part; a text is the same in every row."""
    return pc.binary_join_element_wise(*(pa.scalar(part, _TEXT) if isinstance(part, str) else part for part in parts))


def _joined(texts: pa.Array) -> bytes:
    """The bytes of all rows, one after the other."""
    if not len(texts):
        return b""
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int64, len(texts) + 1, texts.offset * 8)
    return bytes(memoryview(data)[int(ends[0]) : int(ends[-1])]) if data is not None else b""
