"""Key columns as bytes, the input of every hash."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.stream import Key, KeyType

Words: TypeAlias = NDArray[np.uint64]
"""Unsigned 64-bit words, shape (rows,)."""

_TYPES: dict[type, KeyType] = {str: KeyType.STRING, int: KeyType.INT64, bytes: KeyType.BINARY}
_STORED = {KeyType.STRING: pa.string(), KeyType.INT64: pa.int64(), KeyType.BINARY: pa.binary()}


class _ByStorage(dict[KeyType, pa.DataType]):
    def __missing__(self, key_type: KeyType) -> pa.DataType:
        return _STORED[key_type.storage]


ARROW_TYPES = _ByStorage()
"""The Arrow type of the column that holds keys of a type."""


@dataclass(frozen=True, slots=True)
class KeyBytes:
    """The bytes of the keys of a column, concatenated."""

    data: NDArray[np.uint8]  # bytes of all keys, read-only; may hold more than the keys
    offsets: NDArray[np.int64]  # key i is data[offsets[i]:offsets[i + 1]]; shape (rows + 1,), int64

    def __len__(self) -> int:
        return len(self.offsets) - 1


def key_bytes(keys: pa.Array | pa.ChunkedArray) -> KeyBytes:
    """Key bytes: UTF-8 of strings, 8 bytes little-endian of integers.

    Strings and binaries are not copied unless there are nulls or several chunks.

    Source: docs/plan-format.md.
    """
    column = one_array(keys)
    return _of_integers(column) if key_type_of(column.type) is KeyType.INT64 else _of_texts(column)


def one_key(key: bytes) -> KeyBytes:
    """The bytes of a single key."""
    return KeyBytes(np.frombuffer(key, np.uint8), _ends(len(key)))


@lru_cache(maxsize=256)
def _ends(length: int) -> NDArray[np.int64]:
    return np.array([0, length], np.int64)


def one_array(keys: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The same keys in a single array, with 64-bit offsets for text."""
    column = keys.cast(keys.type.value_type) if pa.types.is_dictionary(keys.type) else keys
    if not isinstance(column, pa.ChunkedArray):
        return column
    return (column if column.num_chunks < 2 else _large(column)).combine_chunks()


def key_type_of(kind: pa.DataType) -> KeyType:
    """The key type of an Arrow column."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return KeyType.STRING
    if pa.types.is_int64(kind):
        return KeyType.INT64
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return KeyType.BINARY
    raise ValueError(f"a key column must be string, int64 or binary (got {kind})")


def keys_as_column(keys: Any) -> pa.Array:
    """Keys of a program as a key column.

    Args:
        keys: A sequence, an array, or a column of a data frame.
    """
    try:
        column = one_array(keys if isinstance(keys, pa.Array | pa.ChunkedArray) else _arrow(keys))
        if pa.types.is_integer(column.type):
            return column.cast(pa.int64())
        if pa.types.is_string_view(column.type) or pa.types.is_binary_view(column.type):
            column = column.cast(pa.string() if pa.types.is_string_view(column.type) else pa.binary())
        key_type_of(column.type)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise UsageError(f"keys must be text, whole numbers or bytes: {error}") from error
    return column


def _arrow(keys: Any) -> pa.Array | pa.ChunkedArray:
    return pa.chunked_array(keys) if hasattr(keys, "__arrow_c_stream__") else pa.array(keys)


def column_of(key: Key, key_type: KeyType | None = None) -> pa.Array:
    """A column of a single key; `key_type` types a null key."""
    try:
        return pa.array([key], ARROW_TYPES[type_of(key) or key_type or KeyType.STRING])
    except (OverflowError, pa.ArrowInvalid, UnicodeEncodeError) as error:
        raise UsageError(f"key {key!r} is not a valid key: {error}") from error


def bytes_of(key: Key) -> bytes:
    """The bytes of one key, as by `key_bytes`; null has none."""
    try:
        if isinstance(key, str):
            return key.encode()
        return key.to_bytes(8, "little", signed=True) if isinstance(key, int) else key or b""
    except (OverflowError, UnicodeEncodeError) as error:
        raise UsageError(f"key {key!r} is not a valid key: {error}") from error


def type_of(key: Key) -> KeyType | None:
    """The type of the column of one key; None of null."""
    known = _TYPES.get(type(key))
    return known or next((_TYPES[kind] for kind in _TYPES if isinstance(key, kind)), None)


def _of_texts(column: pa.Array) -> KeyBytes:
    if len(column) == 0:
        return KeyBytes(read_only(None), np.zeros(1, np.int64))
    if column.null_count:
        column = column.fill_null("" if key_type_of(column.type) is KeyType.STRING else b"")
    _, offsets, data = column.buffers()
    is_large = pa.types.is_large_string(column.type) or pa.types.is_large_binary(column.type)
    kind = np.dtype(np.int64 if is_large else np.int32)
    # The copy makes offsets aligned and writable: one signature for every kernel.
    ends = np.frombuffer(offsets, kind, len(column) + 1, column.offset * kind.itemsize).astype(np.int64)
    return KeyBytes(read_only(data), ends)


def _of_integers(column: pa.Array) -> KeyBytes:
    values = column.drop_null().to_numpy().astype("<i8", copy=False)
    offsets = np.arange(len(column) + 1)
    if column.null_count:
        np.cumsum(column.is_valid().to_numpy(zero_copy_only=False), out=offsets[1:])
    return KeyBytes(read_only(np.ascontiguousarray(values)), offsets * 8)


def _large(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Text with 64-bit offsets, bytes shared; other columns unchanged."""
    if pa.types.is_string(column.type):
        return column.cast(pa.large_string())
    if pa.types.is_binary(column.type):
        return column.cast(pa.large_binary())
    return column


def read_only(data: pa.Buffer | NDArray[Any] | None) -> NDArray[np.uint8]:
    """Bytes that are not to be changed."""
    buffer = np.frombuffer(b"" if data is None else data, np.uint8)
    buffer.flags.writeable = False
    return buffer
