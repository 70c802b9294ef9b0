"""Spark SQL's `hash` of key columns, a variant of MurmurHash3."""

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import OfBytes, compiled, inlined
from adapt.core.engines.hash_functions.murmur3_32 import finished, mixed, word_at
from adapt.core.engines.placement import Hashes, hash_of_column
from adapt.core.keys.columns import KeyBytes, read_only
from adapt.core.keys.typed_keys import columns_of, narrowed, row_of, word_of, words_of
from adapt.core.stream import COLUMN_TYPES, KeyType

SEED = 42
"""The seed of Spark's `hash` and of its hash partitioning; the hash of null."""

_SEEDS = np.array([SEED], np.int32)


def spark_hash(keys: pa.Array | pa.ChunkedArray) -> Hashes:
    """Spark SQL's `hash(key)` of a string, binary or bigint column; shape (rows,).

    Strings are hashed as UTF-8. Unlike in the standard function, each byte after the last word of four is sign-extended
    and mixed as a word. Null gives the seed. Integers are hashed as bigint.

    Source: users and peers, section 5.1; tested against Spark.
    """
    return hash_of_column(spark_hash_of_bytes, keys, SEED)


def spark_hash_of_bytes(keys: KeyBytes, key_type: KeyType = KeyType.STRING) -> NDArray[np.int32]:
    """Spark's hash of keys as bytes, without nulls; shape (rows,).

    An int, date or boolean is hashed as 4 bytes, a bigint, time or decimal of up to 18 digits as 8. Each of several
    columns begins with the hash of those before it; a null leaves that as it is. What is not of the type is hashed as
    text.

    Source: Spark, HashExpression in hash.scala; tested against Spark.
    """
    if key_type in COLUMN_TYPES:
        return _hashed(keys, _SEEDS)
    if key_type.storage is KeyType.INT64:
        return _hashed(narrowed(keys, "<i4"), _SEEDS)
    known, columns = columns_of(keys, key_type)
    seeds = np.full(len(known), SEED, np.int32)
    for values, kind in zip(columns, key_type.columns or (key_type,), strict=True):
        present = np.array([value is not None for value in values], np.bool_)
        seeds[present] = _hashed(words_of([value for value in values if value is not None], kind), seeds[present])
    if len(known) == len(keys):
        return seeds
    hashes = _hashed(keys, _SEEDS)
    hashes[known] = seeds
    return hashes


def salted_hashes(hashes: NDArray[np.int32], salt: int) -> NDArray[np.int32]:
    """The hash of each key and an int, by the key's hash."""
    words = np.full(len(hashes), salt, "<i4")
    return _hashed(KeyBytes(read_only(words), np.arange(len(hashes) + 1) * 4), hashes)


def _hashed(keys: KeyBytes, seeds: NDArray[np.int32]) -> NDArray[np.int32]:
    """The hash of each key, from its own seed or one for all."""
    hashes = np.empty(len(keys), np.int32)
    _spark_hash(keys.data, keys.offsets, seeds, hashes)
    return hashes


@inlined
def _seeded(data: NDArray[np.uint8], start: int, end: int, seed: Any) -> Any:
    length = np.uint32(end - start)
    state = np.uint32(seed)
    while end - start >= 4:
        state = mixed(state, word_at(data, np.int64(start)))
        start += 4
    while start < end:
        state = mixed(state, np.uint32(np.int32(np.int8(data[start]))))
        start += 1
    return np.int32(finished(state ^ length))


def spark_hash_of_key(key: bytes, key_type: KeyType) -> int:
    """The hash of one key, as by `spark_hash_of_bytes`."""
    if key_type in COLUMN_TYPES:
        return _hash_after(_FIRST + key)
    if key_type.storage is KeyType.INT64:
        return _hash_after(_FIRST + key[:4])
    row = row_of(key.decode(), key_type)
    if row is None:
        return _hash_after(_FIRST + key)
    state = _FIRST
    for value, kind in zip(row, key_type.columns or (key_type,), strict=True):
        if value is not None:
            state = _hash_after(state + word_of(value, kind)).to_bytes(4, "little", signed=True)
    return int.from_bytes(state, "little", signed=True)


def _after(data: NDArray[np.uint8], start: int, end: int) -> Any:
    return _seeded(data, start + 4, end, word_at(data, np.int64(start)))


_FIRST = SEED.to_bytes(4, "little")
_hash_after = OfBytes(_after)
"""The hash of some bytes behind the hash to begin with, of 4 bytes."""


@compiled
def _spark_hash(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], seeds: NDArray[np.int32], out: NDArray[np.int32]
) -> None:
    for row in range(len(out)):
        out[row] = _seeded(data, offsets[row], offsets[row + 1], seeds[row if len(seeds) > 1 else 0])
