"""Offered load of a trace, and performance bounds of a stage."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput
from adapt.core.stage.conditions.arrivals import Chunk
from adapt.core.stage.conditions.capacity import Capacity
from adapt.core.stage.conditions.faults import FaultSchedule
from adapt.core.stage.conditions.join import SerialJoin
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.own_rate import BusiestSpan, OwnRate, WorkOverTime


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


def _capacity(settings: StageSettings, faults: FaultSchedule | None) -> Capacity:
    return Capacity.from_disturbances(settings.workers, (*settings.disturbances, *(faults.faults if faults else ())))
