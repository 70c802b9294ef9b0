"""A DAG of stages together with its controllers, faults and limits."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from adapt.core.stage.assembly import Assembly
from adapt.core.stage.conditions.arrivals import Made, Source
from adapt.core.stage.conditions.faults import FaultSchedule
from adapt.core.stage.control.control_target import Adapted, OneStage
from adapt.core.stage.control.recovery import Recovery
from adapt.core.stage.control.rounds import Rounds
from adapt.core.stage.dag.all_stages import AllStages
from adapt.core.stage.dag.running_dag import Dag
from adapt.core.stage.dag.settings import DagSettings
from adapt.core.stage.movement.controller import Controller
from adapt.core.stage.movement.protocol import Movement
from adapt.core.stage.movement.spilling import Memory, Spilling


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
