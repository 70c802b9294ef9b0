"""Offered load of a trace, and performance bounds of a stage."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput
from adapt.core.phrases import counted, percent, rounded
from adapt.core.stage.conditions.arrivals import Chunk
from adapt.core.stage.conditions.faults import Capacity, FaultSchedule
from adapt.core.stage.conditions.growth import SerialJoin
from adapt.core.stage.conditions.settings import StageSettings
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
        due_ns = np.asarray(np.minimum(due_s, LATEST_NS / 1e9) * 1e9, np.int64)
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

    def sentence(self, speedup: float, load: float | None, whose: str) -> str:
        """What the trace needs, and how much faster it is replayed.

        Args:
            load: Offered load at that speed-up over the capacity; None if unknown.
            whose: Whose load it is, such as the busiest worker.
        """
        span, most = duration(self.span_s), max(1, ceil(self.peak))
        if most > 1:
            need = f"{counted(max(1, ceil(self.work)), 'worker')} on average and {most:,} in its busiest {span}"
        elif self.peak < IDLE:
            need = f"1 worker, busy less than {percent(IDLE)} of the time"
        else:
            need = (
                f"1 worker, busy {percent(self.work, 2)} of the time and {percent(self.peak, 2)} in its busiest {span}"
            )
        times = "" if speedup == 1 else f"replayed {rounded(speedup)} times as fast, "
        is_small = load is not None and load < 0.01
        offered = (
            ""
            if load is None
            else f"{whose} is offered {rounded(load) if is_small else f'{load:.2f}'} times its capacity"
        )
        replayed = f"; {times}{offered}".rstrip(", ") if times or offered else ""
        return f"At its own rate, {number(self.rate)} rows/s, the trace needs {need}{replayed}."


def own_cells(own: OwnRate | None) -> tuple[Cell, ...]:
    """`OWN_COLUMNS`; missing where the stream has no rate of its own."""
    return (None,) * len(OWN_COLUMNS) if own is None else own.cells()


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """Offered load of a trace."""

    rows: NDArray[np.int64]  # rows of each partition, shape (partitions,)
    # CPU seconds of each partition, including matches of a join, shape (partitions,); None without costs and join
    cost_s: NDArray[np.float64] | None
    last_s: float  # arrival of the last row; 0 without arrival times
    unused_s: float  # CPU seconds that must stay idle because rows have not arrived yet
    answers: int | None = None  # matches of all rows in a serial run; None without a join
    busiest: BusiestSpan | None = None  # the busiest hundredth of the stream; None without arrival times

    @classmethod
    def from_chunks(
        cls, chunks: Iterable[Chunk], settings: StageSettings, faults: FaultSchedule | None = None
    ) -> "Demand":
        """Sum up a stream for a stage.

        Args:
            settings: The stage; its mean costs apply to rows without costs.
            faults: Faults of its workers.
        """
        partitions, capacity = settings.partitions, _capacity(settings, faults)
        rows: NDArray[np.int64] = np.zeros(partitions, np.int64)
        costs: NDArray[np.float64] = np.zeros(partitions)
        costed = False
        answers = None if settings.join is None else 0
        serial = None if settings.join is None else SerialJoin(settings.join, len(settings.partition_of))
        last_s = unused_s = asked_s = 0.0
        over_time = WorkOverTime()
        seen = 0
        for chunk in chunks:
            partition_of = settings.partition_of[chunk.groups]
            rows += np.bincount(partition_of, minlength=partitions)
            cost_s = chunk.cost_s
            if serial is not None and settings.join is not None and answers is not None:
                matches = serial.matches(chunk)
                answers += int(matches.sum())
                own_s = settings.costs.service_s if cost_s is None else cost_s
                cost_s = np.asarray(own_s + matches * settings.join.match_s, np.float64)
            due_s = chunk.due_s if chunk.due_s is not None and len(chunk.due_s) else None
            if due_s is not None:
                if not (np.diff(due_s, prepend=last_s) >= 0).all():
                    raise BadInput(f"after row {seen:,} a row is before its predecessor; sort the trace by 'ts'")
                last_s = float(due_s[-1])
            if cost_s is not None:
                costed = True
                if not (cost_s >= 0).all() or not np.isfinite(cost_s).all():
                    raise BadInput(f"after row {seen:,} a service time is negative or infinite; fix its column")
                np.add.at(costs, partition_of, cost_s)
            if due_s is not None:
                work_s = (settings.costs.service_s if cost_s is None else cost_s) + settings.costs.produce_s
                asked = np.full(len(due_s) + 1, asked_s)
                asked[1:] = work_s
                np.cumsum(asked, out=asked)  # row by row, so that the cuts of chunks do not matter
                unused_s = max(unused_s, float((capacity.by_each(due_s) - asked[:-1]).max()))
                asked_s = float(asked[-1])
                over_time.add(due_s, work_s)
            seen += len(chunk.groups)
        if seen == 0:
            raise BadInput("the trace has no rows to replay")
        return cls(
            rows, costs if costed else None, last_s, unused_s, answers, over_time.busiest() if last_s > 0 else None
        )

    @property
    def all_rows(self) -> int:
        """Number of rows of the trace."""
        return int(self.rows.sum())


@dataclass(frozen=True, slots=True)
class Bounds:
    """Performance bounds of a stage under an offered load."""

    rows: int  # rows of the trace
    busiest: BusiestSpan | None  # the busiest hundredth of the stream; None without arrival times
    last_s: float  # arrival of the last row
    row_s: float  # mean CPU seconds per row, including its production
    capacity: Capacity  # CPU of all workers
    even_s: float  # earliest end of any schedule: all workers share all work evenly
    least_s: float  # earliest end with whole partitions, each on one worker at a time
    static_s: float  # earliest end without moves
    heaviest_share: float  # share of all work in the hottest partition
    busiest_share: float  # share of all work on the initially busiest worker
    # CPU needed by the busiest worker until the last arrival, over what it has; None if all rows arrive at once
    static_load: float | None
    best_load: float | None  # the same for the best placement of whole partitions
    even_load: float | None  # the same if all workers share all work evenly

    def own_rate(self, speedup: float | None) -> OwnRate | None:
        """What the trace needs at its own rate; arguments as in `OwnRate.at_speedup`."""
        return OwnRate.at_speedup(speedup, self.rows, self.last_s, self.row_s, self.busiest)

    def full_at(self, speedup: float | None) -> tuple[float | None, float | None]:
        """Speed-ups at which the busiest worker is fully utilized on average.

        Returns:
            That of this placement, and that of the best placement of whole partitions.
        """
        loads = (self.static_load, self.best_load)
        static, best = (None if not load or speedup is None else speedup / load for load in loads)
        return static, best


SHORTEST_S = 1e-9
"""Rows that all arrive within a nanosecond have no rate."""


def bounds_of(demand: Demand, settings: StageSettings, faults: FaultSchedule | None = None) -> Bounds:
    """Bounds of a stage under an offered load.

    The work of a worker is that of its partitions plus an even share of producing rows. Crashes do not count in the
    bound without moves, since partitions of a dead worker continue elsewhere.
    """
    rows, workers = demand.all_rows, settings.workers
    work = demand.rows * settings.costs.service_s if demand.cost_s is None else demand.cost_s
    making_s = rows * settings.costs.produce_s
    total_s = float(work.sum()) + making_s
    by_worker = np.bincount(settings.owners, work, workers) + making_s / workers
    disturbances = (*settings.disturbances, *(faults.disturbances if faults else ()))
    each = [Capacity.of_worker(worker, disturbances) for worker in range(workers)]
    capacity = _capacity(settings, faults)
    static_s = max([demand.last_s, *(one.until(float(needed)) for one, needed in zip(each, by_worker, strict=True))])
    even_s = max(demand.last_s, capacity.until(total_s + demand.unused_s))
    has_s = np.array([one.by(demand.last_s) for one in each])
    timed = bool(has_s.min() > SHORTEST_S)
    return Bounds(
        rows=rows,
        busiest=demand.busiest,
        last_s=demand.last_s,
        row_s=total_s / rows,
        capacity=capacity,
        even_s=even_s,
        least_s=max(even_s, float(work.max())),
        static_s=static_s,
        heaviest_share=float(work.max()) / total_s if total_s > 0 else 0.0,
        busiest_share=float(by_worker.max()) / total_s if total_s > 0 else 0.0,
        static_load=float((by_worker / has_s).max()) if timed else None,
        best_load=max(total_s / float(has_s.sum()), float(work.max()) / demand.last_s) if timed else None,
        even_load=total_s / float(has_s.sum()) if timed else None,
    )


def network_s(settings: StageSettings, rows: int) -> float:
    """Time of the network that the bounds leave out.

    All rows over the slowest link, a row and its credit there and back, and one move of the largest partition.
    """
    network, bits = settings.network, 8.0 * settings.costs.tuple_bytes
    links = [each for each in np.atleast_1d(np.asarray(network.link_bits_per_s, object)) if each is not None]
    sent_s = rows / settings.workers * bits / min(links, default=np.inf)
    state_s = (
        float(np.max(settings.state_tuples))
        * bits
        / min(network.state_bits_per_s, *np.atleast_1d(network.flow_bits_per_s))
    )
    return float(sent_s + 4 * network.latency_s + state_s)


def _capacity(settings: StageSettings, faults: FaultSchedule | None) -> Capacity:
    return Capacity.from_disturbances(settings.workers, (*settings.disturbances, *(faults.faults if faults else ())))
