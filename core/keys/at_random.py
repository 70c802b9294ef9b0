"""Keys that a producer places at random."""

from enum import StrEnum

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.keys.columns import key_bytes


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
