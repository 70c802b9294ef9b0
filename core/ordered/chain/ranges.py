"""Range partitioning: neighboring keys share a partition."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray


def range_partitions(keys: pa.Array, partitions: int) -> NDArray[np.int64]:
    """Partition of each of some distinct keys, shape (keys,).

    Integers are divided into ranges of equal width from the lowest to the highest, strings and bytes into ranges with
    equal numbers of keys. Null goes to partition 0.

    Source: ordered streams, sections 4 and 7 (Figure 9). The paper does not say how ranges are cut.
    """
    present = np.asarray(keys.is_valid().to_numpy(zero_copy_only=False))
    of = np.zeros(len(keys), np.int64)
    if present.any():
        known = keys.filter(keys.is_valid())
        of[present] = (_by_width if keys.type == pa.int64() else _by_rank)(known, partitions)
    return of


def _by_width(keys: pa.Array, partitions: int) -> NDArray[np.int64]:
    # In unsigned words, which hold the distance of any two integers.
    values = keys.to_numpy().astype(np.int64).view(np.uint64)
    least = keys.to_numpy().min().view(np.uint64)
    distance = values - least
    width = int(distance.max()) // partitions + 1
    return np.asarray(distance // np.uint64(width), np.int64)


def _by_rank(keys: pa.Array, partitions: int) -> NDArray[np.int64]:
    order = pc.sort_indices(keys).to_numpy()
    ranks = np.empty(len(keys), np.int64)
    ranks[order] = np.arange(len(keys))
    return ranks * partitions // len(keys)
