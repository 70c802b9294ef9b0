"""Random Drop, tuple by tuple."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.fit.network.wiring import Indices
from adapt.core.random_bits import substream, uniforms


def random_drop(seed: int, arc: int, numbers: Indices, keep: float) -> NDArray[np.bool_]:
    """Random Drop: whether each tuple of an arc is kept; what is kept at one share is kept at every larger one.

    Args:
        seed: Of all coins.
        arc: The arc's number.
        numbers: The tuples' numbers among all that the arc was ever offered, shape (tuples,).
        keep: The share that is kept, in [0, 1].
    """
    return np.asarray(uniforms(substream(seed, arc), numbers) < keep)
