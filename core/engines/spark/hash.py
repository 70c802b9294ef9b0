"""Spark SQL's `hash` of key columns, a variant of MurmurHash3."""

from typing import Any, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.engines.hash_functions.murmur3_32 import finished, mixed, word_at
from adapt.core.keys.columns import KeyBytes, key_bytes, one_array
from adapt.core.keys.typed_keys import narrowed, rows_of, words_of
from adapt.core.stream import KeyType

SEED = 42
"""The seed of Spark's `hash` and of its hash partitioning; the hash of null."""


def spark_hash(keys: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
    """Spark SQL's `hash(key)` of a string, binary or bigint column; shape (rows,).

    Strings are hashed as UTF-8. Unlike in the standard function, each byte after the last word of four is sign-extended
    and mixed as a word. Null gives the seed. Integers are hashed as bigint.

    Source: users and peers, section 5.1; tested against Spark.
    """
    column = one_array(keys)
    hashes = spark_hash_of_bytes(key_bytes(column))
    if column.null_count:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = SEED
    return hashes


def spark_hash_of_bytes(keys: KeyBytes, key_type: KeyType = KeyType.STRING) -> NDArray[np.int32]:
    """Spark's hash of keys as bytes, without nulls; shape (rows,).

    An int, date or boolean is hashed as 4 bytes, a bigint, time or decimal of up to 18 digits as 8. Each of several
    columns begins with the hash of those before it; a null leaves that as it is. What is not of the type is hashed as
    text.

    Source: Spark, HashExpression in hash.scala; tested against Spark.
    """
    seeds = np.full(len(keys), SEED, np.int32)
    if key_type in (KeyType.INT8, KeyType.INT16, KeyType.INT32):
        return _hashed(narrowed(keys, "<i4"), seeds)
    if key_type in (KeyType.STRING, KeyType.INT64, KeyType.BINARY):
        return _hashed(keys, seeds)
    rows = rows_of(keys, key_type)
    if None in rows:
        hashes = _hashed(keys, seeds)
        known = np.flatnonzero([row is not None for row in rows])
    else:
        hashes, known = seeds, np.arange(len(keys))
    for at, kind in enumerate(key_type.columns or (key_type,)):
        values = [cast(tuple[Any, ...], rows[row])[at] for row in known]
        present = np.array([value is not None for value in values], np.bool_)
        folded = seeds[known[present]]
        seeds[known[present]] = _hashed(words_of([value for value in values if value is not None], kind), folded)
    hashes[known] = seeds[known]
    return hashes


def _hashed(keys: KeyBytes, seeds: NDArray[np.int32]) -> NDArray[np.int32]:
    hashes = np.empty(len(keys), np.int32)
    _spark_hash(keys.data, keys.offsets, seeds, hashes)
    return hashes


@compiled
def _spark_hash(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], seeds: NDArray[np.int32], out: NDArray[np.int32]
) -> None:
    for row in range(len(out)):
        start, end = offsets[row], offsets[row + 1]
        length = np.uint32(end - start)
        state = np.uint32(seeds[row])
        while end - start >= 4:
            state = mixed(state, word_at(data, start))
            start += 4
        while start < end:
            state = mixed(state, np.uint32(np.int32(np.int8(data[start]))))
            start += 1
        out[row] = np.int32(finished(state ^ length))
