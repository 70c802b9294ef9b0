"""Kafka's murmur2 of key columns, as serialized in records."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.keys.columns import KeyBytes, key_bytes, key_type_of, one_array
from adapt.core.stream import KeyType

SEED = 0x9747B28C
"""The seed of every Kafka client."""

_M = np.uint32(0x5BD1E995)


def kafka_hash(keys: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
    """Kafka's hash, before modulo the partitions; shape (rows,), each >= 0.

    Keys are hashed as serialized: strings as UTF-8 (`StringSerializer`), binary keys unchanged (`ByteArraySerializer`),
    integers as 8 bytes big-endian (`LongSerializer`); other serializers give other partitions. The Java client spreads
    records without a key; here null is the empty key, as in librdkafka's partitioner `murmur2` (our decision, so that
    every key has a channel).

    Raises:
        ValueError: the column is none of string, int64 and binary.

    Source: users and peers, section 5.1; tested against librdkafka.
    """
    column = one_array(keys)
    found = key_bytes(column)
    if key_type_of(column.type) is KeyType.INT64:
        found = KeyBytes(_big_endian(found.data), found.offsets)
    hashes = np.empty(len(found), np.int32)
    _kafka_hash(found.data, found.offsets, hashes)
    return hashes


def hash_of_serialized(key: bytes) -> int:
    """Kafka's hash of one key, as serialized in a record."""
    found = np.empty(1, np.int32)
    _kafka_hash(np.frombuffer(key, np.uint8), np.array([0, len(key)], np.int64), found)
    return int(found[0])


def _big_endian(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Each 8 bytes reversed, read-only."""
    turned = np.ascontiguousarray(data.reshape(-1, 8)[:, ::-1]).reshape(-1)
    turned.flags.writeable = False
    return turned


@inlined
def _word(data: NDArray[np.uint8], start: np.int64) -> np.uint32:
    """The 4 bytes at `start`, little-endian."""
    word = np.uint32(0)
    for place in range(4):
        word |= np.uint32(data[start + place]) << np.uint32(8 * place)
    return word


@compiled
def _kafka_hash(data: NDArray[np.uint8], offsets: NDArray[np.int64], out: NDArray[np.int32]) -> None:
    for row in range(len(out)):
        start, end = offsets[row], offsets[row + 1]
        state = np.uint32(SEED) ^ np.uint32(end - start)
        while end - start >= 4:
            word = np.uint32(_word(data, start) * _M)
            word = np.uint32((word ^ (word >> np.uint32(24))) * _M)
            state = np.uint32(state * _M) ^ word
            start += 4
        if start < end:
            for place in range(end - start):
                state ^= np.uint32(data[start + place]) << np.uint32(8 * place)
            state = np.uint32(state * _M)
        state = np.uint32((state ^ (state >> np.uint32(13))) * _M)
        state = state ^ (state >> np.uint32(15))
        out[row] = np.int32(state & np.uint32(0x7FFFFFFF))
