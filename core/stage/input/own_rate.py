"""What a trace needs at its own rate, before any speed-up."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from adapt.core.phrases import counted, percent, rounded
from adapt.core.table import Cell, Column, Kind
from adapt.core.values import duration, number

SPANS = 8192
"""Most spans that a trace is cut into; it fills at least half of them."""

LATEST_NS = 2.0**62
"""Rows that arrive later, after 146 years, count as if they arrived then."""

LONGEST_S = 3600.0
"""Longest work of a row that is counted, so that sums fit."""

PEAK = 0.01
"""Share of a trace's length over which its peak is averaged."""

IDLE = 1e-4
"""A worker that is busy for a smaller share of the time is idle."""

OWN_COLUMNS = (
    Column("own_rate", Kind.NUMBER, "rows/s", "mean rate of the trace itself"),
    Column("own_work", Kind.NUMBER, "workers", "average number that the trace keeps busy at its own rate"),
    Column("own_peak", Kind.NUMBER, "workers", "the same in its busiest hundredth"),
    Column("peak_span", Kind.SECONDS, "s", "length of that, in trace time"),
)
"""Columns of the summary of a replay."""


class WorkOverTime:
    """Work that arrives in each span of a stream, in bounded memory.

    Spans double whenever the stream has outgrown them, so that the result depends on the rows alone: work is kept in
    whole nanoseconds.
    """

    def __init__(self) -> None:
        """Start with spans of a nanosecond."""
        self._span_ns, self._last_ns = 1, 0
        self._work_ns: NDArray[np.int64] = np.zeros(SPANS, np.int64)

    def add(self, due_s: NDArray[np.float64], work_s: NDArray[np.float64] | float) -> None:
        """Add rows.

        Args:
            due_s: When they arrive, ascending and at least 0, shape (rows,).
            work_s: CPU seconds of each, shape (rows,), or of all.
        """
        due_ns = np.asarray(np.minimum(due_s * 1e9, LATEST_NS), np.int64)
        self._last_ns = int(due_ns[-1])
        while self._last_ns // self._span_ns >= SPANS:
            self._work_ns = np.concatenate([self._work_ns.reshape(-1, 2).sum(axis=1), np.zeros(SPANS // 2, np.int64)])
            self._span_ns *= 2
        work_ns = np.rint(np.minimum(work_s, LONGEST_S) * 1e9).astype(np.int64)
        np.add.at(self._work_ns, due_ns // self._span_ns, np.broadcast_to(work_ns, due_ns.shape))

    def busiest(self) -> "BusiestSpan":
        """The hundredth of the stream with the most work."""
        used = int(self._last_ns // self._span_ns) + 1
        spans = max(1, round(PEAK * used))
        until = np.concatenate([[0], np.cumsum(self._work_ns[:used])])
        span_ns = spans * self._span_ns
        return BusiestSpan(span_ns / 1e9, int((until[spans:] - until[:-spans]).max()) / span_ns)


@dataclass(frozen=True, slots=True)
class BusiestSpan:
    """The hundredth of a stream with the most work."""

    span_s: float  # its length
    workers: float  # workers that its rows keep busy on average


@dataclass(frozen=True, slots=True)
class OwnRate:
    """What a trace needs at its own rate."""

    rate: float  # mean rate, in rows/s
    work: float  # workers that the rows keep busy on average
    peak: float  # workers that they keep busy in its busiest hundredth
    span_s: float  # length of that, in trace time

    @classmethod
    def at_speedup(
        cls, speedup: float | None, rows: int, last_s: float, row_s: float, busiest: BusiestSpan | None
    ) -> "OwnRate | None":
        """From a stream that is replayed at a speed-up.

        None if it has no rate of its own.

        Args:
            speedup: Trace seconds per simulated second; None, as fast as workers accept rows.
            rows: Rows of the stream.
            last_s: When the last arrives, in simulated time.
            row_s: Mean CPU seconds per row.
            busiest: Its busiest hundredth, in simulated time.
        """
        if speedup is None or busiest is None or last_s <= 0:
            return None
        seconds = last_s * speedup
        return cls(rows / seconds, rows * row_s / seconds, busiest.workers / speedup, busiest.span_s * speedup)

    def cells(self) -> tuple[Cell, ...]:
        """`OWN_COLUMNS`."""
        return self.rate, self.work, self.peak, self.span_s

    def sentence(self, workers: int, saturates: Mapping[str, float | None]) -> str:
        """What the trace needs, and when placements saturate.

        Args:
            workers: Workers that there are.
            saturates: Speed-up at which the busiest worker of each placement is fully utilized on average.
        """
        span, most = duration(self.span_s), max(1, ceil(self.peak))
        if most == 1:
            busy = f"{percent(self.work, 2)} of the time and {percent(self.peak, 2)} in its busiest {span}"
            idle = f"less than {percent(IDLE)} of the time, even in its busiest {span}"
            need = f"needs 1 worker, busy {idle if self.peak < IDLE else busy}"
        else:
            need = (
                f"needs {counted(max(1, ceil(self.work)), 'worker')} on average and {most:,} in its busiest {span}:"
                f" {counted(workers, 'worker')} would be {percent(self.work / workers, 2)} utilized on average and"
                f" {percent(self.peak / workers, 2)} then"
            )
        known = {name: each for name, each in saturates.items() if each is not None}
        limits = ", ".join(
            f"{name} saturates at {rounded(each)} times that rate" if at == 0 else f"{name} at {rounded(each)} times"
            for at, (name, each) in enumerate(known.items())
        )
        return f"At its own rate, {number(self.rate)} rows/s, the trace {need}{'; ' if limits else ''}{limits}."


def own_cells(own: OwnRate | None) -> tuple[Cell, ...]:
    """`OWN_COLUMNS`; missing where the stream has no rate of its own."""
    return (None,) * len(OWN_COLUMNS) if own is None else own.cells()


def stressed(speedup: float, last_s: float, load: float | None, whose: str) -> str:
    """How fast a trace is replayed.

    Args:
        last_s: When the last row arrives, in simulated time.
        load: Offered load at that speed-up over the capacity; None if all rows arrive at once.
        whose: Whose load it is, such as the busiest worker.
    """
    times = f"Replayed at {'' if speedup == 1 else f'{rounded(speedup)} times '}that rate, in {duration(last_s)}"
    return f"{times}." if load is None else f"{times}, {whose} is offered {load:.2f} times its capacity."
