"""Rows that the scenarios of a process share, decoded once."""

from collections.abc import Iterable, Iterator
from functools import cache

import pyarrow as pa

from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.lossy import LossyCounter
from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.mechanisms.scenario import Stream
from adapt.core.stage.input.keyed_rows import BYTES, KEY, bytes_by_partition
from adapt.core.stream import Weight
from adapt.traces.replay.operators import encoded
from adapt.traces.store.trace import Trace

EPSILON = 1e-4
"""Error of the key counts, as a share of the rows."""

MOST_BYTES = 256 << 20
"""Decoded rows that a process keeps; it reads a longer trace again for each scenario."""


class SharedReading:
    """The rows of a trace, by columns."""

    def __init__(self, trace: Trace, most_bytes: int = MOST_BYTES) -> None:
        """Keep nothing yet."""
        self._trace = trace
        self._most = most_bytes
        self._kept: dict[tuple[str, ...], list[pa.RecordBatch]] = {}
        self._bytes = 0

    def batches(self, columns: list[str]) -> Iterable[pa.RecordBatch]:
        """Rows in time order, kept when read to the end."""
        return self._kept.get(tuple(columns)) or self._read(columns)

    def _read(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        kept: list[pa.RecordBatch] | None = []
        size = self._bytes
        for batch in self._trace.batches(columns, encoded(self._trace, columns)):
            size += batch.get_total_buffer_size()
            if kept is not None:
                kept = [*kept, batch] if size <= self._most else None
            yield batch
        if kept is not None and tuple(columns) not in self._kept:
            self._kept[tuple(columns)], self._bytes = kept, size


def stream_of(trace: Trace, most_bytes: int = MOST_BYTES) -> Stream:
    """A trace as the stream of scenarios, counted at most once."""
    shared = SharedReading(trace, most_bytes)

    @cache
    def counts() -> Frequencies:
        return counted(trace)

    return Stream(
        rows=lambda reading: reading.rows(lambda: shared.batches(reading.columns)),
        counted=counts,
        bytes=lambda placed: bytes_by_partition(shared.batches([KEY, BYTES]), placed),
    )


def counted(trace: Trace) -> Frequencies:
    """Key counts of a trace, of all keys above `EPSILON`."""
    counter = LossyCounter(EPSILON, ARROW_TYPES[trace.key_type], Weight.COUNT)
    for batch in trace.batches([KEY]):
        counter.update(batch.column(KEY))
    return counter.summary().frequencies(EPSILON)
