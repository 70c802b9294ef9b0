"""A stage together with its controllers, faults and limits."""

from dataclasses import dataclass, replace

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.arrivals import Drawn, Rows, Source
from adapt.core.stage.conditions.faults import FaultSchedule
from adapt.core.stage.conditions.names import QueueingName, Router
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.control.control_target import OneStage
from adapt.core.stage.control.elasticity import Elasticity
from adapt.core.stage.control.recovery import Recovery
from adapt.core.stage.control.rounds import Rounds
from adapt.core.stage.control.workers import Scaling
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.movement.controller import Controller
from adapt.core.stage.movement.protocol import Movement
from adapt.core.stage.movement.spilling import Memory, Spilling
from adapt.core.stage.movement.splitting import HotSplit, Splitting
from adapt.core.stage.movement.standby import Standby


@dataclass(frozen=True, slots=True, eq=False)
class Actors:
    """Controllers, faults and limits of a stage."""

    controller: Controller | None = None  # rebalancing controller; None, static
    memory: Memory | None = None  # memory limit, beyond which state spills to disk; None, unlimited
    # loads, slowdowns, pauses and crashes, in addition to the disturbances of the settings
    faults: FaultSchedule | None = None
    scaling: Scaling | None = None  # scales out and in, with all workers as the pool; None, all workers are active
    standby: bool = False  # partitions with a standby replica on another worker
    idle_clock_s: float = 0.0  # resolution at which consumers measure idle time, rounded up; 0, exact
    hot: HotSplit | None = None  # when partitions are split; None, never


@dataclass(frozen=True, slots=True, eq=False)
class Assembly:
    """A stage ready to run, with the actors that were requested."""

    stage: Stage  # the running stage
    movement: Movement  # executes moves
    rounds: Rounds | None  # runs the rebalancing controller
    spilling: Spilling | None  # enforces the memory limit
    standby: Standby | None  # maintains standby replicas
    recovery: Recovery | None  # executes crashes and restarts
    elasticity: Elasticity | None = None  # scales out and in
    splitting: Splitting | None = None


def assemble(
    settings: StageSettings,
    source: Source,
    actors: Actors | None = None,
    *,
    journal: int = 0,
) -> Assembly:
    """Assemble a stage; arguments as in `simulate`."""
    actors = actors or Actors()
    controller, memory, scaling, standby = actors.controller, actors.memory, actors.scaling, actors.standby
    faults = actors.faults or FaultSchedule()
    faults.check(settings.workers, settings.disturbances)
    if settings.router is Router.RIVER and (controller is not None or memory is not None):
        raise UsageError("router river sends a tuple to any worker, so partitions cannot move or spill; use flux")
    if settings.router is Router.RIVER and (faults.crashes or standby):
        raise UsageError("router river sends a tuple to any worker, so crashes and standby do not apply; use flux")
    engine = settings.queueing.engine
    if engine is not QueueingName.FLUX:
        if isinstance(source, Drawn):
            raise UsageError(f"queueing {engine} needs the rows of a trace; use flux")
        settings.queueing.check(standby, faults.crashes, actors.hot)
    if settings.growth is not None and settings.growth.is_ranked and not isinstance(source, Rows):
        raise UsageError("a join, or a window of state, needs rows with event times; a random source has none")
    if settings.overload is not None and isinstance(source, Drawn):
        raise UsageError(
            "load shedding needs rows with arrival times; a random source offers a tuple for each one shed"
        )
    if scaling is not None:
        if controller is not None or memory is not None or faults.crashes or standby:
            raise UsageError("elastic workers exclude rebalancing policies, memory limits, crashes and standby")
        if not isinstance(source, Rows) or settings.router is Router.RIVER:
            raise UsageError("elastic workers need rows routed by content; use a trace and router flux or exchange")
        if scaling.scaler.pool != settings.workers:
            raise UsageError(
                f"the pool must equal the {settings.workers} workers of the stage (got {scaling.scaler.pool})"
            )
        settings = replace(settings, owners=scaling.placement.place(scaling.scaler.least).owners)
    settings = replace(settings, disturbances=(*settings.disturbances, *faults.disturbances))
    if actors.hot is not None:
        if memory is not None or faults.crashes or standby or scaling is not None:
            raise UsageError("splitting hot partitions excludes memory limits, crashes, standby and elastic workers")
        actors.hot.check(settings)
        settings = actors.hot.with_parts(settings)
    stage = Stage(settings, source, journal, bool(standby))
    spilling = Spilling(stage, memory) if memory is not None else None
    movement = Movement(stage, spilling)
    twins = Standby(stage, movement, spilling) if standby else None
    recovery = Recovery(stage, movement, faults, spilling, twins) if faults.crashes or standby else None
    living = recovery.living if recovery else None
    rounds = None
    if controller is not None:
        available = spilling.available if spilling else None
        rounds = Rounds(OneStage(stage, movement), controller, actors.idle_clock_s, available, living)
    if recovery is not None:
        recovery.rounds = rounds
    elasticity = None if scaling is None else Elasticity(stage, movement, scaling)
    splitting = None if actors.hot is None else Splitting(stage, movement, actors.hot)
    return Assembly(stage, movement, rounds, spilling, twins, recovery, elasticity, splitting)
