"""The ordered runtime as a scenario, by its model."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.mechanisms.ordered.intervals import intervals_of
from adapt.core.ordered.chain.bound import BoundChain, BoundOperator, Words
from adapt.core.ordered.chain.chain import Operator
from adapt.core.ordered.chain.layouts import cost_field, key_field
from adapt.core.ordered.chain.names import OperatorKind, OrderedWorkQueue, WorkQueue
from adapt.core.ordered.engine.outcome import Marks
from adapt.core.ordered.engine.settings import Contention, RunSettings, assumed_contention
from adapt.core.ordered.model.model import run_model
from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.engine.initial_arrays import service_times
from adapt.core.stage.engine.queues import Census
from adapt.core.stage.records.tuples import ENTRY
from adapt.core.stage.simulate import Simulated

KEY, COST = "partition", "ns"
"""Columns of the rows in the ordered runtime."""

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

    Source: ordered streams, sections 3 to 5.
    """
    chain, due_ns = chain_of(rows, settings)
    marks = ordered_marks(work_queue, chain, settings, due_ns)
    end_s = marks.left[-1] / 1e9 if duration_s is None else min(duration_s, marks.left[-1] / 1e9)
    ends_s = np.append(np.arange(1, max(int(np.ceil(end_s / interval_s)), 1)) * interval_s, end_s)
    intervals = intervals_of(marks, settings.workers, ends_s)
    entered, left = (int((times <= end_s * 1e9).sum()) for times in (marks.entered, marks.left))
    return Simulated(
        intervals=intervals,
        moves=[],
        rounds=[],
        census=Census(entered, left, entered - left, 0, 0, 0),
        finished_s=float(marks.left[left - 1]) / 1e9 if left else 0.0,
        journal=np.zeros(0, ENTRY),
        steps=[],
        workers=[(0.0, settings.workers)],
    )


def ordered_marks(
    work_queue: OrderedWorkQueue,
    chain: BoundChain,
    settings: StageSettings,
    arrivals: Words,
    contention: Contention = ASSUMED,
) -> Marks:
    """Times and worker of each row.

    Args:
        chain: The stage as `chain_of` gives it.
        arrivals: When rows arrive, in nanoseconds.
    """
    run = RunSettings(settings.workers, work_queue=WorkQueue(work_queue.value), mark_every=1)
    return run_model(chain, run, contention, np.random.default_rng(settings.seed), arrivals_ns=arrivals).run.marks


def chain_of(rows: Rows, settings: StageSettings) -> tuple[BoundChain, Words]:
    """The stage as a chain, and when its rows arrive.

    Its one operator gets the partition and the CPU time of each row. All times are in nanoseconds.
    """
    groups, due_ns, cost_ns = _columns(rows, settings)
    return _chain(groups, cost_ns, settings.partitions), due_ns


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
