"""Arrivals: when the rows of an ordered replay enter."""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain, Words
from adapt.core.ordered.chain.names import Spacing

_LONGEST_S = 1e9


@dataclass(frozen=True, slots=True)
class Arrivals:
    """How fast rows arrive, and how evenly.

    Exactly one of the first four is given.

    Attributes:
        rate: Rows per second, on average.
        offered: That rate over the throughput of the same workers when all rows are there at the start.
        sustained: That rate over the highest one that these workers sustain.
        speedup: Trace seconds per second; rows arrive at the times of the trace.
        spacing: How rows are spaced at a rate.

    Raises:
        UsageError: a value is out of range, or not exactly one is given.
    """

    rate: float | None = None
    offered: float | None = None
    sustained: float | None = None
    speedup: float | None = None
    spacing: Spacing = Spacing.POISSON

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

        Raises:
            UsageError: times are missing, all rows have the same time, or the last row arrives too late.
        """
        rate = self.rate if self.offered is None else self.offered * (capacity or 0.0)
        if self.sustained is not None and sustained is not None:
            rate = self.sustained * sustained.low

        def rows_ns() -> Words:
            return self._rows_ns(chain.rows, rate, times_us, seed)

        last_s = float(rows_ns()[-1]) / 1e9 if chain.rows else 0.0
        return Paced(last_s, chain.rows, capacity, lambda: _with_punctuations(rows_ns(), chain), sustained)

    def _rows_ns(self, rows: int, rate: float | None, times_us: Words | None, seed: int) -> Words:
        """When each row arrives."""
        if self.follows_trace:
            if times_us is None:
                raise UsageError("arrivals by the times of the trace need times_us")
            steps = (times_us[:rows] - times_us[:1]).astype(np.float64)
            if rows and not steps[-1]:
                raise UsageError(
                    f"all rows have the same time, so the trace has no rate; use a rate with spacing {Spacing.POISSON}"
                )
        elif self.spacing is Spacing.EVEN:
            steps = np.arange(rows, dtype=np.float64)
        else:
            steps = np.cumsum(np.random.default_rng([seed, 1]).exponential(size=rows))
        if self.speedup is not None:
            seconds = steps / 1e6 / self.speedup
        elif not rate:
            raise UsageError("a load needs a capacity above 0; give rate instead")
        else:
            unit = (rows - 1) / float(steps[-1]) if self.follows_trace and rows else 1.0
            seconds = steps * unit / rate
        if rows and seconds[-1] > _LONGEST_S:
            raise UsageError(f"the last row would arrive after {seconds[-1]:.3g} s; use a higher rate or speed-up")
        return np.rint(seconds * 1e9).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Sustained:
    """Interval of the sustainable rate, in rows per second.

    Attributes:
        low: Highest rate that workers sustained.
        high: Lowest rate that they did not.
        target_s: Highest 99th percentile from arrival to output at a sustained rate.
    """

    low: float
    high: float
    target_s: float


@dataclass(frozen=True, slots=True, eq=False)
class Paced:
    """The arrivals of a run.

    Attributes:
        last_s: When the last row arrives.
        rows: Number of rows.
        capacity: Rows per second if all are there at the start; None if it was not needed.
        make: Makes the arrival times of all tuples, which are not kept.
        sustained: The sustainable rate, if it was searched.
    """

    last_s: float
    rows: int
    capacity: float | None
    make: Callable[[], Words]
    sustained: Sustained | None = None

    @property
    def arrivals_ns(self) -> Words:
        """When each tuple arrives; a punctuation arrives with its row."""
        return self.make()

    @property
    def rate(self) -> float | None:
        """Rows per second on average."""
        return self.rows / self.last_s if self.last_s else None


def _with_punctuations(ns: Words, chain: BoundChain) -> Words:
    """Arrival times of all tuples, from those of the rows."""
    is_row = np.ones(len(chain.tuples), bool)
    is_row[chain.punctuations] = False
    before = np.cumsum(is_row) - 1
    return ns[np.maximum(before, 0)] if len(ns) else np.zeros(len(is_row), np.int64)
