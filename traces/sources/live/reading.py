"""Reads ranges of offsets from a cluster, all partitions side by side."""

import gc
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import chain
from math import isqrt
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.errors import EnvironmentFailure
from adapt.core.keys.hashes import HASHES
from adapt.core.keys.names import HashName
from adapt.core.random_bits import substream, uniforms
from adapt.traces.sources.live.topic_records import RecordFiles, TopicRecords
from adapt.traces.sources.reading.files import SourceFile
from adapt.traces.spark.progress import Progress

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
