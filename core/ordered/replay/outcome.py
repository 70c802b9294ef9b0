"""Results of a run with one number of workers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median_high

import numpy as np
from numpy.typing import NDArray

from adapt.core.ordered.chain.bound import BoundOperator
from adapt.core.ordered.chain.names import OperatorKind, PartitionCount
from adapt.core.ordered.engine.reference import OperatorTally, WorkersRun
from adapt.core.ordered.replay.arrivals import Paced

BEHIND = 0.05
"""Workers do not keep up if they need more than this share of a run after the last row has arrived."""

LONGER = 5
"""A sustainable rate is sustained with this many times the rows, too."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Latency of a run's timed tuples, in seconds.

    Only of those between the 20th and the 80th percentile of the run.
    """

    mean: float
    p50: float  # p50, p95, p99: percentiles
    p95: float
    p99: float

    @classmethod
    def from_seconds(cls, seconds: NDArray[np.float64]) -> "Latency | None":
        """Latency from single values; None without values."""
        if not len(seconds):
            return None
        p50, p95, p99 = np.percentile(seconds, (50, 95, 99), method="inverted_cdf").tolist()
        return cls(float(seconds.mean()), p50, p95, p99)


@dataclass(frozen=True, slots=True, eq=False)
class WorkersOutcome:
    """A run with one number of workers."""

    workers: int
    rows: int  # rows that entered the chain
    run: WorkersRun  # measurements
    is_ordered: bool | None  # whether the egress equals that of the serial run; None if it was not checked
    cpu_s: float | None  # CPU time of the process during the run; None in a model
    # all runs, of which this is the one with the median throughput or, at a rate of arrivals, the median 99th
    # percentile of the latency from end to end; None for a single one. Latencies are medians over all
    repeats: "Repeats | None" = None
    paced: Paced | None = None  # when rows arrived; None if all were there at the start

    @property
    def worker_s(self) -> float:
        """Time of all workers."""
        return self.used * self.run.elapsed_s

    @property
    def used(self) -> int:
        """Workers that the parallelization scheme has operators for."""
        return len(self.run.served) or self.workers

    @property
    def throughput(self) -> float | None:
        """Rows per second."""
        return self.rows / self.run.elapsed_s if self.run.elapsed_s > 0 else None

    @property
    def cores(self) -> float | None:
        """CPU seconds per second."""
        return None if self.cpu_s is None or self.run.elapsed_s <= 0 else self.cpu_s / self.run.elapsed_s

    @property
    def processing(self) -> Latency | None:
        """Latency from the first operator until the last output has left."""
        return self._latency("processing")

    @property
    def wait(self) -> Latency | None:
        """Wait in the first work queue, until the first operator starts."""
        return self._latency("wait")

    @property
    def end_to_end(self) -> Latency | None:
        """Latency from the first work queue until the last output has left."""
        return self._latency("end_to_end")

    def _latency(self, name: str) -> Latency | None:
        """A latency of this run, or its medians over repeated runs."""
        if self.repeats is not None:
            return self.repeats.latencies[name]
        return Latency.from_seconds(getattr(self.run.marks, f"{name}_s")())

    @property
    def later_s(self) -> float:
        """Latency at the end of a longer run, growing on likewise.

        A run of `LONGER` times the rows. It grows by the difference of its medians over the last and the third fifth of
        the timed tuples, whose middles are 0.4 of the run apart.
        """
        ns = self.run.marks.left - self.run.marks.fed
        fifth = len(ns) // 5
        if not fifth:
            return 0.0
        middle, last = np.median(ns[2 * fifth : 3 * fifth]), np.median(ns[-fifth:])
        return float(last + (last - middle) * (LONGER - 0.9) / 0.4) / 1e9

    @property
    def drain_s(self) -> float | None:
        """Time from the last arrival to the last output, if paced."""
        return None if self.paced is None else max(self.run.elapsed_s - self.paced.last_s, 0.0)

    @property
    def keeps_up(self) -> bool:
        """Whether the workers process rows at the rate of their arrival."""
        return self.drain_s is None or self.drain_s <= BEHIND * self.run.elapsed_s

    @property
    def feeder_lag_s(self) -> tuple[float, float] | None:
        """99th percentile and maximum of the lag of idle workers."""
        lag = self.run.marks.lag
        if not len(lag):
            return None
        return float(np.percentile(lag, 99, method="inverted_cdf")) / 1e9, float(lag.max()) / 1e9

    @property
    def imbalance(self) -> float | None:
        """Largest partition imbalance of all operators; None without partitioned operators."""
        known = [imbalance_of(tally) for tally in self.run.operators if len(tally.partition_loads) > 1]
        return max((one for one in known if one is not None), default=None)

    def share_of_time(self, ns: int) -> float | None:
        """A time as a share of that of all workers."""
        return ns / 1e9 / self.worker_s if self.worker_s > 0 else None


@dataclass(frozen=True, slots=True)
class Repeats:
    """Spread of repeated runs."""

    runs: int
    lowest: float  # lowest throughput, in rows/s
    highest: float  # highest throughput, in rows/s
    noise: float  # slowest time of a fixed loop before each run over the fastest
    # of each latency, the median over the runs of its mean and of its percentiles; the higher of the two in the
    # middle
    latencies: Mapping[str, Latency | None]


def median_of(runs: Sequence[WorkersOutcome], loops_s: Sequence[float]) -> WorkersOutcome:
    """The median run, with the spread of all.

    By throughput or, at a rate of arrivals, by latency.
    It is the worse of the two in the middle.

    Args:
        runs: Runs with one number of workers, at least one.
        loops_s: How long a fixed loop took before each.
    """
    ranked = sorted(runs, key=_goodness)
    speeds = [one.throughput or 0.0 for one in runs]
    checked = [one.is_ordered for one in runs if one.is_ordered is not None]
    return replace(
        ranked[(len(ranked) - 1) // 2],
        is_ordered=all(checked) if checked else None,
        repeats=Repeats(
            *(len(runs), min(speeds), max(speeds), max(loops_s) / min(loops_s)),
            {name: _medians([getattr(one, name) for one in runs]) for name in ("processing", "wait", "end_to_end")},
        ),
    )


def _medians(runs: Sequence[Latency | None]) -> Latency | None:
    """Medians over runs; None if they have no timed tuples."""
    known = [one for one in runs if one is not None]
    if not known:
        return None
    return Latency(*(median_high(getattr(one, field.name) for one in known) for field in fields(Latency)))


def _goodness(one: WorkersOutcome) -> float:
    """Throughput, or the negative p99 latency at a rate of arrivals."""
    if one.paced is not None and one.end_to_end is not None:
        return -one.end_to_end.p99
    return one.throughput or 0.0


def imbalance_of(tally: OperatorTally) -> float | None:
    """Tuples of the largest partition over the mean; None without tuples."""
    loads = tally.partition_loads
    return float(loads.max() / loads.mean()) if loads.any() else None


def fullest_share(tally: OperatorTally) -> float | None:
    """Share of the tuples in the largest partition; None without tuples."""
    loads = tally.partition_loads
    return float(loads.max() / loads.sum()) if loads.any() else None


@dataclass(frozen=True, slots=True)
class Bound:
    """Upper bound of the speed-up, and the operator that causes it."""

    speed_up: float  # highest possible speed-up over one worker
    operator: str  # name of the operator that limits it
    kind: OperatorKind  # kind of that operator: stateful, or partitioned with a largest partition
    share: float  # share of all work that only one worker at a time can do there


def bound_of(operators: Sequence[BoundOperator], outcome: WorkersOutcome) -> Bound | None:
    """Bound on the speed-up by work of one worker at a time.

    None without such work. An operator with as many partitions as workers sets none.

    Work is the time that workers spent on an operator, divided over its partitions by their tuples.
    """
    work_ns = sum(tally.busy_ns for tally in outcome.run.operators)
    bounds = []
    for bound, tally in zip(operators, outcome.run.operators, strict=True):
        kind = bound.operator.kind
        alone = 1.0 if kind is OperatorKind.STATEFUL else fullest_share(tally)
        grows = bound.operator.partitions is PartitionCount.WORKERS
        if kind is not OperatorKind.STATELESS and not grows and alone and tally.busy_ns:
            share = alone * tally.busy_ns / work_ns
            bounds.append(Bound(1 / share, tally.name, kind, share))
    return min(bounds, key=lambda one: one.speed_up, default=None)
