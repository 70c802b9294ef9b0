"""Samples of a topic: short runs spread over its offsets."""

from collections.abc import Mapping
from fractions import Fraction
from math import isqrt

import numpy as np
from numpy.typing import NDArray

from adapt.core.random_bits import substream, uniforms

_FAR = 500
"""Records between runs, and ..."""

_SPARSE = Fraction(1, 5)
"""... the largest share, for which runs are fetched alone."""

_FETCH_BYTES = 1 << 14, 1 << 20
_BYTES_A_RECORD = 128


class RecordSample:
    """A sample of records, by partition and offset alone.

    Each partition takes its share in runs at equal distances, from a random offset on, around its end to its begin. So
    every record has the same chance, and every partition its share. There are as many runs as a run has records. The
    same offsets always give the same sample, however they are fetched.

    Attributes:
        run: Records of a run.
        fetch_bytes: What to fetch at once, if runs are far enough apart to be fetched alone; else None.

    Source: circular systematic samples of clusters; Cochran, "Sampling Techniques", 1977, chapter 8.
    """

    def __init__(self, share: Fraction, begins: Mapping[int, int], ends: Mapping[int, int], seed: int = 0) -> None:
        """A sample of some share, in (0, 1], of the offsets of each partition."""
        sizes = {partition: ends[partition] - begins[partition] for partition in begins}
        self.run = max(1, isqrt(int(share * sum(sizes.values()))))
        self._begins, self._sizes, self._taken, self._runs, self._phases = np.ones(
            (5, 1 + max(sizes, default=0)), np.int64
        )
        for partition, size in sizes.items():
            up, phase = uniforms(substream(seed, partition), np.arange(2)).tolist()
            taken = min(size, int(share * size + Fraction(up)))
            self._begins[partition], self._sizes[partition], self._taken[partition] = begins[partition], size, taken
            self._runs[partition] = max(1, round(taken / self.run))
            self._phases[partition] = int(phase * size)
        is_sparse = share <= _SPARSE and self.run / share > _FAR
        self.fetch_bytes = int(np.clip(self.run * _BYTES_A_RECORD, *_FETCH_BYTES)) if is_sparse else None

    def takes(self, partitions: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Mask of the records that are taken; shape (records,)."""
        at = self._place(partitions, offsets) % self._sizes[partitions]
        run = at * self._runs[partitions] // self._sizes[partitions]
        return np.asarray(at - self._start(partitions, run) < self._length(partitions, run))

    def runs(self, partitions: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Number of each record's run, rising with the offset; shape (records,)."""
        return np.asarray(self._place(partitions, offsets) * self._runs[partitions] // self._sizes[partitions])

    def next_from(self, partition: int, offset: int) -> int:
        """The first taken offset of a partition, from this one on.

        Without any, its end or a later one.
        """
        number, offsets = np.array([partition]), np.array([offset])
        if self.takes(number, offsets)[0]:
            return offset
        size = int(self._sizes[partition])
        if not self._taken[partition]:
            return offset + size
        at = int(self._place(number, offsets)[0] % size)
        run = at * self._runs[partition] // size
        return offset + int(self._start(number, run + 1)[0]) - at

    def _place(self, partitions: NDArray[np.int64], offsets: NDArray[np.int64]) -> NDArray[np.int64]:
        """Offsets from where the first run begins, without the way around."""
        return np.asarray(offsets - self._begins[partitions] + self._phases[partitions])

    def _start(self, partitions: NDArray[np.int64], run: NDArray[np.int64]) -> NDArray[np.int64]:
        return np.asarray(-(-run * self._sizes[partitions] // self._runs[partitions]))

    def _length(self, partitions: NDArray[np.int64], run: NDArray[np.int64]) -> NDArray[np.int64]:
        taken, runs = self._taken[partitions], self._runs[partitions]
        return np.asarray((run + 1) * taken // runs - run * taken // runs)
