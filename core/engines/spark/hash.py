"""Spark SQL's `hash` of key columns, a variant of MurmurHash3."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.engines.hash_functions.murmur3_32 import finished, mixed
from adapt.core.engines.hash_functions.words import word_at
from adapt.core.keys.columns import KeyBytes, key_bytes, one_array
from adapt.core.stream import KeyType

SEED = 42
"""The seed of Spark's `hash` and of its hash partitioning; the hash of null."""


def spark_hash(keys: pa.Array | pa.ChunkedArray) -> NDArray[np.int32]:
    """Spark SQL's `hash(key)` of a string, binary or bigint column; shape (rows,).

    Strings are hashed as UTF-8. Unlike in the standard function, each byte after the last word of four is sign-extended
    and mixed as a word. Null gives the seed. Integers are hashed as bigint; Spark gives the same value in an int column
    another hash.

    Raises:
        ValueError: the column is none of string, int64 and binary.

    Source: users and peers, section 5.1; tested against Spark.
    """
    column = one_array(keys)
    hashes = spark_hash_of_bytes(key_bytes(column))
    if column.null_count:
        hashes[column.is_null().to_numpy(zero_copy_only=False)] = SEED
    return hashes


def spark_hash_of_bytes(keys: KeyBytes, key_type: KeyType | None = None) -> NDArray[np.int32]:  # noqa: ARG001 - alike
    """Spark's hash of keys as bytes, without nulls; shape (rows,)."""
    hashes = np.empty(len(keys), np.int32)
    _spark_hash(keys.data, keys.offsets, hashes)
    return hashes


@compiled
def _spark_hash(data: NDArray[np.uint8], offsets: NDArray[np.int64], out: NDArray[np.int32]) -> None:
    for row in range(len(out)):
        start, end = offsets[row], offsets[row + 1]
        length = np.uint32(end - start)
        state = np.uint32(SEED)
        while end - start >= 4:
            state = mixed(state, word_at(data, start))
            start += 4
        while start < end:
            state = mixed(state, np.uint32(np.int32(np.int8(data[start]))))
            start += 1
        out[row] = np.int32(finished(state ^ length))
