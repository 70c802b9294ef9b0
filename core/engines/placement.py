"""Placement of keys by an engine's own hash."""

from abc import abstractmethod
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.keys.channel_count import check_channels
from adapt.core.keys.columns import KeyBytes, key_bytes, key_type_of, one_array, one_key
from adapt.core.keys.partitioner import AtRandom, ByBytes, Channels
from adapt.core.keys.typed_keys import narrowed
from adapt.core.stream import Key, KeyType

Hashes: TypeAlias = NDArray[np.int32] | NDArray[np.uint32]
"""Hashes, shape (rows,)."""

BytesHash: TypeAlias = Callable[[KeyBytes, KeyType], Hashes]
"""Hashes keys as plans keep them: UTF-8 of text, 8 bytes little-endian of integers."""


class EnginePartitioner(ByBytes):
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
        return int(self.of_bytes(one_key(b""), key_type)[0])

    def channels_of(self, keys: pa.Array | pa.ChunkedArray) -> Channels:
        """The channel of each key of a column."""
        column = one_array(keys)
        key_type = self._in_source(key_type_of(column.type))
        placed = self.of_bytes(key_bytes(column), key_type)
        if column.null_count:
            placed[column.is_null().to_numpy(zero_copy_only=False)] = self.of_null(key_type)
        return placed

    def channel_of(self, key: Key) -> int:
        """The channel of one key."""
        return self.of_null(self.key_type or KeyType.STRING) if key is None else super().channel_of(key)

    def channel_of_bytes(self, key: bytes, key_type: KeyType) -> int:
        """The channel of one key by its bytes."""
        return int(self.of_bytes(one_key(key), self._in_source(key_type))[0])

    def _in_source(self, key_type: KeyType) -> KeyType:
        return self.key_type if self.key_type is not None and self.key_type.storage is key_type else key_type


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

    def channel_of_bytes(self, key: bytes, key_type: KeyType) -> int:
        """The channel of one key by its bytes."""
        return int(self.hash(one_key(key), self._in_source(key_type))[0]) % self.channels


def hash_of_column(function: BytesHash, keys: pa.Array | pa.ChunkedArray, of_null: int | None = None) -> Hashes:
    """The hash of each key; null is empty, or has `of_null`."""
    column = one_array(keys)
    hashes = function(key_bytes(column), key_type_of(column.type))
    if of_null is not None:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = of_null
    return hashes


WIDTHS = {KeyType.INT64: 8, KeyType.INT32: 4, KeyType.INT16: 2}
"""Bytes of integers with a serializer."""


def serialized(keys: KeyBytes, key_type: KeyType) -> KeyBytes:
    """Keys as Kafka producers serialize them.

    Integers become 8, 4 or 2 bytes big-endian, as by `LongSerializer`, `IntegerSerializer` or `ShortSerializer`; int8,
    which has no serializer, decimal text; other keys are unchanged.
    """
    width = WIDTHS.get(key_type) if key_type.storage is KeyType.INT64 else None
    return as_text(keys, key_type) if width is None else narrowed(keys, f">i{width}")


def as_text(keys: KeyBytes, key_type: KeyType) -> KeyBytes:
    """Keys as text: integers in decimal, other keys unchanged."""
    if key_type.storage is not KeyType.INT64 or len(keys.data) == 0:
        return keys
    numbers = keys.data.view("<i8")
    if len(keys) == 1:
        return one_key(str(numbers.item()).encode())
    texts = key_bytes(pa.array(numbers).cast(pa.large_string()))
    return KeyBytes(texts.data, texts.offsets[keys.offsets // 8])


def as_base64(keys: KeyBytes, key_type: KeyType) -> KeyBytes:
    """Keys as text, binary ones in Base64."""
    if key_type is not KeyType.BINARY:
        return as_text(keys, key_type)
    data, ends = keys.data.tobytes(), keys.offsets.tolist()
    texts = [b64encode(data[ends[row] : ends[row + 1]]) for row in range(len(keys))]
    return key_bytes(pa.array(texts, pa.large_binary()))
