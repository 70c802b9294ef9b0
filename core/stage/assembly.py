"""A stage with all that acts on it."""

from dataclasses import dataclass, replace

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.arrivals import Rows, Source
from adapt.core.stage.conditions.faults import FaultSchedule
from adapt.core.stage.conditions.names import Router
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
from adapt.core.stage.movement.standby import Standby


@dataclass(frozen=True, slots=True, eq=False)
class Actors:
    """What acts on a stage, beside its stream.

    Attributes:
        controller: Moves partitions; none do if not given.
        memory: Limits it, and what does not fit goes to disk; without limit if not given.
        faults: Slow-downs, pauses, loads and crashes, beside the disturbances of the settings.
        scaling: Takes on workers and lets them go; the workers are the pool. None, all workers work all the time.
        standby: Whether every partition has a twin on another worker, that takes over if its worker dies.
        idle_clock_s: Consumers can tell how long they have waited in whole multiples of this, rounded up; 0, exactly.
    """

    controller: Controller | None = None
    memory: Memory | None = None
    faults: FaultSchedule | None = None
    scaling: Scaling | None = None
    standby: bool = False
    idle_clock_s: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Assembly:
    """A stage at time 0, or later, and what acts on it, as far as it was asked for.

    Attributes:
        stage: To be run.
        movement: Carries out moves.
        rounds: Ask the controller.
        spilling: Keeps memory within its limit.
        standby: Keeps pairs.
        recovery: Lets workers die and come back.
        elasticity: Takes on workers and lets them go.
    """

    stage: Stage
    movement: Movement
    rounds: Rounds | None
    spilling: Spilling | None
    standby: Standby | None
    recovery: Recovery | None
    elasticity: Elasticity | None = None


def assemble(settings: StageSettings, source: Source, actors: Actors | None = None, *, journal: int = 0) -> Assembly:
    """Put a stage together; the arguments are those of `simulate`.

    Raises:
        UsageError: River has nothing to move or to protect; memory is limited, or input shed, with standby; a join
            has a limit of memory, crashes or standby, or is given no rows; something else acts on a stage that is
            scaled, or its tuples are drawn.
        BadInput: a disturbance, a fault, the shares of groups or a row of the stream cannot be.
    """
    actors = actors or Actors()
    controller, memory, scaling, standby = actors.controller, actors.memory, actors.scaling, actors.standby
    faults = actors.faults or FaultSchedule()
    faults.check(settings.workers, settings.disturbances)
    if settings.router is Router.RIVER and (controller is not None or memory is not None):
        raise UsageError(
            "River sends a tuple to any worker, so no partition is anywhere to be moved or spilled; use Flux"
        )
    if settings.router is Router.RIVER and (faults.crashes or standby):
        raise UsageError("River sends a tuple to any worker, so no worker has a partition to take over; use Flux")
    if memory is not None and standby:
        raise UsageError("the twins of standby need memory that no limit accounts for; leave the limit or standby away")
    if settings.overload is not None and standby:
        raise UsageError("a tuple that is shed has no twin; leave the shed factor or standby away")
    if settings.join is not None and (memory is not None or faults.crashes or standby):
        raise UsageError("what a join holds is neither spilled nor copied; leave memory, crashes and standby away")
    if settings.join is not None and not isinstance(source, Rows):
        raise UsageError("a stage joins rows, which say when they happened; drawn tuples do not")
    if scaling is not None:
        if controller is not None or memory is not None or faults.crashes or standby:
            raise UsageError("a stage that is scaled has no other controller, limit of memory, crash or standby")
        if not isinstance(source, Rows) or settings.router is Router.RIVER:
            raise UsageError("a stage is scaled by the rows that come to it, each at the worker of its partition")
        if scaling.scaler.pool != settings.workers:
            raise UsageError(
                f"a pool of {scaling.scaler.pool} workers is not the {settings.workers} workers of the stage"
            )
        settings = replace(settings, owners=scaling.placement.place(scaling.scaler.least).owners)
    settings = replace(settings, disturbances=(*settings.disturbances, *faults.disturbances))
    stage = Stage(settings, source, journal, standby)
    spilling = Spilling(stage, memory) if memory is not None else None
    movement = Movement(stage, spilling)
    twins = Standby(stage, movement) if standby else None
    recovery = Recovery(stage, movement, faults, spilling, twins) if faults.crashes or standby else None
    living = recovery.living if recovery else None
    rounds = None
    if controller is not None:
        rounds = Rounds(OneStage(stage, movement), controller, actors.idle_clock_s, spilling, living)
    if recovery is not None:
        recovery.rounds = rounds
    elasticity = None if scaling is None else Elasticity(stage, movement, scaling)
    return Assembly(stage, movement, rounds, spilling, twins, recovery, elasticity)
