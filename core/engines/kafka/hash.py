"""Kafka's murmur2 of key columns, as serialized in records."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import OfBytes, compiled, inlined
from adapt.core.engines.hash_functions.murmur3_32 import part_at, word_at
from adapt.core.engines.placement import Hashes, hash_of_column, serialized
from adapt.core.keys.columns import KeyBytes
from adapt.core.stream import KeyType

SEED = 0x9747B28C
"""The seed of every Kafka client."""

_POSITIVE = np.int32(0x7FFFFFFF)
_M = np.uint32(0x5BD1E995)


def kafka_hash(keys: pa.Array | pa.ChunkedArray) -> Hashes:
    """Kafka's hash, before modulo the partitions; shape (rows,), each >= 0.

    Keys are hashed as serialized: strings as UTF-8 (`StringSerializer`), binary keys unchanged (`ByteArraySerializer`),
    integers as 8 bytes big-endian (`LongSerializer`); other serializers give other partitions. The Java client spreads
    records without a key; here null is the empty key, as in librdkafka's partitioner `murmur2` (our decision, so that
    every key has a channel).

    Source: users and peers, section 5.1; tested against librdkafka.
    """
    return hash_of_column(murmur2, keys)


def murmur2(keys: KeyBytes, key_type: KeyType) -> NDArray[np.int32]:
    """Kafka's hash of keys as bytes; shape (rows,), each >= 0."""
    return murmur2_of_bytes(serialized(keys, key_type)) & _POSITIVE


def murmur2_of_bytes(sent: KeyBytes) -> NDArray[np.int32]:
    """Murmur2 of each key as sent, with its sign; shape (rows,)."""
    hashes = np.empty(len(sent), np.int32)
    _murmur2(sent.data, sent.offsets, hashes)
    return hashes


def _of_key(data: NDArray[np.uint8], start: int, end: int) -> Any:
    state = np.uint32(SEED) ^ np.uint32(end - start)
    while end - start >= 4:
        word = np.uint32(word_at(data, np.int64(start)) * _M)
        word = np.uint32((word ^ (word >> np.uint32(24))) * _M)
        state = np.uint32(state * _M) ^ word
        start += 4
    if start < end:
        state = np.uint32((state ^ part_at(data, np.int64(start), np.int64(end))) * _M)
    state = np.uint32((state ^ (state >> np.uint32(13))) * _M)
    return np.int32(state ^ (state >> np.uint32(15)))


_inlined_of_key = inlined(_of_key)
murmur2_of_key = OfBytes(_of_key)
"""Murmur2 of one key as sent, with its sign."""


@compiled
def _murmur2(data: NDArray[np.uint8], offsets: NDArray[np.int64], out: NDArray[np.int32]) -> None:
    for row in range(len(out)):
        out[row] = _inlined_of_key(data, offsets[row], offsets[row + 1])
