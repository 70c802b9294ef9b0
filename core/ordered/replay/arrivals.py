"""Options of an ordered replay, and when its rows enter."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.columns import Words
from adapt.core.ordered.chain.names import Backend, Spacing
from adapt.core.ordered.engine.settings import Contention, RunSettings, assumed_contention

_LONGEST_S = 1e9

_AT_ONCE = 1 << 20
"""Rows whose arrival times are made at once."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How fast rows arrive, and how evenly.

    Exactly one of the first four is given.
    """

    rate: float | None = None  # rows per second, on average
    # that rate over the throughput of the same workers when all rows are there at the start
    offered: float | None = None
    sustained: float | None = None  # that rate over the highest one that these workers sustain
    speedup: float | None = None  # trace seconds per second; rows arrive at the times of the trace
    spacing: Spacing = Spacing.POISSON  # how rows are spaced at a rate

    def __post_init__(self) -> None:
        named = {"rate": self.rate, "offered": self.offered, "sustained": self.sustained, "speedup": self.speedup}
        given = {name: value for name, value in named.items() if value is not None}
        if len(given) != 1:
            told = f"arrivals take one of rate, offered, sustained and speedup (got {', '.join(given) or 'none'})"
            raise UsageError(told)
        for name, value in given.items():
            if not 0 < value < inf:
                raise UsageError(f"{name} must be above 0 (got {value:g})")

    @property
    def follows_trace(self) -> bool:
        """Whether arrivals follow the times of the trace."""
        return self.speedup is not None or self.spacing is Spacing.TRACE

    @property
    def needs_capacity(self) -> bool:
        """Whether the saturated throughput is measured first."""
        return self.offered is not None or self.sustained is not None

    def paced(
        self,
        chain: BoundChain,
        capacity: float | None,
        times_us: Words | None,
        seed: int,
        sustained: "Sustained | None" = None,
    ) -> "Paced":
        """The arrivals of a run.

        The draws depend on the seed only: at another rate, and with other workers, the same gaps are longer or shorter.

        Args:
            capacity: Rows per second if all are there at the start, if it was measured; needed with `offered`.
            times_us: Times of the rows in microseconds, ascending; needed if arrivals follow the trace.
            sustained: The sustainable rate; needed with `sustained`.
        """
        rate = self.rate if self.offered is None else self.offered * (capacity or 0.0)
        if self.sustained is not None and sustained is not None:
            rate = self.sustained * sustained.low

        def rows_ns() -> Iterator[Words]:
            return self._rows_ns(chain.rows, rate, times_us, seed)

        last_ns = 0
        for ns in rows_ns():
            if ns[0] < last_ns or (np.diff(ns) < 0).any():
                raise UsageError("times_us must be in ascending order; sort the rows by time")
            last_ns = int(ns[-1])
        if last_ns > _LONGEST_S * 1e9:
            raise UsageError(f"the last row would arrive after {last_ns / 1e9:.3g} s; use a higher rate or speed-up")

        def make() -> Words:
            return chain.store(_with_punctuations(rows_ns(), chain))

        return Paced(last_ns / 1e9, chain.rows, capacity, make, sustained)

    def _rows_ns(self, rows: int, rate: float | None, times_us: Words | None, seed: int) -> Iterator[Words]:
        """When each row arrives, some rows at a time."""
        last_us = 0
        if self.follows_trace:
            if times_us is None:
                raise UsageError("arrivals by the times of the trace need times_us")
            last_us = int(times_us[rows - 1] - times_us[0]) if rows else 0
            if rows and not last_us:
                raise UsageError(
                    f"all rows have the same time, so the trace has no rate; use a rate with spacing {Spacing.POISSON}"
                )
        if self.speedup is None and not rate:
            raise UsageError("a load needs a capacity above 0; give rate instead")
        random, clock = np.random.default_rng([seed, 1]), 0.0
        for first in range(0, rows, _AT_ONCE):
            end = min(first + _AT_ONCE, rows)
            if self.follows_trace and times_us is not None:
                steps = (times_us[first:end] - times_us[:1]).astype(np.float64)
            elif self.spacing is Spacing.EVEN:
                steps = np.arange(first, end, dtype=np.float64)
            else:
                steps = np.cumsum(np.append(clock, random.exponential(size=end - first)))[1:]
                clock = float(steps[-1])
            if self.speedup is not None:
                seconds = steps / 1e6 / self.speedup
            else:
                seconds = steps * ((rows - 1) / last_us if self.follows_trace else 1.0) / (rate or 1.0)
            yield np.rint(np.minimum(seconds, 9 * _LONGEST_S) * 1e9).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Sustained:
    """Interval of the sustainable rate, in rows per second."""

    low: float  # highest rate that workers sustained
    high: float  # lowest rate that they did not
    target_s: float  # highest 99th percentile from arrival to output at a sustained rate


@dataclass(frozen=True, slots=True, eq=False)
class Paced:
    """The arrivals of a run."""

    last_s: float  # when the last row arrives
    rows: int
    capacity: float | None  # rows per second if all are there at the start; None if it was not needed
    make: Callable[[], Words]  # makes the arrival times of all tuples, which are not kept
    sustained: Sustained | None = None  # the sustainable rate, if it was searched

    @property
    def arrivals_ns(self) -> Words:
        """When each tuple arrives; a punctuation arrives with its row."""
        return self.make()

    @property
    def rate(self) -> float | None:
        """Rows per second on average."""
        return self.rows / self.last_s if self.last_s else None


def _with_punctuations(blocks: Iterator[Words], chain: BoundChain) -> Iterator[Words]:
    """Arrival times of all tuples, from those of the rows.

    A punctuation arrives with the row before it.
    """
    after = chain.punctuations - np.arange(len(chain.punctuations))  # rows before each
    if not chain.rows:
        yield np.zeros(len(after), np.int64)
    first = 0
    for ns in blocks:
        end = first + len(ns)
        inside = after[(after > first) & (after <= end)] if first else after[after <= end]
        yield np.insert(ns, inside - first, ns[np.maximum(inside - first - 1, 0)])
        first = end


@dataclass(frozen=True, slots=True)
class LatencyTarget:
    """Highest 99th percentile from arrival to output at a sustainable rate."""

    seconds: float | None = None  # the latency; None for a multiple
    times: float = 10.0  # the latency over that at `LOW` of the capacity; not used with `seconds`

    def __post_init__(self) -> None:
        if self.seconds is not None and not 0 < self.seconds < inf:
            raise UsageError(f"the target latency must be above 0 s (got {self.seconds:g})")
        if not 1 < self.times < inf:
            raise UsageError(f"the target latency must be above 1 times that at low load (got {self.times:g})")


TIMED = 10_000
"""Default number of timed tuples in a run."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """Options of an ordered replay."""

    workers: tuple[int, ...]  # numbers of workers to run with
    backend: Backend = Backend.THREADS  # threads or the model
    # settings of every run, whose number of workers is ignored; without `mark_every`, about `TIMED` tuples are timed
    settings: RunSettings = field(default_factory=RunSettings)
    contention: Contention = field(default_factory=assumed_contention)  # contention between workers of the model
    seed: int = 0  # random seed of the model
    cores: int = 1  # cores of the machine
    # rows on which compiled functions are compared with plain Python, and 0 to compare nothing; None for all
    check: int | None = None
    repeats: int = 1  # runs of threads with each number of workers; the median is shown, with the spread
    # how fast rows arrive, by ascending rate; empty if all are there at the start, and workers take them as fast as
    # they can
    arrivals: tuple[Arrivals, ...] = ()
    # highest latency at a sustainable rate, if arrivals are a share of it
    target: LatencyTarget = field(default_factory=LatencyTarget)
    min_time_s: float = 0.1  # least CPU time of each run that measures the costs of operators
    # whether the model searches the number of workers beyond which more are not worth having; it then runs with all
    # numbers that the search tries, instead of `workers`
    finds_workers: bool = False

    def __post_init__(self) -> None:
        if not self.workers:
            raise UsageError("workers must name at least one number of workers, such as 1,2,4")
        if self.check is not None and self.check < 0:
            raise UsageError(f"check must be at least 0 rows (got {self.check})")
        if self.repeats < 1:
            raise UsageError(f"repeats must be at least 1 (got {self.repeats})")
        if self.finds_workers and self.backend is not Backend.SIM:
            raise UsageError(
                f"--workers auto is searched in the model; use --backend {Backend.SIM}, or list numbers such as 1,2,4"
            )
        if self.finds_workers and self.arrivals:
            raise UsageError("--workers auto is searched with all rows there at the start; omit the rate of arrivals")
        for workers in self.workers:
            replace(self.settings, workers=workers)

    def settings_of(self, workers: int, rows: int) -> RunSettings:
        """Settings of one run."""
        every = self.settings.mark_every or max(rows // TIMED, 1)
        return replace(self.settings, workers=workers, mark_every=every, adapts=bool(self.arrivals))
