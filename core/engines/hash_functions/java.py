"""Java's `hashCode` of strings, longs and byte arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.keys.columns import KeyBytes


def string_codes(keys: KeyBytes) -> NDArray[np.int32]:
    """Java's `hashCode` of each `String`, from its UTF-8; shape (rows,).

    Strings hash their UTF-16 units, so a character beyond U+FFFF counts as two.
    """
    codes = np.empty(len(keys), np.int32)
    _codes_of_strings(keys.data, keys.offsets, codes)
    return codes


def array_codes(keys: KeyBytes) -> NDArray[np.int32]:
    """Java's `Arrays.hashCode` of each byte array; shape (rows,)."""
    codes = np.empty(len(keys), np.int32)
    _codes_of_bytes(keys.data, keys.offsets, codes)
    return codes


def long_codes(keys: KeyBytes) -> NDArray[np.int32]:
    """Java's `hashCode` of each `Long` in 8 bytes little-endian; shape (rows,).

    A key without bytes has 0.
    """
    codes = np.empty(len(keys), np.int32)
    _codes_of_longs(keys.data, keys.offsets, codes)
    return codes


@inlined
def _and_character(code: np.uint32, character: np.uint32) -> np.uint32:
    """The hash code of a text extended by a character."""
    if character < np.uint32(0x10000):
        return np.uint32(code * np.uint32(31) + character)
    character -= np.uint32(0x10000)
    code = np.uint32(code * np.uint32(31) + (np.uint32(0xD800) | (character >> np.uint32(10))))
    return np.uint32(code * np.uint32(31) + (np.uint32(0xDC00) | (character & np.uint32(0x3FF))))


@inlined
def code_of_string(data: NDArray[np.uint8], start: int, end: int) -> Any:
    """Java's `hashCode` of a `String` in UTF-8."""
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
    return np.int32(code)


@compiled
def _codes_of_strings(data: NDArray[np.uint8], offsets: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
    for row in range(len(codes)):
        codes[row] = code_of_string(data, offsets[row], offsets[row + 1])


@compiled
def _codes_of_bytes(data: NDArray[np.uint8], offsets: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
    for row in range(len(codes)):
        code = np.uint32(1)
        for at in range(offsets[row], offsets[row + 1]):
            code = np.uint32(code * np.uint32(31) + np.uint32(np.int32(np.int8(data[at]))))
        codes[row] = np.int32(code)


@compiled
def _codes_of_longs(data: NDArray[np.uint8], offsets: NDArray[np.int64], codes: NDArray[np.int32]) -> None:
    for row in range(len(codes)):
        code = np.uint32(0)
        for at in range(offsets[row], offsets[row + 1]):
            code ^= np.uint32(data[at]) << np.uint32(8 * ((at - offsets[row]) & 3))
        codes[row] = np.int32(code)
