"""Simulation of a DAG of stages from start to end."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.arrivals import Drawn, Made, Source
from adapt.core.stage.conditions.faults import FaultSchedule
from adapt.core.stage.control.recovery import Recovery, full_rate_s
from adapt.core.stage.control.rounds import Adapted, OneStage, Rounds
from adapt.core.stage.dag.running_dag import AllStages, Dag
from adapt.core.stage.dag.settings import DagSettings
from adapt.core.stage.engine.series import Interval, Series
from adapt.core.stage.movement.controller import Controller, Round
from adapt.core.stage.movement.protocol import Movement
from adapt.core.stage.movement.spilling import Memory, Spilling
from adapt.core.stage.simulate import Assembly, Simulated


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
        target: Adapted,
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
