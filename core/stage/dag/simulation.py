"""Simulation of a DAG of stages from start to end."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.arrivals import Chunk, Drawn, Made, Rows, Source
from adapt.core.stage.conditions.faults import Crash, FaultSchedule
from adapt.core.stage.control.recovery import Recovery, full_rate_s
from adapt.core.stage.control.rounds import OneStage, Rounds
from adapt.core.stage.dag.settings import DagSettings
from adapt.core.stage.engine.kernel.advance_dag import advance_dag
from adapt.core.stage.engine.queues import Action, Agenda
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.engine.series import Interval, Series
from adapt.core.stage.movement.controller import Controller, Move, Round
from adapt.core.stage.movement.protocol import Movement
from adapt.core.stage.movement.spilling import Memory, Spilling
from adapt.core.stage.records.arrays import IN_JOB, NONE, REACHED, SERVING
from adapt.core.stage.records.world import CPU, EDGE, OUTBOX
from adapt.core.stage.simulate import Assembly, Simulated

CHECK_S = 0.01
"""How often a query that leaves is looked at, until all it has read is processed."""


class Dag:
    """Running stages with one event queue and the same CPUs."""

    def __init__(self, settings: DagSettings, inputs: Sequence[Source | Made], journal: int = 0) -> None:
        """All stages at time 0; arguments as in `simulate_dag`."""
        self.settings = settings
        self.agenda = Agenda()
        self.on_changed: dict[Stage, Action] = {}
        """Called when the state of a stage was made or freed."""
        self.unsent = 0
        """Emitted tuples that a crash lost before a next stage had them."""
        lives = settings.lives
        self.stages = tuple(
            Stage(of, _since(source, life.from_s), journal, agenda=self.agenda, from_s=life.from_s)
            for of, source, life in zip(settings.stages, inputs, lives, strict=True)
        )
        edges, workers = settings.sorted_edges(), settings.workers
        host = self.stages[0].arrays
        host.put("cpu", np.array([(0, 0, 0, NONE)] * workers, CPU))
        known = [(edge.source, edge.target, edge.selectivity, lives[edge.target].from_s == 0) for edge in edges]
        host.put("edge", np.array(known, EDGE))
        host.put("outbox", np.zeros(len(edges) * workers, OUTBOX))
        self._worlds = np.concatenate([stage.arrays.worlds for stage in self.stages])
        self._worlds["edges"] = len(edges)
        for number, stage in enumerate(self.stages):
            stage.arrays.share(self._worlds[number : number + 1])
            sources = [edge.source for edge in edges]
            stage.arrays.world["edges_first"] = np.searchsorted(sources, number, "left")
            stage.arrays.world["edges_end"] = np.searchsorted(sources, number, "right")
            if lives[number].from_s > 0:
                self.agenda.at(lives[number].from_s, partial(self._arrive, number))
            if lives[number].until_s < np.inf:
                self.agenda.at(lives[number].until_s, partial(self._leave, number))

    @property
    def now_s(self) -> float:
        """Current simulated time."""
        return self.stages[0].now_s

    def run(self, until_s: float) -> None:
        """Simulate until a time, including the actions scheduled for it."""
        while True:
            why, worker, stage = advance_dag(self._worlds, min(self.agenda.next_s, until_s))
            if why != REACHED:
                self.stages[stage].answer(why, worker)
            elif self.agenda.next_s <= until_s:
                self.agenda.take()()
            else:
                return

    def cpu_idle_s(self) -> NDArray[np.float64]:
        """Idle seconds of each CPU since the start, shape (workers,)."""
        cpus = self.stages[0].arrays["cpu"]
        doing = np.stack([stage.arrays["worker"]["doing"] for stage in self.stages])
        works = np.isin(doing, (SERVING, IN_JOB)).any(axis=0)
        return np.asarray(cpus["idle"] + np.where(works, 0.0, self.now_s - cpus["since"]))

    def mean_costs_s(self) -> list[float]:
        """Mean service time of each stage; 0 before its first tuple."""
        return [
            float(stage.arrays["worker"]["busy"].sum()) / max(1, int(stage.arrays.world["processed"]))
            for stage in self.stages
        ]

    def in_between(self, edge: int | None = None) -> int:
        """Emitted tuples that wait for room, on an edge or on all."""
        left = self.stages[0].arrays["outbox"]["left"].reshape(-1, self.settings.workers)
        return int(left.sum() if edge is None else left[edge].sum())

    def crash(self, crash: Crash) -> None:
        """Lose what a worker was about to send on."""
        cpus, outboxes = self.stages[0].arrays["cpu"], self.stages[0].arrays["outbox"]
        idle_s = self.cpu_idle_s()[crash.worker]
        cpus[crash.worker]["idle"], cpus[crash.worker]["since"] = idle_s, self.now_s
        left = outboxes["left"].reshape(-1, self.settings.workers)[:, crash.worker]
        self.unsent += int(left.sum())
        left[:] = 0

    @property
    def drained(self) -> bool:
        """Whether all sources have ended and all their tuples are processed."""
        return all(self._drained())

    def _drained(self) -> list[bool]:
        """Whether each stage has processed everything and gets nothing more."""
        found: list[bool] = []
        edges = self.stages[0].arrays["edge"]
        for number, stage in enumerate(self.stages):
            into = self.settings.into(number)
            if into:
                arrived = self.now_s >= self.settings.lives[number].from_s
                ended = arrived and all(found[edges["source"][edge]] or not edges["open"][edge] for edge in into)
                waiting = sum(self.in_between(edge) for edge in into)
                done = int(stage.arrays.world["processed"]) + stage.lost
                found.append(ended and not waiting and int(stage.arrays["producer"]["generated"].sum()) == done)
            else:
                found.append(stage.drained)
        return found

    def _arrive(self, number: int) -> None:
        """Begin the stage of a query."""
        self._set_open(number, is_open=True)
        self.stages[number].begin()
        self._changed(number)

    def _changed(self, number: int) -> None:
        self.on_changed.get(self.stages[number], lambda: None)()

    def _leave(self, number: int) -> None:
        """End the input of a stage."""
        if self.settings.into(number):
            self._set_open(number, is_open=False)
        else:
            self.stages[number].end_input()
        self._free(number)

    def _set_open(self, number: int, is_open: bool) -> None:
        """Open the edges into a stage, or close those from queries that stay."""
        edges, until_s = self.stages[0].arrays["edge"], self.settings.lives[number].until_s
        for edge in self.settings.into(number):
            if is_open or self.settings.lives[int(edges["source"][edge])].until_s > until_s:
                edges["open"][edge] = is_open

    def _free(self, number: int) -> None:
        """Free the state of a stage once it has processed everything."""
        if self._drained()[number]:
            self.stages[number].free_state()
            self._changed(number)
        else:
            self.stages[number].after(CHECK_S, lambda: self._free(number))


def _since(source: Source | Made, from_s: float) -> Source | Made:
    """A source without the rows that arrive before a time."""
    if not isinstance(source, Rows) or from_s == 0:
        return source

    def chunks() -> Iterator[Chunk]:
        for chunk in source.chunks():
            first = 0 if chunk.due_s is None else int(np.searchsorted(chunk.due_s, from_s))
            if first < len(chunk.groups):
                yield chunk.part(first, len(chunk.groups)) if first else chunk

    return Rows(chunks)


class AllStages(OneStage):
    """All stages of a DAG under a joint controller.

    Partitions are numbered stage after stage. A worker is idle while its CPU is. A tuple weighs the mean service time
    in its stage, so partitions of all stages are comparable.
    """

    def __init__(self, dag: Dag, movements: Sequence[Movement]) -> None:
        """Wrap the stages and the movement protocol of each."""
        super().__init__(dag.stages[0], movements[0])
        self._dag = dag
        self._stages = [OneStage(*one) for one in zip(dag.stages, movements, strict=True)]
        self._firsts = np.cumsum([0, *(len(stage.of_partitions("owner")) for stage in self._stages)])

    def idle_s(self) -> NDArray[np.float64]:
        """Idle seconds of each CPU since the start, shape (workers,)."""
        return self._dag.cpu_idle_s()

    def when_read(self, worker: int, action: Action) -> None:
        """Run an action when all consumers have read their messages."""
        for stage in reversed(self._stages):
            action = partial(stage.when_read, worker, action)
        action()

    def state_bytes(self) -> NDArray[np.int64]:
        """Current state of each partition, shape (partitions,)."""
        return np.concatenate([stage.state_bytes() for stage in self._stages])

    def of_partitions(self, name: str) -> NDArray[Any]:
        """A field of the partitions of all stages, shape (partitions,)."""
        return np.concatenate([stage.of_partitions(name) for stage in self._stages])

    def weighed(self, tuples: NDArray[np.int64]) -> NDArray[np.int64]:
        """Mean CPU nanoseconds for these tuple counts, shape (partitions,)."""
        costs = [np.rint(1e9 * cost_s) for cost_s in self._dag.mean_costs_s()]
        return np.asarray(tuples * np.repeat(costs, np.diff(self._firsts)), np.int64)

    def may_start(self, move: Move) -> bool:
        """Whether a move can start now."""
        stage, partition = self._found(move.partition)
        return self._stages[stage].may_start(Move(partition, move.donor, move.receiver))

    def receiver_of(self, partition: int) -> int | None:
        """The receiver of a partition with a dead donor; else None."""
        stage, own = self._found(partition)
        return self._stages[stage].receiver_of(own)

    def start(self, moves: Sequence[Move], done: Action) -> None:
        """Execute moves, and call `done` when all are finished."""
        parts: list[list[Move]] = [[] for _ in self._stages]
        for move in moves:
            stage, partition = self._found(move.partition)
            parts[stage].append(Move(partition, move.donor, move.receiver))
        waiting = sum(map(bool, parts))

        def one_done() -> None:
            nonlocal waiting
            waiting -= 1
            if waiting == 0:
                done()

        for adapted, part in zip(self._stages, parts, strict=True):
            if part:
                adapted.start(part, one_done)

    def _found(self, partition: int) -> tuple[int, int]:
        """The stage of a partition, and its number there."""
        stage = int(np.searchsorted(self._firsts, partition, "right")) - 1
        return stage, partition - int(self._firsts[stage])


@dataclass(frozen=True, slots=True, eq=False)
class DagControl:
    """Controllers of a DAG, and the limits and faults of its workers.

    Attributes:
        faults: Loads, slowdowns, pauses and crashes of workers.
    """

    # controller of all stages, which sees CPU utilization and the share of each partition
    joint: Controller | None = None
    each: Sequence[Controller | None] = ()  # controller of each stage, unaware of the others; empty, none
    faults: FaultSchedule = FaultSchedule()  # noqa: RUF009 - frozen
    idle_clock_s: float = 0.0  # resolution at which idle time is measured, rounded up; 0, exact
    memory: Memory | None = None  # memory limit of each worker for the state of all stages; None, unlimited

    def rounds(
        self,
        target: OneStage,
        controller: Controller,
        available: Callable[[int], float] | None,
        recovery: Recovery | None,
    ) -> Rounds:
        """Rounds of a controller."""
        return Rounds(target, controller, self.idle_clock_s, available, recovery.living if recovery else None)


@dataclass(frozen=True, slots=True, eq=False)
class DagAssembly:
    """A DAG ready to run."""

    dag: Dag  # the running DAG
    stages: tuple[Assembly, ...]  # each stage with its own actors
    joint: Rounds | None  # runs the joint controller, if any


def assemble_dag(
    settings: DagSettings, inputs: Sequence[Source | Made], control: DagControl, journal: int = 0
) -> DagAssembly:
    """Assemble a DAG; arguments as in `simulate_dag`."""
    faults, memory = control.faults, control.memory
    faults.check(settings.workers, settings.stages[0].disturbances)
    settings = replace(
        settings,
        stages=tuple(replace(of, disturbances=(*of.disturbances, *faults.disturbances)) for of in settings.stages),
    )
    dag = Dag(settings, inputs, journal)
    for crash in faults.crashes:  # ahead of the stages' own
        dag.agenda.at(crash.at_s, partial(dag.crash, crash))
    stages: list[Assembly] = []
    for number, stage in enumerate(dag.stages):
        spilling = None
        if memory is not None:
            spilling = Spilling(stage, memory, [one.spilling for one in stages if one.spilling is not None])
        movement = Movement(stage, spilling, stages[0].movement.network if stages else None)
        recovery = Recovery(stage, movement, faults, spilling) if faults.crashes else None
        own, rounds = control.each[number] if control.each else None, None
        if own is not None:
            available = spilling.available if spilling else None
            rounds = control.rounds(OneStage(stage, movement), own, available, recovery)
        stages.append(Assembly(stage, movement, rounds, spilling, None, recovery))
    joint, first = None, stages[0]
    if control.joint is not None:
        available = first.spilling.limit if first.spilling else None
        target = AllStages(dag, [one.movement for one in stages])
        joint = control.rounds(target, control.joint, available, first.recovery)
    for one in stages:
        if one.recovery is not None:
            one.recovery.rounds = joint or one.rounds
        if one.spilling is not None:
            dag.on_changed[one.stage] = one.spilling.fit
    return DagAssembly(dag, tuple(stages), joint)


@dataclass(frozen=True, slots=True, eq=False)
class SimulatedDag:
    """Result of a simulated DAG."""

    settings: DagSettings  # its settings, with the disturbances of the faults
    faults: FaultSchedule
    # each stage, with the rounds of its own controller. Total latencies count from the arrival of the source tuple
    stages: tuple[Simulated, ...]
    joint_rounds: list[Round]  # rounds of a joint controller; the partitions of a stage follow those of the one before
    utilization: NDArray[np.float64]  # CPU utilization of each worker in each interval, shape (intervals, workers)
    in_between: int  # emitted tuples that still wait for the next stage
    unsent: int  # emitted tuples that a crash lost before a next stage had them

    def rate(self, since_s: float = 0.0) -> float:
        """Throughput to the last stage, in source tuples/s, from a time on."""
        intervals = [one for one in self.stages[-1].intervals if one.start_s >= since_s - 1e-9]
        visits = self.settings.visits()[-1]
        if not intervals or visits == 0:
            return 0.0
        return sum(one.processed for one in intervals) / (intervals[-1].end_s - intervals[0].start_s) / visits

    def moves_a_minute(self, since_s: float = 0.0) -> float:
        """Moves of all stages per minute, from a time on."""
        moves = [one for run in self.stages for one in run.moves if one.times_s["decided"] >= since_s]
        lasting_s = self.stages[0].intervals[-1].end_s - since_s
        return 60 * len(moves) / lasting_s if lasting_s > 0 else 0.0


def simulate_dag(
    settings: DagSettings,
    inputs: Sequence[Source | Made],
    duration_s: float | None = None,
    control: DagControl | None = None,
    *,
    interval_s: float = 1.0,
    journal: int = 0,
    on_interval: Callable[[list[Interval]], None] | None = None,
) -> SimulatedDag:
    """Simulate a DAG of stages, deterministically.

    Args:
        settings: The stages and edges.
        inputs: Source of each stage without an edge into it; of every other, how its tuples are keyed.
        duration_s: Simulated time; None, until all rows and the tuples made of them are processed.
        control: Controllers and faults, if any.
        interval_s: Sampling interval.
        journal: Number of processed tuples to record, per stage.
        on_interval: Called with every finished interval of all stages.
    """
    control = control or DagControl()
    _check(settings, inputs, duration_s, control, interval_s)
    of = assemble_dag(settings, inputs, control, journal)
    dag, joint = of.dag, of.joint
    series = [Series(stage) for stage in dag.stages]
    idle_s, ends_s = [dag.cpu_idle_s()], [0.0]
    while True:
        end_s = len(ends_s) * interval_s
        dag.run(end_s if duration_s is None else min(end_s, duration_s))
        taken = [watched.take() for watched in series]
        if on_interval is not None:
            on_interval(taken)
        idle_s.append(dag.cpu_idle_s())
        ends_s.append(dag.now_s)
        if dag.drained or (duration_s is not None and dag.now_s >= duration_s):
            break
    runs = []
    for one, watched in zip(of.stages, series, strict=True):
        reports = one.recovery.reports if one.recovery else []
        for report in reports:
            report.full_rate_s = full_rate_s(watched.intervals, settings.workers, report)
        runs.append(
            Simulated(
                intervals=watched.intervals,
                moves=one.movement.log,
                rounds=one.rounds.rounds if one.rounds else [],
                census=one.stage.census(),
                finished_s=float(one.stage.arrays.world["last"]),
                journal=one.stage.arrays["entry"][: int(one.stage.arrays.world["journalled"])],
                crashes=reports,
            )
        )
    return SimulatedDag(
        settings=dag.settings,
        faults=control.faults,
        stages=tuple(runs),
        joint_rounds=joint.rounds if joint else [],
        utilization=1 - np.diff(idle_s, axis=0) / np.diff(ends_s)[:, None],
        in_between=dag.in_between(),
        unsent=dag.unsent,
    )


def _check(
    settings: DagSettings,
    inputs: Sequence[Source | Made],
    duration_s: float | None,
    control: DagControl,
    interval_s: float,
) -> None:
    if not interval_s > 0 or (duration_s is not None and not duration_s > 0):
        raise UsageError(f"duration and interval must be above 0 s (got {duration_s} and {interval_s:g})")
    if control.joint is not None and any(one is not None for one in control.each):
        raise UsageError("give either a joint controller, or one per stage")
    if control.each and len(control.each) != len(settings.stages):
        raise UsageError(f"give a controller per stage (got {len(control.each)} for {len(settings.stages)} stages)")
    if len(inputs) != len(settings.stages):
        raise BadInput(f"give an input per stage (got {len(inputs)} for {len(settings.stages)} stages)")
    for number, (source, life) in enumerate(zip(inputs, settings.lives, strict=True)):
        if isinstance(source, Made) == (number in settings.entries):
            raise BadInput(f"stage {number} needs a source if it has no edge into it, else `Made`")
        if duration_s is None and isinstance(source, Drawn) and life.until_s == np.inf:
            raise UsageError("a random source is unbounded; give a duration")
