"""Number of workers at run time, by an autoscaler."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain, Words
from adapt.core.ordered.engine.memory import Memory
from adapt.core.stage.control.workers import PartitionsSeen, Scaler, Seen, Waiting

PERIODS = 100
"""Periods until the last arrival, by default."""

PARTITIONS = 64
"""Partitions that policies see, for each worker of the pool."""

_SHORTEST_S = 1e-3


@dataclass(frozen=True, slots=True)
class Period:
    """What an autoscaler saw at the end of a control period.

    Attributes:
        end_s: Its end.
        workers: Active workers in it.
        rate: Rows per second that arrived.
        waiting: Rows and intermediate tuples not yet processed at its end.
        utilization: Share of the time of the active workers that they were busy.
    """

    end_s: float
    workers: int
    rate: float
    waiting: int
    utilization: float


@dataclass(slots=True)
class Scaled:
    """Workers of a run over time.

    Attributes:
        sizes: Times and numbers of active workers, the first at 0.
        periods: Observations of the autoscaler.
    """

    sizes: list[tuple[float, int]]
    periods: list[Period] = field(default_factory=list)

    @property
    def rescales(self) -> int:
        """Changes of the number of workers."""
        return len(self.sizes) - 1

    def worker_s(self, elapsed_s: float) -> float:
        """Worker seconds in a run of this length."""
        spans = pairwise([*self.sizes, (elapsed_s, 0)])
        return sum(max(min(end_s, elapsed_s) - start_s, 0.0) * workers for (start_s, workers), (end_s, _) in spans)


@dataclass(frozen=True, slots=True)
class AutoScaling:
    """How the number of workers is found at run time.

    Attributes:
        name: The policy.
        make: Makes an autoscaler for a control period in seconds; every run gets its own.
        period_s: Control period; None for a hundredth of the time until the last arrival.
        described: What it is made from, as JSON data.

    Raises:
        UsageError: the period is out of range.
    """

    name: str
    make: Callable[[float], Scaler]
    period_s: float | None = None
    described: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_period(self.period_s)

    def control(self, chain: BoundChain, arrivals_ns: Words) -> "WorkerControl":
        """The control of one run."""
        last_s = float(arrivals_ns[-1]) / 1e9 if len(arrivals_ns) else 0.0
        period_s = max(last_s / PERIODS, _SHORTEST_S) if self.period_s is None else self.period_s
        return WorkerControl(self.make(period_s), period_s, chain.punctuations, arrivals_ns)


def check_period(period_s: float | None) -> None:
    """Check a control period; None follows from the arrivals.

    Raises:
        UsageError: it is out of range.
    """
    if period_s is not None and not 0 < period_s < np.inf:
        raise UsageError(f"--period must be above 0 s (got {period_s:g} s)")


class WorkerControl:
    """Observes a run every period and decides on its workers.

    Any worker may run any operator and enter any partition. So policies see equal loads, and equal partitions, and rows
    are attributed to workers by the time that they were busy.

    Source: ordered streams has a fixed number of workers; the control loop is that of `adapt replay elastic`.
    """

    def __init__(self, scaler: Scaler, period_s: float, punctuations: Words, arrivals_ns: Words) -> None:
        """Begin with the fewest workers.

        Args:
            punctuations: Which of the arriving tuples are punctuations, ascending.
            arrivals_ns: When each tuple arrives, ascending.
        """
        self.period_s, self._scaler = period_s, scaler
        self._punctuations, self.arrivals_ns = punctuations, arrivals_ns
        self._waits, self._at_s, self._arrived = Waiting(), 0.0, 0
        self._busy_s: NDArray[np.float64] = np.zeros(scaler.pool)
        self._rows = 0
        self.scaled = Scaled([(0.0, scaler.least)])

    @property
    def workers(self) -> int:
        """Active workers."""
        return self.scaled.sizes[-1][1]

    def decide(self, memory: Memory, at_s: float) -> int:
        """The number of workers from now on."""
        seen = self._seen(memory, at_s)
        rate = seen.arrived / seen.collected_s
        share = float(seen.busy_s.sum()) / seen.collected_s / seen.workers
        self.scaled.periods.append(Period(at_s, seen.workers, rate, seen.waiting, share))
        decision, self._waits = self._scaler.decide(seen, self._waits)
        if decision.workers != self.workers:
            self.scaled.sizes.append((at_s, decision.workers))
            self._waits = Waiting(at_s)
        return self.workers

    def _seen(self, memory: Memory, at_s: float) -> Seen:
        m, took_s = self.workers, at_s - self._at_s
        progress = memory.progress()
        tuples = int(np.searchsorted(self.arrivals_ns, round(at_s * 1e9), "right"))
        arrived = tuples - int(np.searchsorted(self._punctuations, tuples))
        busy_s = progress.busy_ns / 1e9 - self._busy_s
        processed = progress.rows - self._rows
        shares = np.cumsum(busy_s) / busy_s.sum() if busy_s.any() else np.linspace(0, 1, len(busy_s))
        by_worker = np.diff(np.floor(shares * processed + 1e-9).astype(np.int64), prepend=0)
        by_worker[-1] += processed - int(by_worker.sum())
        waiting = max(arrived - progress.rows, 0) + progress.between
        row_s = float(busy_s.sum()) / processed if processed else 0.0
        seen = Seen(
            at_s=at_s,
            collected_s=took_s,
            workers=m,
            busy_s=np.minimum(busy_s, took_s)[:m],
            processed=by_worker[:m],
            loads=np.full(m, (arrived - self._arrived) * row_s / m),
            arrived=arrived - self._arrived,
            waiting=waiting,
            partitions=lambda: self._partitions(m, progress.rows, waiting),
        )
        self._at_s, self._arrived, self._rows, self._busy_s = at_s, arrived, progress.rows, progress.busy_ns / 1e9
        return seen

    def _partitions(self, workers: int, rows: int, waiting: int) -> PartitionsSeen:
        """Equal partitions, one worker after another: all work can be shared."""
        pool = len(self._busy_s)
        ends = np.arange(PARTITIONS * pool + 1)
        processed, queued = (np.diff(ends * each // ends[-1]) for each in (rows, waiting))
        owners = (ends[:-1] % workers).astype(np.int32)
        return PartitionsSeen(pool, owners, processed, queued, np.zeros_like(queued))
