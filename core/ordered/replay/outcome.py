"""What a run of a chain by so many workers came to."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.ordered.chain.bound import BoundOperator
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.engine.outcome import OperatorTally, WorkersRun


@dataclass(frozen=True, slots=True)
class Latency:
    """Of the timed tuples between the 20th and the 80th hundredth of a run, in seconds.

    Attributes:
        mean: Of all of them.
        p50, p95, p99: What that share of them, in hundredths, does not exceed.
    """

    mean: float
    p50: float
    p95: float
    p99: float

    @classmethod
    def from_seconds(cls, seconds: NDArray[np.float64]) -> "Latency | None":
        """None where none was timed."""
        if not len(seconds):
            return None
        p50, p95, p99 = np.percentile(seconds, (50, 95, 99), method="inverted_cdf").tolist()
        return cls(float(seconds.mean()), p50, p95, p99)


@dataclass(frozen=True, slots=True, eq=False)
class WorkersOutcome:
    """One run.

    Attributes:
        rows: That entered the chain.
        run: What was measured.
        is_ordered: Whether the egress is that of the serial run; None, there was none.
        cpu_s: CPU time of the process meanwhile; None in a model.
    """

    workers: int
    rows: int
    run: WorkersRun
    is_ordered: bool | None
    cpu_s: float | None

    @property
    def throughput(self) -> float | None:
        """Rows a second."""
        return self.rows / self.run.elapsed_s if self.run.elapsed_s > 0 else None

    @property
    def cores(self) -> float | None:
        """CPU seconds a second."""
        return None if self.cpu_s is None or self.run.elapsed_s <= 0 else self.cpu_s / self.run.elapsed_s

    @property
    def processing(self) -> Latency | None:
        """From when the first operator begins with a tuple until the last of its outputs has left."""
        return Latency.from_seconds(self.run.marks.processing_s())

    @property
    def end_to_end(self) -> Latency | None:
        """The same from when it came into the first worklist."""
        return Latency.from_seconds(self.run.marks.end_to_end_s())

    @property
    def imbalance(self) -> float | None:
        """Of the partitions of the operator where it is worst; None without partitioned operators."""
        known = [imbalance_of(tally) for tally in self.run.operators if len(tally.partition_loads) > 1]
        return max((one for one in known if one is not None), default=None)

    def share_of_time(self, tally: OperatorTally) -> float | None:
        """Of the time of all workers, what they spent on an operator."""
        all_s = self.workers * self.run.elapsed_s
        return tally.busy_ns / 1e9 / all_s if all_s > 0 else None


def imbalance_of(tally: OperatorTally) -> float | None:
    """Tuples of the fullest partition over the mean; None without tuples."""
    loads = tally.partition_loads
    return float(loads.max() / loads.mean()) if loads.any() else None


def fullest_share(tally: OperatorTally) -> float | None:
    """What the fullest partition has of the tuples."""
    loads = tally.partition_loads
    return float(loads.max() / loads.sum()) if loads.any() else None


@dataclass(frozen=True, slots=True)
class Bound:
    """Why no number of workers does more than so many times one.

    Attributes:
        speed_up: So many times.
        operator: The name of the operator that is the reason.
        kind: Its kind: one state, or one partition that is fullest.
        share: Of all work, what one worker at a time has to do there.
    """

    speed_up: float
    operator: str
    kind: OperatorKind
    share: float


def bound_of(operators: Sequence[BoundOperator], outcome: WorkersOutcome) -> Bound | None:
    """The bound by work that only one worker at a time can do; None where there is none.

    Work is the time that workers spent on an operator; in partitions it goes by their tuples.
    """
    work_ns = sum(tally.busy_ns for tally in outcome.run.operators)
    bounds = []
    for bound, tally in zip(operators, outcome.run.operators, strict=True):
        kind = bound.operator.kind
        alone = 1.0 if kind is OperatorKind.STATEFUL else fullest_share(tally)
        if kind is not OperatorKind.STATELESS and alone and tally.busy_ns:
            share = alone * tally.busy_ns / work_ns
            bounds.append(Bound(1 / share, tally.name, kind, share))
    return min(bounds, key=lambda one: one.speed_up, default=None)
