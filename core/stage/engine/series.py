"""Time series of a running stage, interval by interval."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.histogram import bins_of, percentile
from adapt.core.metrics import column_named, columns_named
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.table import Column, Kind, Table


@dataclass(frozen=True, slots=True, eq=False)
class Latencies:
    """Latency histogram of the tuples processed in an interval."""

    first: int  # first bin with a tuple
    counts: NDArray[np.int64]  # tuples per bin, from the first to the last filled bin
    sum_s: float
    max_s: float  # largest latency

    @classmethod
    def from_seconds(cls, seconds: NDArray[np.float64]) -> "Latencies":
        """The histogram of single latencies."""
        if not len(seconds):
            return together([])
        bins = bins_of(seconds)
        first = int(bins.min())
        return cls(first, np.bincount(bins - first), float(seconds.sum()), float(seconds.max()))

    @property
    def mean_s(self) -> float | None:
        """Mean latency; None without tuples."""
        count = int(self.counts.sum())
        return self.sum_s / count if count else None

    def share_below_s(self, share: float) -> float | None:
        """Percentile of latency, at most 1/32 too high; None without tuples."""
        value = percentile(self.counts, share, self.first)
        return None if value is None else min(value, self.max_s)


def together(parts: Sequence[Latencies]) -> Latencies:
    """Merge the latencies of several intervals."""
    filled = [one for one in parts if len(one.counts)]
    if not filled:
        return Latencies(0, np.empty(0, np.int64), 0.0, 0.0)
    first = min(one.first for one in filled)
    counts = np.zeros(max(one.first + len(one.counts) for one in filled) - first, np.int64)
    for one in filled:
        counts[one.first - first : one.first - first + len(one.counts)] += one.counts
    return Latencies(first, counts, sum(one.sum_s for one in filled), max(one.max_s for one in filled))


@dataclass(frozen=True, slots=True, eq=False)
class Interval:
    """Statistics of one interval."""

    start_s: float  # start time
    end_s: float  # end time
    generated: int  # tuples produced or taken from the stream
    processed: int  # tuples processed by consumers
    operator: Latencies  # latency from when a consumer takes a tuple until it is processed
    total: Latencies  # latency from the arrival (or the draw) of a tuple until it is processed
    by_worker: NDArray[np.int64]  # processed tuples of each worker, shape (workers,)
    idle: NDArray[np.float64]  # share of time in which each consumer was idle or dead, shape (workers,)
    pools: NDArray[np.int32]  # tuples buffered by each producer at the end, shape (workers,)
    connections: NDArray[np.int64]  # tuples in the connections to each worker at the end, shape (workers,)
    partitions: NDArray[np.int64]  # partitions of each worker at the end, shape (workers,)
    on_disk: int  # partitions on disk at the end
    spilled: int  # tuples on disk at the end
    lost: int  # tuples lost in crashes
    shed: int  # tuples dropped by load shedding
    living: int  # live workers at the end
    source_queue: int | None  # rows that arrived and wait for their producer at the end; None without arrival times
    waited_s: float  # longest wait of a row for its producer
    lag: int | None  # most rows that had arrived and were not processed at a time; None without arrival times
    behind: float  # share of time, over producers, in which a row waited for its producer; counted when it is taken
    # state of the partitions of each worker in its memory at the end, in bytes, shape (workers,)
    state_in_memory: NDArray[np.int64]
    state_on_disk: NDArray[np.int64]  # state of those on its disk, likewise
    answers: int = 0  # matches of the processed tuples, for a join

    @property
    def throughput(self) -> float:
        """Processed tuples per second."""
        return self.processed / (self.end_s - self.start_s)


class Series:
    """Samples a stage; `take` closes an interval."""

    def __init__(self, stage: Stage) -> None:
        """Begin the first interval."""
        self._stage = stage
        self.intervals: list[Interval] = []
        self._start_s = stage.now_s
        self._generated = 0
        self._processed = 0
        self._by_worker = np.zeros(stage.settings.workers, np.int64)
        self._idle_s = np.zeros(stage.settings.workers)
        self._behind_s = 0.0
        self._lost = 0
        self._shed = 0
        self._answers = 0

    def take(self) -> Interval:
        """Close the current interval and begin the next."""
        stage, arrays = self._stage, self._stage.arrays
        workers, producers = arrays["worker"], arrays["producer"]
        n, now = stage.settings.workers, stage.now_s
        lasted = now - self._start_s
        operator, total = self._latencies()
        generated, processed = int(producers["generated"].sum()), int(arrays.world["processed"])
        idle_s, behind_s = stage.idle_s(), float(producers["behind"].sum())
        timed = stage.feed is not None and stage.feed.timed
        arrived = stage.arrived() if timed else 0
        world, done = arrays.world, processed + stage.lost + stage.shed
        sizes, owners = stage.state_bytes(), arrays["partition"]["owner"]
        on_disk = arrays["partition"]["on_disk"] != 0
        taken = Interval(
            start_s=self._start_s,
            end_s=now,
            generated=generated - self._generated,
            processed=processed - self._processed,
            operator=operator,
            total=total,
            by_worker=workers["processed"] - self._by_worker,
            idle=(idle_s - self._idle_s) / lasted,
            pools=producers["held"].copy(),
            connections=arrays["connection"]["count"].reshape(n, n).sum(axis=1),
            partitions=np.bincount(owners[stage.in_use], minlength=n),
            on_disk=int(arrays.world["on_disk"]),
            spilled=int(arrays["partition"]["spilled"].sum()),
            lost=stage.lost - self._lost,
            shed=stage.shed - self._shed,
            living=n - len(stage.dead),
            source_queue=arrived - generated if timed else None,
            waited_s=float(producers["waited"].max()),
            lag=max(int(world["lag_max"]), arrived - done) if timed else None,
            behind=(behind_s - self._behind_s) / lasted / n,
            state_in_memory=np.bincount(owners, np.where(on_disk, 0, sizes), n).astype(np.int64),
            state_on_disk=np.bincount(owners, np.where(on_disk, sizes, 0), n).astype(np.int64),
            answers=(stage.answers or 0) - self._answers,
        )
        producers["waited"] = 0
        world["lag"] = world["lag_max"] = generated + int((producers["seen"] - producers["row"]).sum()) - done
        self._lost, self._shed, self._answers = stage.lost, stage.shed, stage.answers or 0
        self._start_s, self._generated, self._processed = now, generated, processed
        self._by_worker, self._idle_s, self._behind_s = workers["processed"].copy(), idle_s, behind_s
        self.intervals.append(taken)
        return taken

    def _latencies(self) -> tuple[Latencies, Latencies]:
        sums, bins = self._stage.arrays["latency"], self._stage.arrays["bin"]
        operator, total = (
            _latencies(counts, float(record["sum"]), float(record["max"]))
            for counts, record in zip(bins["count"].reshape(2, -1), sums, strict=True)
        )
        sums[:], bins[:] = 0, 0
        return operator, total


def _latencies(counts: NDArray[np.int64], sum_s: float, max_s: float) -> Latencies:
    """A histogram without the empty bins at both ends, to save memory."""
    filled = np.flatnonzero(counts)
    first, last = (int(filled[0]), int(filled[-1])) if len(filled) else (0, -1)
    return Latencies(first, counts[first : last + 1].copy(), sum_s, max_s)


def interval_table(intervals: list[Interval]) -> Table:
    """One row per interval."""
    columns = [
        Column("end", Kind.SECONDS, "s", "end of the interval"),
        Column("generated", Kind.COUNT, "tuples"),
        *columns_named("processed throughput operator_mean operator_p99 latency_mean latency_p50 latency_p95"),
        column_named("latency_p99"),
        Column("latency_max", Kind.SECONDS, "s"),
        Column("utilization_max", Kind.SHARE, "", "of the busiest worker"),
        Column("utilization_min", Kind.SHARE, "", "of the least busy worker"),
        Column("in_pools", Kind.COUNT, "tuples", "at the end of the interval"),
        Column("in_connections", Kind.COUNT, "tuples", "at the end of the interval"),
        Column("on_disk", Kind.COUNT, "partitions", "at the end of the interval"),
        Column("spilled", Kind.COUNT, "tuples", "on disk at the end of the interval"),
        *columns_named("lost rows_dropped"),
        Column("living", Kind.COUNT, "workers", "at the end of the interval"),
        Column("source_queue", Kind.COUNT, "rows", "waiting at the source at the end of the interval"),
        column_named("lag_max"),
        Column("behind", Kind.SHARE, "", "share of time in which a row waited at the source"),
    ]
    rows: list[list[int | float | None]] = []
    for one in intervals:
        rate = one.end_s, one.generated, one.processed, one.throughput
        operator = one.operator.mean_s, one.operator.share_below_s(0.99)
        total = (one.total.mean_s, *(one.total.share_below_s(share) for share in (0.5, 0.95, 0.99)))
        longest_s = one.total.max_s if one.processed else None
        utilization = float(1 - one.idle.min()), float(1 - one.idle.max())
        waiting = int(one.pools.sum()), int(one.connections.sum()), one.on_disk, one.spilled
        source = one.lost, one.shed, one.living, one.source_queue, one.lag, one.behind
        rows.append([*rate, *operator, *total, longest_s, *utilization, *waiting, *source])
    return Table.from_rows("Intervals", columns, rows)


def worker_table(intervals: list[Interval]) -> Table:
    """One row per interval and worker."""
    columns = [
        Column("end", Kind.SECONDS, "s", "end of the interval"),
        Column("worker", Kind.COUNT),
        column_named("processed"),
        Column("utilization", Kind.SHARE, "", "share of time in which the consumer was not idle"),
        Column("in_pool", Kind.COUNT, "tuples", "in the buffer of its producer, at the end of the interval"),
        Column("in_connections", Kind.COUNT, "tuples", "to its consumer, at the end of the interval"),
        Column("partitions", Kind.COUNT, "", "at the end of the interval"),
        Column("state", Kind.BYTES, "bytes", "of its partitions in memory, at the end of the interval"),
        Column("state_on_disk", Kind.BYTES, "bytes", "of those on its disk, at the end of the interval"),
    ]
    rows = [
        (one.end_s, worker, int(processed), float(1 - idle), *map(int, held))
        for one in intervals
        for worker, (processed, idle, *held) in enumerate(
            zip(
                *(one.by_worker, one.idle, one.pools, one.connections, one.partitions),
                *(one.state_in_memory, one.state_on_disk),
                strict=True,
            )
        )
    ]
    return Table.from_rows("Workers", columns, rows)
