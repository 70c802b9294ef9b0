"""Partitioners: functions from keys to channels."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.keys.columns import Words, bytes_of, column_of, key_bytes, type_of
from adapt.core.stream import Key, KeyType

Channels: TypeAlias = NDArray[np.int32]
"""Channels, shape (rows,), each in [0, N)."""


class Partitioner(Protocol):
    """A total, fixed function from keys to channels 0 .. N-1."""

    @property
    def channels(self) -> int:
        """N, the number of parallel channels."""

    def channels_of(self, keys: pa.Array) -> Channels:
        """The channel of each key of a column; null is a key."""

    def channel_of(self, key: Key) -> int:
        """The channel of one key, as by `channels_of`."""


class ByColumn(ABC):
    """A partitioner that looks up a single key as a column."""

    __slots__ = ()

    @abstractmethod
    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""

    def channel_of(self, key: Key) -> int:
        """The channel of one key."""
        return int(self.channels_of(column_of(key))[0])


class ByBytes(ByColumn):
    """A partitioner that looks up a single key by its bytes."""

    __slots__ = ()

    @abstractmethod
    def channel_of_bytes(self, key: bytes, key_type: KeyType) -> int:
        """The channel of a key of a type by its bytes."""

    def channel_of(self, key: Key) -> int:
        """The channel of one key."""
        return self.channel_of_bytes(bytes_of(key), type_of(key) or KeyType.STRING)


class AtRandom(StrEnum):
    """The keys that an engine places at random."""

    NONE = "none"
    NULL = "null"
    NULL_AND_EMPTY = "null and empty"
    ALL = "all"


def random_keys(at_random: AtRandom, keys: pa.Array) -> NDArray[np.bool_]:
    """Which keys of a column are placed at random; shape (rows,)."""
    missing = keys.is_null().to_numpy(zero_copy_only=False)
    match at_random:
        case AtRandom.NONE:
            return np.zeros(len(keys), np.bool_)
        case AtRandom.NULL:
            return np.asarray(missing)
        case AtRandom.NULL_AND_EMPTY:
            return np.asarray(np.diff(key_bytes(keys).offsets) == 0)
        case AtRandom.ALL:
            return np.ones(len(keys), np.bool_)


@dataclass(frozen=True, slots=True)
class SortedPositions:
    """Sorted positions on a circle of 2^128, indexed by their leading bits.

    There are one to two buckets per position, so a lookup skips less than one position on average.
    """

    high: Words  # high words, ascending; shape (positions,)
    low: Words  # low words, ascending where high words are equal; shape (positions,)
    starts: NDArray[np.int64]  # the first position at or after the start of each bucket; shape (buckets,), int64
    shift: np.uint64  # a position's bucket is its high word shifted right by this

    @classmethod
    def from_sorted(cls, high: Words, low: Words) -> "SortedPositions":
        """Index sorted positions, at least one."""
        bits = max(1, len(high).bit_length())
        shift = np.uint64(64 - bits)
        starts = np.searchsorted(high, np.arange(2**bits, dtype=np.uint64) << shift)
        return cls(high, low, starts.astype(np.int64), shift)

    def first_at_or_after(self, high: Words, low: Words) -> NDArray[np.int64]:
        """The first position at or after each given one, wrapping around.

        O(1) per row if positions are evenly spread.
        """
        found = np.empty(len(high), np.int64)
        _first_at_or_after(self.high, self.low, self.starts, self.shift, high, low, found)
        return found

    def first_of_one(self, high: int, low: int) -> int:
        """The same of one position."""
        at, word_at = self.starts.item(high >> int(self.shift)), self.high.item
        while at < len(self.high) and ((word := word_at(at)) < high or (word == high and self.low.item(at) < low)):
            at += 1
        return at if at < len(self.high) else 0


@compiled
def _first_at_or_after(
    highs: Words,
    lows: Words,
    starts: NDArray[np.int64],
    shift: np.uint64,
    high: Words,
    low: Words,
    found: NDArray[np.int64],
) -> None:
    for row in range(len(found)):
        at = starts[high[row] >> shift]
        while at < len(highs) and (highs[at] < high[row] or (highs[at] == high[row] and lows[at] < low[row])):
            at += 1
        found[row] = at if at < len(highs) else 0
