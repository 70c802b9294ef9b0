"""CRC-32 (IEEE 802.3), as of zlib."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.engines.hash_functions.murmur3_32 import word_at
from adapt.core.keys.columns import KeyBytes


def _tables() -> NDArray[np.uint32]:
    """Remainders of a byte followed by 0 to 3 zero bytes; shape (4, 256)."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> np.uint32(1)) ^ np.uint32(0xEDB88320), table >> np.uint32(1))
    tables = [table.astype(np.uint32)]
    for _ in range(3):
        tables.append(tables[0][tables[-1] & 255] ^ (tables[-1] >> np.uint32(8)))
    return np.stack(tables)


_TABLES = _tables()


def crc32(
    keys: KeyBytes, before: bytes = b"", after: bytes = b"", *, is_length_before: bool = False
) -> NDArray[np.uint32]:
    """The CRC of each key; that of `zlib.crc32(before + key + after)`.

    Args:
        is_length_before: Also put the length of the key, 8 bytes little-endian, before it.
    """
    hashes = np.empty(len(keys), np.uint32)
    fixed = np.frombuffer(before + after, np.uint8)
    _crc32(keys.data, keys.offsets, _TABLES, fixed, len(before), is_length_before, hashes)
    return hashes


@inlined
def _with(crc: np.uint32, byte: np.uint32, tables: NDArray[np.uint32]) -> np.uint32:
    return np.uint32(tables[0, (crc ^ byte) & np.uint32(255)] ^ (crc >> np.uint32(8)))


@compiled
def _crc32(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    tables: NDArray[np.uint32],
    fixed: NDArray[np.uint8],
    before: int,
    is_length_before: bool,
    out: NDArray[np.uint32],
) -> None:
    for row in range(len(out)):
        start, end = offsets[row], offsets[row + 1]
        crc = np.uint32(0xFFFFFFFF)
        for place in range(before):
            crc = _with(crc, np.uint32(fixed[place]), tables)
        if is_length_before:
            length = np.uint64(end - start)
            for place in range(8):
                crc = _with(crc, np.uint32((length >> np.uint64(8 * place)) & np.uint64(255)), tables)
        while end - start >= 4:
            crc ^= word_at(data, start)
            crc = np.uint32(
                tables[3, crc & np.uint32(255)]
                ^ tables[2, (crc >> np.uint32(8)) & np.uint32(255)]
                ^ tables[1, (crc >> np.uint32(16)) & np.uint32(255)]
                ^ tables[0, crc >> np.uint32(24)]
            )
            start += 4
        while start < end:
            crc = _with(crc, np.uint32(data[start]), tables)
            start += 1
        for place in range(before, len(fixed)):
            crc = _with(crc, np.uint32(fixed[place]), tables)
        out[row] = crc ^ np.uint32(0xFFFFFFFF)
