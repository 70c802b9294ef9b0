"""What a trace asks of a stage before anything is simulated: rows and work by partition, and what placement can do."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """The sums of a trace.

    Attributes:
        rows: Of each partition, shape (partitions,).
        cost_s: CPU that rows of each partition say they cost, or with their matches, shape (partitions,); None if they
            say nothing and match nothing.
        last_s: When the last row is due; 0 where rows are taken as fast as they can be.
        unused_s: CPU of all workers that must go unused, as the rows that could use it are not due yet.
        answers: Matches of all rows in a serial run; None where nothing is joined.
    """

    rows: NDArray[np.int64]
    cost_s: NDArray[np.float64] | None
    last_s: float
    unused_s: float
    answers: int | None = None

    @classmethod
    def from_chunks(
        cls, chunks: Iterable[Chunk], settings: StageSettings, faults: FaultSchedule | None = None
    ) -> "Demand":
        """Add up a stream for a stage.

        Args:
            settings: The stage, whose mean costs count where rows have none.
            faults: What else takes CPU from its workers.

        Raises:
            BadInput: rows are not in the order of time, a row costs less than nothing, or there is no row.
        """
        partitions, capacity = settings.partitions, _capacity(settings, faults)
        rows: NDArray[np.int64] = np.zeros(partitions, np.int64)
        costs: NDArray[np.float64] = np.zeros(partitions)
        costed = False
        answers = None if settings.join is None else 0
        serial = None if settings.join is None else SerialJoin(settings.join, len(settings.partition_of))
        last_s = unused_s = asked_s = 0.0
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
            if chunk.due_s is not None and len(chunk.due_s):
                if not (np.diff(chunk.due_s, prepend=last_s) >= 0).all():
                    raise BadInput(f"after row {seen:,} a row is before the one above it; sort the trace by 'ts'")
                last_s = float(chunk.due_s[-1])
                each_s = settings.costs.service_s if cost_s is None else cost_s
                asked = np.full(len(chunk.due_s) + 1, asked_s)
                asked[1:] = each_s + settings.costs.produce_s
                np.cumsum(asked, out=asked)  # one row after the other, so that cuts do not matter
                unused_s = max(unused_s, float((capacity.by_each(chunk.due_s) - asked[:-1]).max()))
                asked_s = float(asked[-1])
            if cost_s is not None:
                costed = True
                if not (cost_s >= 0).all() or not np.isfinite(cost_s).all():
                    raise BadInput(f"after row {seen:,} a row costs less than 0 s or without end; mend 'cost_us'")
                np.add.at(costs, partition_of, cost_s)
            seen += len(chunk.groups)
        if seen == 0:
            raise BadInput("the trace has no rows to replay")
        return cls(rows, costs if costed else None, last_s, unused_s, answers)

    @property
    def all_rows(self) -> int:
        """Of the trace."""
        return int(self.rows.sum())


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a stage can do at best with a demand.

    Attributes:
        rows: Of the trace.
        last_s: When the last row is due.
        row_s: CPU for a row on average, making it included.
        capacity: CPU of all workers.
        even_s: Nothing is done sooner: all workers have worked on all rows as soon as these were due.
        least_s: No placement of whole partitions is done sooner, as each is at one worker at a time.
        static_s: Without moves it is not done sooner.
        heaviest_share: Of all work, what the heaviest partition makes.
        busiest_share: Of all work, what the partitions of the busiest worker make at the start.
        static_load: CPU that the busiest worker needs until the last row is due, over what it has; None where all are
            due at once.
        best_load: The same where work is spread over all workers as evenly as the heaviest partition lets it.
    """

    rows: int
    last_s: float
    row_s: float
    capacity: Capacity
    even_s: float
    least_s: float
    static_s: float
    heaviest_share: float
    busiest_share: float
    static_load: float | None
    best_load: float | None


SHORTEST_S = 1e-9
"""Rows that are all due within a nanosecond have no rate."""


def bounds_of(demand: Demand, settings: StageSettings, faults: FaultSchedule | None = None) -> Bounds:
    """The bounds of a stage; work at a worker is what its partitions cost, and an even share of making the rows.

    Partitions of a worker that dies go on elsewhere, so that without moves it is as if it lived.
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
    )


def _capacity(settings: StageSettings, faults: FaultSchedule | None) -> Capacity:
    return Capacity.from_disturbances(settings.workers, (*settings.disturbances, *(faults.faults if faults else ())))
