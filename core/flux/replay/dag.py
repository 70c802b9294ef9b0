"""Flux replay of a DAG of stages, and its tables."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from adapt.core.flux.replay.replay import Flux, FluxRun
from adapt.core.flux.replay.tables import BRIEF, Compared, action, best_of
from adapt.core.metrics import column_named, columns_named
from adapt.core.run import Run
from adapt.core.stage.charts import CASE
from adapt.core.stage.conditions.arrivals import Made, Source
from adapt.core.stage.conditions.faults import FaultSchedule
from adapt.core.stage.dag.settings import DagSettings, StagesFile
from adapt.core.stage.dag.simulation import DagControl, SimulatedDag, simulate_dag
from adapt.core.stage.engine.series import Interval, Latencies, together
from adapt.core.stage.movement.controller import STEPS
from adapt.core.stage.outcome import Pace, Told, round_interval_s
from adapt.core.stage.simulate import Simulated
from adapt.core.table import Cell, Column, Kind, Table

_MOVED = columns_named("moves state_moved_bytes")
_HELD = (*columns_named("on_disk_max spilled_max"),)
_STAGE = Column("stage")


@dataclass(frozen=True, slots=True, eq=False)
class DagInput:
    """A DAG of stages with its input."""

    file: StagesFile  # stages and queries
    settings: DagSettings  # the stages, in the order of the file's
    # source of each stage that reads the trace; of every other, how its tuples are keyed
    inputs: tuple[Source | Made, ...]
    rows: int  # rows of the trace
    last_s: float  # arrival of the last row; 0 without arrival times
    service_s: tuple[float, ...]  # mean CPU time of a tuple of each stage

    def work_s(self, tuples: Iterable[float]) -> float:
        """CPU seconds to produce and process tuples, given their number per stage."""
        of = zip(tuples, self.service_s, self.settings.stages, strict=True)
        return sum(count * (service_s + stage.costs.produce_s) for count, service_s, stage in of)

    def least_s(self, faults: FaultSchedule) -> float:
        """Earliest end of any schedule, by mean costs and selectivities."""
        work_s = self.work_s(self.rows * visits for visits in self.settings.visits())
        arrived_s = max(life.from_s for life in self.settings.lives)
        return max(self.last_s, arrived_s, self.settings.capacity(faults.faults).until(work_s))


@dataclass(frozen=True, slots=True, eq=False)
class DagOutcome:
    """Outcome of one case."""

    case: str  # name of the case
    run: SimulatedDag  # result of the simulation
    of: DagInput  # the stages and their input

    @property
    def processed(self) -> int:
        """Processed tuples of all stages."""
        return sum(one.census.processed for one in self.run.stages)

    @property
    def left(self) -> int:
        """Tuples and arrived rows, neither processed nor lost at the end."""
        waiting = (one.intervals[-1].source_queue or 0 for one in self.run.stages)
        return self.run.in_between + sum(_left(one) for one in self.run.stages) + sum(waiting)

    @property
    def finished_s(self) -> float:
        """Time of the last processed tuple, or of the cut-off."""
        return self.run.stages[0].intervals[-1].end_s if self.left else max(one.finished_s for one in self.run.stages)

    @property
    def of_capacity(self) -> float:
        """CPU seconds of processed tuples over those of all workers."""
        work_s = self.of.work_s(one.census.processed for one in self.run.stages)
        capacity, end_s = self.run.settings.capacity(self.run.faults.crashes), self.finished_s
        if not self.left:
            return min(1.0, max(self.of.last_s, capacity.until(work_s)) / end_s) if end_s else 1.0
        return min(1.0, work_s / capacity.by(end_s))

    @property
    def compared(self) -> Compared:
        """The case as the conclusion compares it."""
        moves, moved = _moved(self.run.stages)
        return Compared(self.case, self.of_capacity, self.left, _p99(self) or 0.0, moves, moved)

    def latency(self, stages: Iterable[int]) -> Latencies:
        """Latency from the arrival of a row, at these stages."""
        return together([one.total for stage in stages for one in self.run.stages[stage].intervals])


def cases_table(outcomes: Sequence[DagOutcome]) -> Table:
    """One row per case."""
    columns = [
        CASE,
        *columns_named("throughput capacity_share finished latency_mean latency_p50 latency_p99"),
        *_MOVED,
        Column("moves_a_minute", Kind.NUMBER, about="of simulated time"),
        *columns_named("processed unprocessed lost"),
        *_HELD,
        column_named("state_max"),
    ]
    return Table.from_rows("Cases", columns, [_case(one) for one in outcomes])


def _case(one: DagOutcome) -> list[Cell]:
    run, file, stages = one.run, one.of.file, one.run.stages
    last = [number for query in file.queries for number in file.last(query)]
    end_s = one.finished_s
    return [
        one.case,
        one.processed / end_s if end_s else 0.0,
        one.of_capacity,
        end_s,
        *_latencies(one.latency(last)),
        *_moved(stages),
        run.moves_a_minute(),
        one.processed,
        one.left,
        run.unsent + sum(each.census.lost for each in stages),
        *_held(_by_interval(stages)),
        max(int(np.sum([each.state_in_memory for each in at], axis=0).max()) for at in _by_interval(stages)),
    ]


def stages_table(outcomes: Sequence[DagOutcome]) -> Table:
    """One row per case and stage."""
    columns = [
        CASE,
        _STAGE,
        Column("query"),
        Column("received", Kind.COUNT, "tuples", "rows of the trace, or tuples of other stages"),
        column_named("processed"),
        Column("cpu_share", Kind.SHARE, about="of the CPU time for tuples of all stages"),
        *columns_named("latency_mean latency_p50 latency_p99"),
        *_MOVED,
        column_named("lost"),
        *_HELD,
        column_named("state_max"),
    ]
    rows = []
    for one in outcomes:
        counts = [each.census.processed for each in one.run.stages]
        all_s = one.of.work_s(counts)
        for number, (entry, run) in enumerate(zip(one.of.file.stages, one.run.stages, strict=True)):
            own_s = one.of.work_s(count if at == number else 0 for at, count in enumerate(counts))
            most = max(int((each.state_in_memory + each.state_on_disk).sum()) for each in run.intervals)
            work = run.census.generated, run.census.processed, own_s / all_s if all_s else 0.0
            held = _held([(each,) for each in run.intervals])
            said = *_latencies(one.latency([number])), *_moved([run]), run.census.lost, *held, most
            rows.append([one.case, entry.name, entry.query, *work, *said])
    return Table.from_rows("Stages", columns, rows)


def queries_table(outcomes: Sequence[DagOutcome]) -> Table:
    """One row per case and query with stages."""
    columns = [
        CASE,
        Column("query"),
        Column("arrives", Kind.SECONDS, "s"),
        Column("leaves", Kind.SECONDS, "s", "missing if it stays"),
        Column("stages", Kind.COUNT),
        Column("results", Kind.COUNT, "tuples", "processed by its last stages"),
        *columns_named("finished latency_mean latency_p50 latency_p99"),
        *_MOVED,
        column_named("lost"),
    ]
    rows: list[list[Cell]] = []
    for one in outcomes:
        file = one.of.file
        for query, life in file.queries.items():
            own = [run for entry, run in zip(file.stages, one.run.stages, strict=True) if entry.query == query]
            if not own:
                continue
            last = file.last(query)
            results = sum(one.run.stages[stage].census.processed for stage in last)
            there = life.from_s, life.until_s if np.isfinite(life.until_s) else None
            done = len(own), results, max(run.finished_s for run in own)
            lost = sum(run.census.lost for run in own)
            rows.append([one.case, query, *there, *done, *_latencies(one.latency(last)), *_moved(own), lost])
    return Table.from_rows("Queries", columns, rows)


def dag_series(outcomes: Sequence[DagOutcome]) -> dict[str, Table]:
    """Time series by case and stage; those of workers by case."""
    names = ("intervals", "moves", "crashes")
    tables: dict[str, Table] = {}
    for name in names:
        parts = [
            (one.case, entry.name, run.tables()[name])
            for one in outcomes
            for entry, run in zip(one.of.file.stages, one.run.stages, strict=True)
        ]
        rows = tuple((case, stage, *row) for case, stage, table in parts for row in table.rows)
        tables[name] = replace(parts[0][2], columns=(CASE, _STAGE, *parts[0][2].columns), rows=rows)
    return {"intervals": tables["intervals"], "workers": _workers(outcomes), **tables}


def _workers(outcomes: Sequence[DagOutcome]) -> Table:
    columns = [
        CASE,
        Column("end", Kind.SECONDS, "s", "end of the interval"),
        Column("worker", Kind.COUNT),
        Column("utilization", Kind.SHARE, "", "share of time in which its CPU was not idle"),
        column_named("partitions"),
        Column("state", Kind.BYTES, "bytes", "of its partitions in memory, at the end of the interval"),
        Column("state_on_disk", Kind.BYTES, "bytes", "of those on its disk, at the end of the interval"),
    ]
    rows = []
    for one in outcomes:
        for at, utilization in zip(_by_interval(one.run.stages), one.run.utilization, strict=True):
            names = ("partitions", "state_in_memory", "state_on_disk")
            held = (np.sum([getattr(each, name) for each in at], axis=0) for name in names)
            for worker, cells in enumerate(zip(utilization, *held, strict=True)):
                rows.append((one.case, at[0].end_s, worker, float(cells[0]), *map(int, cells[1:])))
    return Table.from_rows("Workers", columns, rows)


def facts(outcomes: Sequence[DagOutcome]) -> Table:
    """All cases in one row."""
    columns = [
        Column("best", about="the case closest to capacity"),
        column_named("rows"),
        Column("stages", Kind.COUNT),
        Column("queries", Kind.COUNT),
        *columns_named("workers partitions"),
    ]
    static, *moving = outcomes
    of = static.of
    best = best_of(static.compared, [one.compared for one in moving])
    queries = len({entry.query for entry in of.file.stages})
    partitions = sum(stage.partitions for stage in of.settings.stages)
    row = (best and best.case, of.rows, len(of.settings.stages), queries, of.settings.workers, partitions)
    return Table.from_rows("The run", columns, [row])


def _p99(one: DagOutcome) -> float | None:
    file = one.of.file
    return one.latency(at for query in file.queries for at in file.last(query)).share_below_s(0.99)


def _left(run: Simulated) -> int:
    census = run.census
    return census.generated - census.processed - census.lost


def _moved(runs: Iterable[Simulated]) -> tuple[int, int]:
    """Number of moves, and bytes of those that were completed."""
    moves = [one for run in runs for one in run.moves]
    return len(moves), sum(one.state_bytes for one in moves if STEPS[-1] in one.times_s)


def _latencies(found: Latencies) -> tuple[float | None, ...]:
    return found.mean_s, found.share_below_s(0.5), found.share_below_s(0.99)


def _held(intervals: Sequence[Sequence[Interval]]) -> tuple[int, int]:
    """Largest numbers of partitions and tuples on disk at once, over intervals of stages."""
    found = ((sum(one.on_disk for one in at), sum(one.spilled for one in at)) for at in intervals)
    on_disk, spilled = zip(*found, strict=True)
    return max(on_disk), max(spilled)


def _by_interval(stages: Sequence[Simulated]) -> list[tuple[Interval, ...]]:
    """The intervals of all stages at each time."""
    return list(zip(*(one.intervals for one in stages), strict=True))


@dataclass(frozen=True, slots=True, repr=False)
class DagRun(Run):
    """Result of a Flux replay of a DAG of stages."""

    mechanism: ClassVar[str] = "flux-dag"
    brief: ClassVar[str] = BRIEF

    outcomes: tuple[DagOutcome, ...]  # outcome of each case, static first
    parameters: Mapping[str, Any]  # all parameters of the replay, as JSON data

    @property
    def is_timed(self) -> bool:
        """Whether rows arrive by their times."""
        return self.parameters.get("arrivals") == "trace"

    def conclusion(self) -> str:
        """Whether to rebalance."""
        static, *moving = (one.compared for one in self.outcomes)
        return action(static, best_of(static, moving))

    def facts(self) -> Table:
        """The run as one row."""
        return facts(self.outcomes)

    def tables(self) -> dict[str, Table]:
        """Tables by case, stage, query, interval, worker, move and crash."""
        return {
            "cases": cases_table(self.outcomes),
            "stages": stages_table(self.outcomes),
            "queries": queries_table(self.outcomes),
            **dag_series(self.outcomes),
        }

    def shown(self) -> tuple[Table, ...]:
        """The cases, the stages and the queries."""
        tables, rare = self.tables(), ("lost", *(column.name for column in _HELD))
        return *(tables[name].without_zeros(rare) for name in ("cases", "stages", "queries")), self.facts()


AnyFluxRun: TypeAlias = FluxRun | DagRun
"""A run of one stage, or of several."""


def replay_dag(
    of: DagInput,
    flux: Flux,
    pace: Pace | None = None,
    *,
    parameters: Mapping[str, Any] | None = None,
    told: Told | None = None,
) -> DagRun:
    """Replay a stream through a DAG, static and with each policy.

    Args:
        parameters: Parameters to record with the run.
    """
    pace, faults, settings = pace or Pace(), flux.faults or FaultSchedule(), of.settings
    every_s = pace.interval_s or round_interval_s(pace.duration_s or of.least_s(faults))
    outcomes = []
    for case, controller in flux.controllers().items():
        control = DagControl(controller, faults=faults, memory=flux.memory)
        taken = 0

        def tell(intervals: list[Interval], case: str = case) -> None:
            nonlocal taken
            taken += sum(intervals[entry].generated for entry in settings.entries)
            if told is not None:
                told(case, intervals[0].end_s, taken // len(settings.entries))

        run = simulate_dag(settings, of.inputs, pace.duration_s, control, interval_s=every_s, on_interval=tell)
        outcomes.append(DagOutcome(case, run, of))
    return DagRun(tuple(outcomes), {**(parameters or {}), "interval_s": every_s})
