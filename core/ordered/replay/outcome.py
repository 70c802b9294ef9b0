"""Results of a run with one number of workers."""

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import median_high

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput
from adapt.core.ordered.chain.bound import END, BoundChain, BoundOperator, Words
from adapt.core.ordered.chain.names import OperatorKind, Parallelism, PartitionCount
from adapt.core.ordered.chain.own import WordType
from adapt.core.ordered.engine.kernel.work_queue import MARK, PUNCTUATION
from adapt.core.ordered.engine.outcome import OperatorTally, WorkersRun
from adapt.core.ordered.engine.reference import CompiledStep, PlainStep, marked_chunks
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.functions.function import Row
from adapt.core.ordered.functions.routed import taken_by
from adapt.core.ordered.own.function import inner_of, own_of, shown_value, value_of
from adapt.core.ordered.replay.arrivals import Paced
from adapt.core.phrases import counted
from adapt.core.table import Cell, Column, Kind, Table

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


_CLOSE = 1e-12
"""Relative difference of floats that are taken as equal: functions of math may differ in their last bits."""

_AT_ONCE = 1_000
"""Rows between two reports of progress."""


def check_sample(chain: BoundChain, rows: int, tell: Callable[[int], None] = lambda _: None) -> None:
    """Check that compiled own functions give what plain Python gives.

    On a stream of the first rows, with its end. `tell` is given the rows done.
    """
    steps = [(CompiledStep(chain, bound), own_of(bound), bound) for bound in chain.operators]
    plains = [None if own is None else PlainStep(bound, own) for _, own, bound in steps]
    end = np.zeros((1, len(chain.fields) + 1), np.int64)
    end[0, MARK], end[0, 1] = PUNCTUATION, END
    ends = [end] if len(chain.punctuations) and rows < len(chain.tuples) else []
    done = 0
    try:
        for tuples in itertools.chain(marked_chunks(chain, rows, _AT_ONCE), ends):
            tell(done)
            done += len(tuples)
            for (compiled, _, bound), plain in zip(steps, plains, strict=True):
                made = compiled.passed(tuples)
                if plain is not None:
                    _compare(bound, plain.outputs(tuples), made)
                tuples = made
    finally:
        for compiled, *_ in steps:
            compiled.release()


def _compare(bound: BoundOperator, plain: Iterable[tuple[Row | None, list[Row]]], made: Words) -> None:
    compiled = iter(made[made[:, MARK] != PUNCTUATION, 1:].view(np.uint64).tolist())
    rows = ((given, row) for given, outputs in plain for mark, *row in outputs if mark != PUNCTUATION)
    for given, row in itertools.chain(rows, [(None, None)]):
        other = next(compiled, None)
        if row is None and other is None:
            return
        if row is None or other is None or not _same(bound, row, other):
            raise BadInput(_difference(bound, given, row, other))


def _types(bound: BoundOperator) -> list[WordType]:
    """Types of the words of its outputs; in a graph, other streams pass as they are."""
    own = own_of(bound)
    made = {} if own is None else dict(own.own.outputs)
    types = [made.get(name, WordType.INTEGER) for name in inner_of(bound).gives]
    return types + [WordType.INTEGER] * (len(bound.gives) - len(types))


def _same(bound: BoundOperator, plain: Sequence[int], compiled: Sequence[int]) -> bool:
    if compiled == plain:
        return True
    return all(
        one == other
        or (kind is WordType.FLOAT and math.isclose(value_of(one, kind), value_of(other, kind), rel_tol=_CLOSE))
        for one, other, kind in zip(plain, compiled, _types(bound), strict=True)
    )


def _difference(
    bound: BoundOperator, given: Row | None, plain: Sequence[int] | None, compiled: Sequence[int] | None
) -> str:
    own = own_of(bound)
    if given is not None and bound.route is not None:
        given = taken_by(bound.route, given[-1], given[:-1])
    said = own.said(given) if own is not None and given is not None else "a punctuation"
    name = bound.operator.function
    return (
        f"operator {bound.operator.name!r}: {name} gives {_shown(bound, plain)} in plain Python but "
        f"{_shown(bound, compiled)} compiled, at {said}; compiled integers have 64 bits (both are shown so)"
    )


def _shown(bound: BoundOperator, row: Sequence[int] | None) -> str:
    if row is None:
        return "nothing"
    own = inner_of(bound)
    named = zip(own.gives, row, _types(bound), strict=False)
    shown = (f"{name}={shown_value(own, name, kind, value_of(word, kind))!r}" for name, word, kind in named)
    return f"({', '.join(shown)})"


PARALLELISM = Column("parallelism", about="which workers enter which operator, and when")


def scheme_sentence(settings: RunSettings, outcomes: Sequence[WorkersOutcome]) -> str:
    """How the workers shared the operators; empty for dynamic scheduling."""
    most = max(outcomes, key=lambda one: one.workers)
    match settings.parallelism:
        case Parallelism.DYNAMIC:
            return ""
        case Parallelism.MICRO_BATCH:
            return f"Batches of at most {counted(settings.batch, 'row')} pass one operator at a time."
        case Parallelism.PIPELINE:
            said = "Each operator has one worker"
        case Parallelism.REPLICATED:
            said = "Tuples are split statically over the replicas of an operator, each with its own worker"
    if most.used < most.workers:
        said += f", so {most.used:,} of {counted(most.workers, 'worker')} are used"
    return f"{said}."


def served_table(chain: BoundChain, outcomes: Sequence[WorkersOutcome]) -> Table:
    """Tuples by worker and operator."""
    columns = (
        Column("workers", Kind.COUNT),
        Column("worker", Kind.COUNT, about="its number, from 1 on"),
        Column("operator"),
        Column("tuples", Kind.COUNT, about="tuples that it processed"),
        Column("share", Kind.SHARE, about="share of the operator's tuples"),
    )
    rows: list[list[Cell]] = []
    for one in outcomes:
        totals = one.run.served.sum(axis=0)
        for worker, number in zip(*(places.tolist() for places in one.run.served.nonzero()), strict=True):
            name, tuples = chain.operators[number].operator.name, int(one.run.served[worker, number])
            rows.append([one.workers, worker + 1, name, tuples, tuples / int(totals[number])])
    return Table.from_rows("Tuples by worker", columns, rows)
