"""Samples of a topic: short runs, and their design effect."""

from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import isqrt

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
from adapt.core.random_bits import substream, uniforms
from adapt.traces.sources.live.topic_records import TopicRecords
from adapt.traces.sources.reading.files import SourceFile

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


GROUPS = 1024
"""Groups of keys, by hash, whose shares are looked at."""

_ROWS = 4096


def sample_effect(sample: RecordSample, form: TopicRecords, files: Sequence[SourceFile]) -> float:
    """Variance of shares, over that of records drawn singly; from 1.

    The largest of the key and the wanted fields of the payload. The variance is that between the runs of a partition,
    of all groups of keys together.

    Args:
        files: One for each partition, in the order of offsets.

    Source: the design effect of cluster samples; Kish, "Survey Sampling", 1965, sections 5.4 and 8.2.
    """
    columns = {("key",): Spread(), **{("payload", *path): Spread() for path in form.fields}}
    wanted = ["partition", "offset", *dict.fromkeys(path[0] for path in columns)]
    for at, file in enumerate(files):
        for block in form.cut(at, file):
            for batch in form.read(block, wanted):
                runs = sample.runs(batch["partition"].to_numpy(), batch["offset"].to_numpy())
                for (name, *path), spread in columns.items():
                    spread.add(runs, pc.struct_field(batch[name], path) if path else batch[name])
        for spread in columns.values():
            spread.end_partition()
    return max(1.0, *(spread.effect for spread in columns.values()))


class Spread:
    """Variance of the shares of groups of keys between runs."""

    def __init__(self) -> None:
        self._between = self._single = 0.0
        self._run, self._counts = -1, np.zeros(GROUPS)
        self._begin()

    def _begin(self) -> None:
        self._runs = self._rows = self._squares = 0.0
        self._sums, self._products, self._powers = np.zeros(GROUPS), np.zeros(GROUPS), np.zeros(GROUPS)

    def add(self, runs: NDArray[np.int64], keys: pa.Array) -> None:
        """Add rows of a partition; runs never fall."""
        groups = HASHES[HashName.XXHASH64].modulo(keys, GROUPS)
        for first in range(0, len(runs), _ROWS):
            numbers, rows = np.unique(runs[first : first + _ROWS], return_inverse=True)
            cells = rows * GROUPS + groups[first : first + _ROWS]
            counts = np.bincount(cells, minlength=len(numbers) * GROUPS).reshape(-1, GROUPS).astype(np.float64)
            if numbers[0] == self._run:
                counts[0] += self._counts
            else:
                self._fold(self._counts[None])
            self._fold(counts[:-1])
            self._run, self._counts = int(numbers[-1]), counts[-1]

    def _fold(self, counts: Floats) -> None:
        """Add whole runs; shape (runs, groups)."""
        rows = counts.sum(axis=1)
        self._runs += int((rows > 0).sum())
        self._rows += float(rows.sum())
        self._squares += float((rows**2).sum())
        self._sums += counts.sum(axis=0)
        self._products += rows @ counts
        self._powers += (counts**2).sum(axis=0)

    def end_partition(self) -> None:
        """Add the variances of a partition; one run alone has none."""
        self._fold(self._counts[None])
        self._run, self._counts = -1, np.zeros(GROUPS)
        if self._runs > 1:
            shares = self._sums / self._rows
            spread = self._powers - 2 * shares * self._products + shares**2 * self._squares
            self._between += self._runs / (self._runs - 1) * float(spread.sum())
            self._single += self._rows * float((shares * (1 - shares)).sum())
        self._begin()

    @property
    def effect(self) -> float:
        """Variance between runs over that of single records."""
        return self._between / self._single if self._single else 1.0
