"""Placement of keys by an engine's own hash."""

from abc import abstractmethod
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.columns import KeyBytes, key_bytes, key_type_of, one_array
from adapt.core.keys.partitioner import AtRandom, ByColumn, Channels
from adapt.core.keys.typed_keys import narrowed
from adapt.core.stream import KeyType

Hashes: TypeAlias = NDArray[np.int32] | NDArray[np.uint32]
"""Hashes, shape (rows,)."""

BytesHash: TypeAlias = Callable[[KeyBytes, KeyType], Hashes]
"""Hashes keys as plans keep them: UTF-8 of text, 8 bytes little-endian of integers."""


def empty_key() -> KeyBytes:
    """The empty key alone."""
    return one_key(b"")


def one_key(key: bytes) -> KeyBytes:
    """The bytes of a single key."""
    return KeyBytes(np.frombuffer(key, np.uint8), _ends(len(key)))


@lru_cache(maxsize=256)
def _ends(length: int) -> NDArray[np.int64]:
    return np.array([0, length], np.int64)


class EnginePartitioner(ByColumn):
    """An engine's placement, by key bytes; null is the empty key.

    A key that the engine places at random has a fixed channel here, so that every key has one.
    """

    __slots__ = ()

    channels: int
    key_type: KeyType | None
    """The type of the keys in their source; None, and where a column is stored otherwise: as its column has them."""

    @abstractmethod
    def of_bytes(self, keys: KeyBytes, key_type: KeyType) -> Channels:
        """The channel of each key, without nulls."""

    def of_null(self, key_type: KeyType) -> int:
        """The channel of the null key."""
        return int(self.of_bytes(empty_key(), key_type)[0])

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""
        column = one_array(keys)
        key_type = key_type_of(column.type)
        if self.key_type is not None and self.key_type.storage is key_type:
            key_type = self.key_type
        placed = self.of_bytes(key_bytes(column), key_type)
        if column.null_count:
            placed[column.is_null().to_numpy(zero_copy_only=False)] = self.of_null(key_type)
        return placed


@dataclass(frozen=True, slots=True)
class HashModulo(EnginePartitioner):
    """Placement by hash modulo N."""

    channels: int  # N
    hash: BytesHash  # the hash; the channel is never negative, also if the hash is
    at_random: AtRandom = AtRandom.NONE  # the keys that the engine places at random
    key_type: KeyType | None = None

    def __post_init__(self) -> None:
        check_channels(self.channels)

    def of_bytes(self, keys: KeyBytes, key_type: KeyType) -> Channels:
        """The channel of each key, without nulls."""
        hashes = self.hash(keys, key_type)
        return np.mod(hashes, hashes.dtype.type(self.channels)).astype(np.int32, copy=False)


def hash_of_column(function: BytesHash, keys: pa.Array | pa.ChunkedArray) -> Hashes:
    """The hash of each key; null is the empty key."""
    column = one_array(keys)
    return function(key_bytes(column), key_type_of(column.type))


WIDTHS = {KeyType.INT64: 8, KeyType.INT32: 4, KeyType.INT16: 2}
"""Bytes of integers with a serializer."""


def serialized(keys: KeyBytes, key_type: KeyType) -> KeyBytes:
    """Keys as Kafka producers serialize them.

    Integers become 8, 4 or 2 bytes big-endian, as by `LongSerializer`, `IntegerSerializer` or `ShortSerializer`; int8,
    which has no serializer, decimal text; other keys are unchanged.
    """
    if key_type in WIDTHS:
        return narrowed(keys, f">i{WIDTHS[key_type]}")
    return as_text(keys, key_type)


def as_text(keys: KeyBytes, key_type: KeyType) -> KeyBytes:
    """Keys as text: integers in decimal, other keys unchanged."""
    if key_type.storage is not KeyType.INT64 or len(keys.data) == 0:
        return keys
    texts = key_bytes(pa.array(keys.data.view("<i8")).cast(pa.large_string()))
    return KeyBytes(texts.data, texts.offsets[keys.offsets // 8])


def as_base64(keys: KeyBytes, key_type: KeyType) -> KeyBytes:
    """Keys as text, binary ones in Base64."""
    if key_type is not KeyType.BINARY:
        return as_text(keys, key_type)
    data, ends = keys.data.tobytes(), keys.offsets.tolist()
    texts = [b64encode(data[ends[row] : ends[row + 1]]) for row in range(len(keys))]
    return key_bytes(pa.array(texts, pa.large_binary()))
