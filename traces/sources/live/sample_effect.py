"""Design effect of samples that take runs of records."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
from adapt.traces.sources.live.sample import RecordSample
from adapt.traces.sources.live.topic_records import TopicRecords
from adapt.traces.sources.reading.files import SourceFile

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
