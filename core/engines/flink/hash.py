"""Flink's hash of key columns: Java's hash code, mixed."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.keys.columns import key_bytes, key_type_of, one_array
from adapt.core.stream import KeyType

_C1 = np.uint32(0xCC9E2D51)
_C2 = np.uint32(0x1B873593)
_ADD = np.uint32(0xE6546B64)
_MIX1 = np.uint32(0x85EBCA6B)
_MIX2 = np.uint32(0xC2B2AE35)


def flink_hash(keys: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
    """Flink's hash, before modulo the key groups; shape (rows,), each >= 0.

    The key's hash code in Java (`String` or `Long`), mixed. Flink has no null or array keys; here null has hash code 0,
    as `Objects.hashCode`, and a binary key that of `Arrays.hashCode` (our decision, so that every key has a channel).

    Raises:
        ValueError: the column is none of string, int64 and binary.

    Source: users and peers, section 5.1.
    """
    codes = hash_codes(keys)
    mixed = np.empty(len(codes), np.int32)
    _mixed(codes, mixed)
    return mixed


def hash_codes(keys: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
    """Java's `hashCode` of each `String`, `Long` or byte array; shape (rows,).

    Strings hash their UTF-16 units, so a character beyond U+FFFF counts as two. Null has 0.

    Raises:
        ValueError: the column is none of string, int64 and binary.
    """
    column = one_array(keys)
    match key_type_of(column.type):
        case KeyType.INT64:
            values = column.fill_null(0).to_numpy(zero_copy_only=False).view(np.uint64)
            return np.asarray((values ^ (values >> np.uint64(32))).astype(np.uint32).view(np.int32))
        case KeyType.STRING:
            found = key_bytes(column)
            codes = np.empty(len(found), np.int32)
            _codes_of_strings(found.data, found.offsets, codes)
            return codes
        case KeyType.BINARY:
            found = key_bytes(column)
            codes = np.empty(len(found), np.int32)
            _codes_of_bytes(found.data, found.offsets, codes)
            codes[column.is_null().to_numpy(zero_copy_only=False)] = 0
            return codes


@inlined
def _and_character(code: np.uint32, character: np.uint32) -> np.uint32:
    """The hash code of a text extended by a character."""
    if character < np.uint32(0x10000):
        return np.uint32(code * np.uint32(31) + character)
    character -= np.uint32(0x10000)
    code = np.uint32(code * np.uint32(31) + (np.uint32(0xD800) | (character >> np.uint32(10))))
    return np.uint32(code * np.uint32(31) + (np.uint32(0xDC00) | (character & np.uint32(0x3FF))))


@compiled
def _codes_of_strings(data: NDArray[np.uint8], offsets: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
    for row in range(len(codes)):
        start, end = offsets[row], offsets[row + 1]
        code = np.uint32(0)
        while start < end:
            first = np.uint32(data[start])
            start += 1
            if first < np.uint32(0x80):
                code = np.uint32(code * np.uint32(31) + first)
                continue
            # UTF-8: the leading byte has a variable number of bits, the others six each.
            character = first & np.uint32(0x1F if first < 0xE0 else 0x0F if first < 0xF0 else 0x07)
            while start < end and data[start] & 0xC0 == 0x80:
                character = np.uint32((character << np.uint32(6)) | np.uint32(data[start] & 0x3F))
                start += 1
            code = _and_character(code, character)
        codes[row] = np.int32(code)


@compiled
def _codes_of_bytes(data: NDArray[np.uint8], offsets: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
    for row in range(len(codes)):
        code = np.uint32(1)
        for at in range(offsets[row], offsets[row + 1]):
            code = np.uint32(code * np.uint32(31) + np.uint32(np.int32(np.int8(data[at]))))
        codes[row] = np.int32(code)


@compiled
def _mixed(codes: NDArray[np.int32], out: NDArray[np.int32]) -> None:
    """One round of MurmurHash3 x86 32 with seed 0 over 4 bytes, made positive."""
    for row in range(len(out)):
        word = np.uint32(np.uint32(codes[row]) * _C1)
        word = np.uint32(((word << np.uint32(15)) | (word >> np.uint32(17))) * _C2)
        word = np.uint32(((word << np.uint32(13)) | (word >> np.uint32(19))) * np.uint32(5) + _ADD)
        word ^= np.uint32(4)
        word = np.uint32((word ^ (word >> np.uint32(16))) * _MIX1)
        word = np.uint32((word ^ (word >> np.uint32(13))) * _MIX2)
        signed = np.int64(np.int32(word ^ (word >> np.uint32(16))))
        # The absolute value; the minimum has none and becomes 0.
        out[row] = np.int32(0 if signed == -(2**31) else abs(signed))
