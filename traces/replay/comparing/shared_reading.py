"""Rows that the scenarios of a process share, decoded once."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.lossy import LossyCounter
from adapt.core.errors import BadInput
from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.mechanisms.scenario import Stream
from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.keyed_rows import BYTES, KEY, Reading, bytes_by_partition
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.core.stage.input.offered_load import Demand
from adapt.core.stream import Weight
from adapt.traces.replay.operators import encoded
from adapt.traces.store.trace import Trace, open_trace

EPSILON = 1e-4
"""Error of the key counts, as a share of the rows."""

MOST_BYTES = 256 << 20
"""Decoded rows and their partitions that a process keeps; what does not fit it reads or routes again."""

MOST_DEMANDS = 16
"""Offered loads that a process keeps."""


class SharedReading:
    """Rows of a trace by columns, and their partitions."""

    def __init__(self, trace: Trace, most_bytes: int = MOST_BYTES) -> None:
        """Keep nothing yet."""
        self._trace = trace
        self._most = most_bytes
        self._kept: dict[tuple[str, ...], list[pa.RecordBatch]] = {}
        self._routes: dict[tuple[MiniPartitions, int], NDArray[Any]] = {}
        self._bytes = 0

    def batches(self, columns: list[str]) -> Iterable[pa.RecordBatch]:
        """Rows in time order, kept when read to the end."""
        return self._kept.get(tuple(columns)) or self._read(columns)

    def route(self, partitions: MiniPartitions, keys: pa.Array, before: int) -> NDArray[Any]:
        """The partition of each key, found once per placement by hash.

        It is kept only after the rows, which take longer to read.

        Args:
            before: Number of rows before the batch.
        """
        known = self._routes.get((partitions, before))
        if known is None:
            known = partitions.partitions_of(keys).astype(np.min_scalar_type(partitions.count))
            if self._kept and self._bytes + known.nbytes <= self._most:
                self._routes[partitions, before] = known
                self._bytes += known.nbytes
        return known

    def _read(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        kept: list[pa.RecordBatch] | None = []
        size = 0
        for batch in self._trace.batches(columns, encoded(self._trace, columns)):
            size += batch.get_total_buffer_size()
            if kept is not None:
                kept = [*kept, batch] if self._bytes + size <= self._most else None
            yield batch
        if kept is not None and tuple(columns) not in self._kept:
            self._kept[tuple(columns)] = kept
            self._bytes += size


def stream_of(trace: Trace, most_bytes: int = MOST_BYTES) -> Stream:
    """A trace as the stream of scenarios, counted at most once."""
    shared = SharedReading(trace, most_bytes)

    @cache
    def counts() -> Frequencies:
        return counted(trace)

    def rows(reading: Reading) -> Rows:
        return reading.rows(lambda: shared.batches(reading.columns), shared.route if reading.is_hashed else None)

    demands: OrderedDict[tuple[Reading, float, float], Demand] = OrderedDict()

    def demand(reading: Reading, settings: StageSettings) -> Demand:
        if not reading.is_hashed or reading.costs is not None:
            return Demand.from_chunks(rows(reading).chunks(), settings)
        key = reading, settings.costs.service_s, settings.costs.produce_s
        if key not in demands:
            demands[key] = Demand.from_chunks(rows(reading).chunks(), settings)
            if len(demands) > MOST_DEMANDS:
                demands.popitem(last=False)
        return demands[key]

    return Stream(
        rows=rows,
        counted=counts,
        bytes=lambda placed: bytes_by_partition(shared.batches([KEY, BYTES]), placed),
        known=demand,
    )


@lru_cache(1)
def shared_stream(path: Path, content_hash: str) -> Stream:
    """The trace of this process, read once for all its scenarios."""
    trace = open_trace(path)
    if trace.manifest.content_hash != content_hash:
        raise BadInput(f"{path} differs on the machine that runs scenarios; give all machines one trace")
    return stream_of(trace)


@contextmanager
def one_reading() -> Iterator[None]:
    """A comparison, at whose end this process forgets the trace."""
    try:
        yield
    finally:
        shared_stream.cache_clear()


def counted(trace: Trace) -> Frequencies:
    """Key counts of a trace, of all keys above `EPSILON`."""
    counter = LossyCounter(EPSILON, ARROW_TYPES[trace.key_type], Weight.COUNT)
    for batch in trace.batches([KEY]):
        counter.update(batch.column(KEY))
    return counter.summary().frequencies(EPSILON, key_type=trace.key_type)
