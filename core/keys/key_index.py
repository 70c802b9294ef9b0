"""An index of distinct keys: the row of a key, if any."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.keys.columns import KeyBytes, Words
from adapt.core.keys.hashes import HashedKeys
from adapt.core.keys.names import HashName

_MOST_KEYS = 1 << 30
_FEW_KEYS = 1 << 12
_ROW_BITS = np.uint64(32)
_ROW = np.uint64(2**32 - 1)


class KeyIndex:
    """Finds keys in a column in O(1); null is not empty.

    The column is hashed on first use, once per hash function: 16 to 32 bytes per key besides the keys, up to 128 for
    few keys. Matches are verified by the key bytes.
    """

    def __init__(self, keys: pa.Array) -> None:
        """An index of fewer than 2^30 distinct keys."""
        if len(keys) >= _MOST_KEYS:
            raise ValueError(f"an index holds at most {_MOST_KEYS - 1:,} keys (got {len(keys):,})")
        self._keys = keys
        self._slots: dict[HashName, tuple[KeyBytes, Words]] = {}

    def rows_of(self, keys: HashedKeys) -> NDArray[np.int32]:
        """The row of each key, -1 if missing; shape (rows,).

        Bytes are compared, so the keys must have the same type.
        """
        known, slots = self._indexed(keys.hash)
        rows = np.empty(len(keys), np.int32)
        _find(known.data, known.offsets, slots, keys.high, keys.bytes.data, keys.bytes.offsets, rows)
        if keys.missing is not None:
            rows[keys.missing] = self._null_row()
        return rows

    def _null_row(self) -> int:
        return int(np.argmax(self._keys.is_null())) if self._keys.null_count else -1

    def _indexed(self, hash: HashName) -> tuple[KeyBytes, Words]:
        """The bytes of the keys, and the table of slots that `_fill` makes."""
        if hash not in self._slots:
            keys = HashedKeys.from_column(self._keys, hash)
            slots = np.zeros(_slots_for(len(keys)), np.uint64)
            present = np.ones(len(keys), np.bool_) if keys.missing is None else ~keys.missing
            _fill(keys.high, present, slots)
            self._slots[hash] = keys.bytes, slots
        return self._slots[hash]

    def __reduce__(self) -> tuple[type["KeyIndex"], tuple[pa.Array]]:
        return KeyIndex, (self._keys,)


def _slots_for(keys: int) -> int:
    """A power of two above 2 slots per key; above 8 if they fit into the CPU cache, for fewer collisions."""
    return int(2 ** ((8 if keys <= _FEW_KEYS else 2) * keys).bit_length())


@inlined
def _first_slot(hash: np.uint64, slots: Words) -> np.uint64:
    """The first slot of a key: its leading bits, independent of those kept in the slot."""
    return (hash >> _ROW_BITS) & np.uint64(len(slots) - 1)


@compiled
def _fill(high: Words, present: NDArray[np.bool_], slots: Words) -> None:
    """Open addressing, less than half full: a slot has the last 32 bits of a hash above the row plus 1, or is 0."""
    for row in range(len(high)):
        if present[row]:
            at = _first_slot(high[row], slots)
            while slots[at]:
                at = (at + np.uint64(1)) & np.uint64(len(slots) - 1)
            slots[at] = (high[row] << _ROW_BITS) | np.uint64(row + 1)


@inlined
def _word(data: NDArray[np.uint8], start: np.uint64) -> np.uint64:
    """The 8 bytes at `start`, little-endian; written so that it compiles to one load."""
    word = np.uint64(0)
    for place in range(8):
        word |= np.uint64(data[start + np.uint64(place)]) << np.uint64(8 * place)
    return word


@inlined
def same_bytes(
    data: NDArray[np.uint8], start: np.uint64, length: np.uint64, other: NDArray[np.uint8], at: np.uint64
) -> bool:
    """Whether `length` bytes are the same in both."""
    eight = np.uint64(8)
    while length >= eight:
        if _word(data, start) != _word(other, at):
            return False
        start += eight
        at += eight
        length -= eight
    if not length:
        return True
    if start + eight <= np.uint64(len(data)) and at + eight <= np.uint64(len(other)):
        return not (_word(data, start) ^ _word(other, at)) << (np.uint64(64) - length * eight)
    while length and data[start + length - np.uint64(1)] == other[at + length - np.uint64(1)]:
        length -= np.uint64(1)
    return not length


@compiled
def _find(
    known: NDArray[np.uint8],
    known_offsets: NDArray[np.int64],
    slots: Words,
    high: Words,
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    rows: NDArray[np.int32],
) -> None:
    for row in range(len(rows)):
        start = np.uint64(offsets[row])
        length = np.uint64(offsets[row + 1]) - start
        at = _first_slot(high[row], slots)
        mark = high[row] & _ROW
        found = np.int64(-1)
        while slots[at]:
            if slots[at] >> _ROW_BITS == mark:
                there = (slots[at] & _ROW) - np.uint64(1)
                begin = np.uint64(known_offsets[there])
                size = np.uint64(known_offsets[there + np.uint64(1)]) - begin
                if size == length and same_bytes(data, start, length, known, begin):
                    found = np.int64(there)
                    break
            at = (at + np.uint64(1)) & np.uint64(len(slots) - 1)
        rows[row] = found
