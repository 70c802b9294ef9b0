"""The order of counted keys, with ties broken by key bytes."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.counting.frequencies import Counts
from adapt.core.keys.columns import key_type_of
from adapt.core.stream import KeyType


def key_order(keys: pa.Array, counts: Counts) -> NDArray[np.int64]:
    """Positions by descending count, then key bytes, null first; shape (keys,).

    Key bytes are the hashed bytes: UTF-8 for strings, 8 little-endian bytes for integers (so 256 comes before 1).
    """
    columns = {"count": np.ascontiguousarray(counts), "present": keys.is_valid(), "key": in_byte_order(keys)}
    order = pc.sort_indices(
        pa.table(columns), sort_keys=[("count", "descending"), ("present", "ascending"), ("key", "ascending")]
    )
    return np.asarray(order.to_numpy(), dtype=np.int64)


def heaviest(keys: pa.Array, counts: Counts, most: int) -> NDArray[np.int64]:
    """The first `most` positions of `key_order`, without sorting the others."""
    if len(counts) <= most:
        return key_order(keys, counts)
    least = np.partition(counts, -most)[-most]
    chosen = np.flatnonzero(counts >= least)
    return chosen[key_order(keys.take(pa.array(chosen)), counts[chosen])[:most]]


def in_byte_order(keys: pa.Array) -> pa.Array:
    """A column that sorts as key bytes; integers are byte-swapped."""
    if key_type_of(keys.type) is not KeyType.INT64:
        return keys
    missing = keys.is_null().to_numpy(zero_copy_only=False)
    values: NDArray[np.int64] = keys.fill_null(0).to_numpy(zero_copy_only=False)
    return pa.array(values.view(np.uint64).byteswap(), mask=missing)
