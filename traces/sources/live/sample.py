"""Samples of the records of a topic, spread over its offsets."""

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from adapt.core.random_bits import GOLDEN, mix, substream

_UNIT = 1 << 53


class RecordSample:
    """A random sample of records, by partition and offset alone.

    The same topic always gives the same sample, however it is fetched.
    """

    def __init__(self, share: Fraction, partitions: int, seed: int = 0) -> None:
        """A sample of some share of the records, in (0, 1]."""
        self._below = np.uint64(int(share * _UNIT))
        self._seeds = np.array([substream(seed, partition) for partition in range(partitions)], np.uint64)

    def takes(self, partitions: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Mask of the records that are taken; shape (records,)."""
        words = mix(self._seeds[partitions] + (offsets.astype(np.uint64) + np.uint64(1)) * GOLDEN)
        return (words >> np.uint64(11)) < self._below
