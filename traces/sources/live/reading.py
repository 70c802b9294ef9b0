"""Reads ranges of offsets from a cluster, all partitions side by side."""

import gc
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.errors import EnvironmentFailure
from adapt.traces.sources.live.kept import RecordFiles
from adapt.traces.sources.live.sample import RecordSample
from adapt.traces.spark.progress import Progress

BATCH = 5000
"""Records that are taken from the client at once."""

WAIT_S = 0.5
"""How long to wait for them."""

SPARSE_WAIT_S = 0.01
"""Likewise for runs of a sample, since the client reads on meanwhile."""

DOWN_S = 10.0
"""How long brokers may send nothing, once a connection has failed."""

SILENT_S = 60.0
"""How long they may send nothing otherwise."""

LATEST_MS = 9_000_000_000_000_000
"""Times beyond it have no microseconds in 64 bits, and count as missing."""

_END = "_PARTITION_EOF"


@dataclass(frozen=True, slots=True)
class Wanted:
    """The records to read."""

    begins: Mapping[int, int]  # first offset of each partition
    ends: Mapping[int, int]  # the offset after the last one of each partition
    first_ms: int | None  # earliest time of a record, in milliseconds since 1970; None for any
    end_ms: int | None  # the time after the last; None for any
    sample: RecordSample | None  # takes a sample of them; None for all
    schema: pa.Schema  # columns to keep


class Connection(Protocol):
    """What reading asks of a cluster."""

    consumer: Any

    def skip(self, partition: int, offset: int) -> None:
        """Seek to a later offset of a partition."""

    def has_failed(self) -> bool:
        """Whether any connection has failed since the start."""

    def lost(self, quiet_s: float) -> EnvironmentFailure:
        """Silent brokers, as an error."""

    def failed(self, error: Any) -> Exception:
        """An error of a partition as one of ours."""


class Reader:
    """Moves records from a cluster to files, up to the wanted offsets."""

    def __init__(self, cluster: Connection, topic: str, wanted: Wanted, files: RecordFiles, progress: Progress) -> None:
        """Go on after the last record of each file."""
        self._cluster, self._topic, self._wanted, self._files = cluster, topic, wanted, files
        self._progress = progress
        partitions = 1 + max(wanted.ends, default=-1)
        self._next, self._ends = np.zeros(partitions, np.int64), np.zeros(partitions, np.int64)
        for partition, end in wanted.ends.items():
            self._next[partition] = max(wanted.begins[partition], files.last.get(partition, -1) + 1)
            self._ends[partition] = end
            self._skips(partition)
        self._begun = self._next.copy()

    def read(self, place: Any) -> None:
        """Read until every partition has reached its end.

        Args:
            place: Makes a partition at an offset from topic, number and offset, as the client wants it.
        """
        consumer = self._cluster.consumer
        unfinished = set(np.flatnonzero(self._next < self._ends).tolist())
        consumer.assign([place(self._topic, partition, int(self._next[partition])) for partition in sorted(unfinished)])
        last, collected = time.monotonic(), gc.isenabled()
        gc.disable()  # messages make no cycles, and looking for some takes more time than reading
        try:
            while unfinished:
                messages = consumer.consume(*self._batch)
                if not messages:
                    self._check(time.monotonic() - last)
                    continue
                last = time.monotonic()
                done, skipping = self._taken(messages)
                done &= unfinished
                unfinished -= done
                if done and unfinished:
                    consumer.pause([place(self._topic, partition, 0) for partition in done])
                for partition in skipping & unfinished:
                    self._cluster.skip(partition, int(self._next[partition]))
                self._progress("reading the topic", int((self._next - self._begun).sum()), self._total)
        finally:
            if collected:
                gc.enable()
            self._files.flush()

    @property
    def _batch(self) -> tuple[int, float]:
        """Most records to take from the client at once, and the wait for them in seconds."""
        sample = self._wanted.sample
        return (BATCH, WAIT_S) if sample is None or sample.fetch_bytes is None else (sample.run, SPARSE_WAIT_S)

    @property
    def _total(self) -> int:
        return int((self._ends - self._begun).clip(0).sum())

    def _check(self, quiet_s: float) -> None:
        if quiet_s > (DOWN_S if self._cluster.has_failed() else SILENT_S):
            raise self._cluster.lost(quiet_s)

    def _skips(self, partition: int) -> bool:
        """Move on to the next record of the sample, if it is far; whether it was."""
        sample, at = self._wanted.sample, int(self._next[partition])
        if sample is None or sample.fetch_bytes is None:
            return False
        self._next[partition] = max(at, min(sample.next_from(partition, at), self._ends[partition]))
        return bool(self._next[partition] > at)

    def _taken(self, messages: Sequence[Any]) -> tuple[set[int], set[int]]:
        """Keep the wanted messages.

        Returns:
            The partitions that have reached their end, and those to be read from a later offset on.
        """
        ended: set[int] = set()
        errors = list(_each(messages, "error"))
        if any(errors):
            for message, error in zip(messages, errors, strict=True):
                if error is not None and error.name() == _END:
                    ended.add(message.partition())
                elif error is not None:
                    raise self._cluster.failed(error)
            messages = [message for message, error in zip(messages, errors, strict=True) if error is None]
        if not messages:
            return ended, set()
        partitions, offsets = (
            np.fromiter(_each(messages, name), np.int64, len(messages)) for name in ("partition", "offset")
        )
        wanted = (offsets >= self._next[partitions]) & (offsets < self._ends[partitions])
        np.maximum.at(self._next, partitions, np.minimum(offsets + 1, self._ends[partitions]))
        sampled = set[int]() if self._wanted.sample is None else set(partitions.tolist())
        skipping = {partition for partition in sampled if self._skips(partition)}
        if self._wanted.sample is not None:
            wanted &= self._wanted.sample.takes(partitions, offsets)
        if not wanted.all():
            kept = np.flatnonzero(wanted)
            partitions, offsets = partitions[kept], offsets[kept]
            messages = [messages[row] for row in kept.tolist()]
        if messages:
            self._files.add(self._columns(messages, partitions, offsets))
        return ended | set(np.flatnonzero(self._next >= self._ends).tolist()), skipping

    def _columns(
        self, messages: Sequence[Any], partitions: NDArray[np.int64], offsets: NDArray[np.int64]
    ) -> pa.RecordBatch:
        schema = self._wanted.schema
        parts = chain.from_iterable(_each(messages, "timestamp"))
        told = np.fromiter(parts, np.int64, 2 * len(messages)).reshape(-1, 2)
        columns = {
            "partition": pa.array(partitions, pa.int32()),
            "offset": pa.array(offsets),
            "ts": pa.array(told[:, 1], mask=(told[:, 0] == 0) | (abs(told[:, 1]) > LATEST_MS)).cast(
                schema.field("ts").type
            ),
            "key": pa.array(list(_each(messages, "key")), pa.binary()),
            "payload_size": pa.array(np.fromiter(map(len, messages), np.int32, len(messages))),
        }
        if "payload" in schema.names:
            columns["payload"] = pa.array(list(_each(messages, "value")), pa.binary())
        if "headers" in schema.names:
            columns["headers"] = pa.array([_headers(message.headers()) for message in messages], pa.string())
        batch = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
        if self._wanted.first_ms is self._wanted.end_ms is None:
            return batch
        return batch.filter(pa.array(self._in_time(told[:, 1]) | (told[:, 0] == 0)))

    def _in_time(self, times_ms: NDArray[np.int64]) -> NDArray[np.bool_]:
        first, end = self._wanted.first_ms, self._wanted.end_ms
        return (times_ms >= (first if first is not None else times_ms)) & (
            times_ms < end if end is not None else np.ones(len(times_ms), bool)
        )


def _each(messages: Sequence[Any], name: str) -> Iterator[Any]:
    """What a method gives for each message, without looking it up each time."""
    return map(getattr(type(messages[0]), name), messages)


def _headers(headers: Sequence[tuple[str, bytes | None]] | None) -> str | None:
    """Names and values in one JSON list, as kcat prints them."""
    if not headers:
        return None
    told = [part for name, value in headers for part in (name, _text(value))]
    return json.dumps(told, ensure_ascii=False)


def _text(value: bytes | str | None) -> str | None:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
