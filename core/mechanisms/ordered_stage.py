"""The ordered runtime as a scenario, by its model."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.ordered.chain.bound import BoundChain, BoundOperator, Words
from adapt.core.ordered.chain.chain import Operator
from adapt.core.ordered.chain.layouts import cost_field, key_field
from adapt.core.ordered.chain.names import OperatorKind, OrderedWorkQueue, WorkQueue
from adapt.core.ordered.engine.contention import Contention, assumed_contention
from adapt.core.ordered.engine.outcome import Marks
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.model.model import run_model
from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.engine.census import Census
from adapt.core.stage.engine.initial_arrays import service_times
from adapt.core.stage.engine.series import Interval, Latencies
from adapt.core.stage.records.tuples import ENTRY
from adapt.core.stage.simulate import Simulated

KEY, COST = "partition", "ns"
"""Columns of the rows in the ordered runtime."""

ORDERED = "ordered"
"""What stands for the queues of an engine, where workers share memory."""

ASSUMED = assumed_contention()
"""What workers cost each other, unless said otherwise: as in `adapt replay ordered`."""


def run_ordered(
    work_queue: OrderedWorkQueue,
    rows: Rows,
    settings: StageSettings,
    interval_s: float,
    duration_s: float | None,
) -> Simulated:
    """Run a stage in the model of the ordered runtime.

    All workers are on one machine, and share the rows of all partitions: any worker may process any partition, one
    worker at a time, so that no state moves, and nothing crosses a network. Outputs leave in the order of the rows. A
    row takes the CPU time of its processing and of its production; where the stage draws it, rows take the same draws
    one after another.

    Args:
        settings: The stage, whose owners of partitions are ignored.
        interval_s: Length of a measurement interval.
        duration_s: When to stop; None, when all rows are processed.

    Raises:
        UsageError: there are more workers than the model supports.

    Source: ordered streams, sections 3 to 5.
    """
    marks = ordered_marks(work_queue, rows, settings)
    end_s = marks.left[-1] / 1e9 if duration_s is None else min(duration_s, marks.left[-1] / 1e9)
    ends_s = np.append(np.arange(1, max(int(np.ceil(end_s / interval_s)), 1)) * interval_s, end_s)
    intervals = _intervals(marks, settings.workers, ends_s)
    entered, left = (int((times <= end_s * 1e9).sum()) for times in (marks.entered, marks.left))
    return Simulated(
        intervals=intervals,
        moves=[],
        rounds=[],
        census=Census(entered, left, entered - left, 0, 0, 0),
        finished_s=float(marks.left[left - 1]) / 1e9 if left else 0.0,
        journal=np.zeros(0, ENTRY),
        workers=[(0.0, settings.workers)],
    )


def ordered_marks(
    work_queue: OrderedWorkQueue, rows: Rows, settings: StageSettings, contention: Contention = ASSUMED
) -> Marks:
    """Times and worker of each row.

    Arguments as in `run_ordered`.
    """
    groups, due_ns, cost_ns = _columns(rows, settings)
    chain = _chain(groups, cost_ns, settings.partitions)
    run = RunSettings(settings.workers, work_queue=WorkQueue(work_queue.value), mark_every=1)
    return run_model(chain, run, contention, np.random.default_rng(settings.seed), arrivals_ns=due_ns).run.marks


def _columns(rows: Rows, settings: StageSettings) -> tuple[Words, Words, Words]:
    """Partition, arrival and CPU time of each row; times in nanoseconds."""
    drawn, parts, before = service_times(settings), list[tuple[Words, Words, Words]](), 0
    for chunk in rows.chunks():
        assert chunk.due_s is not None
        numbers = np.arange(before, before + len(chunk.groups)) if chunk.numbers is None else chunk.numbers
        cost_s = drawn[numbers % len(drawn)] if chunk.cost_s is None else chunk.cost_s
        partitions = settings.partition_of[chunk.groups].astype(np.int64)
        parts.append((partitions, _whole_ns(chunk.due_s), _whole_ns(cost_s + settings.costs.produce_s)))
        before += len(chunk.groups)
    groups, due_ns, cost_ns = (np.concatenate(each) for each in zip(*parts, strict=True))
    return groups, due_ns, cost_ns


def _whole_ns(seconds: NDArray[np.float64]) -> Words:
    return np.rint(seconds * 1e9).astype(np.int64)


def _chain(groups: Words, cost_ns: Words, partitions: int) -> BoundChain:
    """One partitioned operator, whose rows have their own costs."""
    operator = Operator("process", OperatorKind.PARTITIONED, key=KEY, partitions=partitions, cost=COST)
    fields = key_field(KEY), cost_field(COST)
    bound = BoundOperator(operator, 0, fields, fields, np.arange(partitions), partitions)
    return BoundChain((bound,), np.stack([groups, cost_ns], axis=1))


def _intervals(marks: Marks, workers: int, ends_s: NDArray[np.float64]) -> list[Interval]:
    """What happened until each end; rows count as processed when their output leaves."""
    starts_s = np.append(0.0, ends_s[:-1])
    edges_ns = np.append(0.0, ends_s * 1e9)
    lasted_ns = np.diff(edges_ns)
    taken = np.sort(marks.entered)  # busy partitions delay rows, so workers do not take them quite in order
    waits = marks.entered - marks.fed
    arrived, entered, left = (np.searchsorted(times, edges_ns, "right") for times in (marks.fed, taken, marks.left))
    lags = np.zeros(len(ends_s))
    at = np.searchsorted(edges_ns[1:], marks.entered, "left")
    within = at < len(ends_s)
    np.maximum.at(lags, at[within], waits[within] / 1e9)
    busy_ns = [_covered(edges_ns, *_work_of(marks, worker)) for worker in range(workers)]
    idle = 1 - np.diff(busy_ns, axis=1).T / lasted_ns[:, None]
    reached = np.maximum.accumulate(marks.entered)
    first = np.maximum(marks.fed, np.append(0, reached[:-1]))
    waited = first < marks.entered
    behind = np.diff(_covered(edges_ns, first[waited], marks.entered[waited])) / lasted_ns
    total_s, operator_s = (marks.left - marks.fed) / 1e9, (marks.left - marks.entered) / 1e9
    nothing = np.zeros(workers, np.int64)
    return [
        Interval(
            start_s=float(starts_s[number]),
            end_s=float(ends_s[number]),
            generated=int(entered[number + 1] - entered[number]),
            processed=int(left[number + 1] - left[number]),
            operator=Latencies.from_seconds(operator_s[left[number] : left[number + 1]]),
            total=Latencies.from_seconds(total_s[left[number] : left[number + 1]]),
            by_worker=np.bincount(marks.worker[left[number] : left[number + 1]], minlength=workers),
            idle=np.clip(idle[number], 0.0, 1.0),
            pools=nothing.astype(np.int32),
            connections=nothing,
            partitions=nothing,
            on_disk=0,
            spilled=0,
            lost=0,
            shed=0,
            living=workers,
            source_queue=int(arrived[number + 1] - entered[number + 1]),
            lag_s=float(lags[number]),
            behind=float(behind[number]),
            state_in_memory=nothing,
            state_on_disk=nothing,
        )
        for number in range(len(ends_s))
    ]


def _work_of(marks: Marks, worker: int) -> tuple[Words, Words]:
    """Start and end of each row that a worker processes, in its order."""
    mine = np.flatnonzero(marks.worker == worker)
    mine = mine[np.argsort(marks.entered[mine], kind="stable")]
    return marks.entered[mine], marks.served[mine]


def _covered(edges: NDArray[np.float64], starts: Words, ends: Words) -> NDArray[np.float64]:
    """Time up to each edge that spans cover, which are ascending and do not overlap."""
    sums = np.append(0, np.cumsum(ends - starts))
    before = np.searchsorted(starts, edges, "left")
    beyond = np.append(ends, 0)[before - 1] - edges  # of the last span before it; without one, 0 - edge
    return np.asarray(sums[before] - np.maximum(beyond, 0.0))
