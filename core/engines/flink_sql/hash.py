"""Flink SQL's hash of a key: that of its binary row."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.engines.hash_functions.murmur3_32 import finished, mixed, part_at
from adapt.core.keys.columns import KeyBytes, key_bytes, key_type_of, one_array
from adapt.core.stream import KeyType

NULL = 0x100
"""First word of the row of a null: its null bit comes after the 8 bits of the kind of change."""

_SEED = np.uint32(42)
_BITS = {KeyType.INT8: 0xFF, KeyType.INT16: 0xFFFF, KeyType.INT32: 0xFFFFFFFF}
_INLINE = 7
"""Most bytes that lie in the field itself; of more, it has offset and length."""


def row_codes(keys: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
    """`BinaryRowData.hashCode` of each key in a row of its own; shape (rows,)."""
    column = one_array(keys)
    codes = row_codes_of_bytes(key_bytes(column), key_type_of(column.type))
    if column.null_count:
        codes[column.is_null().to_numpy(zero_copy_only=False)] = code_of_null()
    return codes


def row_codes_of_bytes(keys: KeyBytes, key_type: KeyType) -> NDArray[np.int32]:
    """The same of keys without nulls, of one column."""
    codes = np.empty(len(keys), np.uint32)
    if key_type in _BITS:
        words = keys.data.view("<i8") & np.int64(_BITS[key_type])
        words.flags.writeable = False
        keys = KeyBytes(words.view(np.uint8), keys.offsets)
    _row_codes(keys.data, keys.offsets, key_type.storage is KeyType.INT64, codes)
    return codes.view(np.int32)


def code_of_null() -> np.int32:
    """`BinaryRowData.hashCode` of a row of a null."""
    return np.uint32(_code_of_null()).astype(np.int32)


@compiled
def _code_of_null() -> np.uint32:
    state = mixed(_SEED, np.uint32(NULL))
    for _ in range(3):
        state = mixed(state, np.uint32(0))
    return np.uint32(finished(state ^ np.uint32(16)))


@compiled
def _row_codes(data: NDArray[np.uint8], offsets: NDArray[np.int64], is_number: bool, out: NDArray[np.uint32]) -> None:
    """MurmurHash3 x86 32 with seed 42 over the words of a row.

    A row has 8 bytes of kind and null bits, 8 bytes of the field, and the bytes that do not fit in it, padded to 8.
    """
    for row in range(len(out)):
        start, end = offsets[row], offsets[row + 1]
        length = end - start
        state = mixed(mixed(_SEED, np.uint32(0)), np.uint32(0))
        size = np.uint32(16)
        if is_number:
            state = mixed(state, part_at(data, start, start + 4))
            state = mixed(state, part_at(data, start + 4, end))
        elif length <= _INLINE:
            state = mixed(state, part_at(data, start, min(start + 4, end)))
            rest = part_at(data, min(start + 4, end), end)
            state = mixed(state, np.uint32(rest | np.uint32(np.uint32(0x80 | length) << np.uint32(24))))
        else:
            state = mixed(mixed(state, np.uint32(length)), np.uint32(16))
            padded = (length + 7) // 8 * 8
            for at in range(0, padded, 4):
                state = mixed(state, part_at(data, min(start + at, end), min(start + at + 4, end)))
            size += np.uint32(padded)
        out[row] = finished(state ^ size)
