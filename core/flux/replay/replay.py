"""A stream replayed through a stage: once without moves, and once with each policy of Flux that moves partitions."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from adapt.core.errors import UsageError
from adapt.core.flux.policies.clairvoyant import Ahead, ahead_of
from adapt.core.flux.policies.load_policy import MAX_RECEIVER, MIN_IMBALANCE, LoadBalancing
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import controller_of
from adapt.core.flux.policies.round_controller import MIN_COLLECTION_S
from adapt.core.flux.replay.tables import cases_table, rounds_table, summary_table
from adapt.core.run import run_as_data, verdict_under
from adapt.core.stage.assembly import Actors
from adapt.core.stage.case_tables import series_tables
from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.conditions.disturbances import segments_of
from adapt.core.stage.conditions.faults import FaultSchedule
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import PACKET_TUPLES, StageSettings
from adapt.core.stage.engine.series import Interval
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.offered_load import Bounds, Demand, bounds_of
from adapt.core.stage.movement.spilling import Memory, check_memory
from adapt.core.stage.outcome import Outcome, outcome_of
from adapt.core.stage.replay_parameters import Told, stage_parameters, usual_interval_s
from adapt.core.stage.simulate import simulate
from adapt.core.table import Table

STATIC = "static"
"""The case in which every partition stays where it is."""


@dataclass(frozen=True, slots=True)
class Adapting:
    """What decides on moves.

    Attributes:
        policies: One case each, beside the static one.
        min_collection_s: delta_min.
        min_imbalance: lambda_min.
        max_receiver: u_max.
    """

    policies: tuple[FluxPolicy, ...] = (FluxPolicy.LOAD,)
    min_collection_s: float = MIN_COLLECTION_S
    min_imbalance: float = MIN_IMBALANCE
    max_receiver: float = MAX_RECEIVER

    def cases(self) -> dict[str, FluxPolicy]:
        """The policy of each case by its name, the static one first, every policy once."""
        moving = [policy for policy in dict.fromkeys(self.policies) if policy is not FluxPolicy.NONE]
        return {STATIC: FluxPolicy.NONE, **{policy.value: policy for policy in moving}}


@dataclass(frozen=True, slots=True)
class Conditions:
    """What limits or hits the workers, beside the disturbances of the stage.

    Attributes:
        memory: Of each worker; without limit if not given.
        faults: Slow-downs, pauses, loads and crashes.
        standby: Whether every partition has a twin on another worker, that takes over if its worker dies.
    """

    memory: Memory | None = None
    faults: FaultSchedule | None = None
    standby: bool = False


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast rows are due, until when, and how often the stage is measured.

    Attributes:
        speedup: By which rows are due; None where they are taken as fast as they can be.
        duration_s: Until then at most; if not given, until all rows are processed.
        interval_s: How often to take down what the stage does; if not given, some hundred times.
    """

    speedup: float | None = 1.0
    duration_s: float | None = None
    interval_s: float | None = None


@dataclass(frozen=True, slots=True)
class FluxRun:
    """What a replay measured.

    Attributes:
        outcomes: One a case, the static one first.
        bounds: What can be done at best.
        settings: The stage.
        speedup: Trace seconds in a second of the stage; None, rows were taken as fast as they could be.
        parameters: All that decides the result, beside the stream; JSON data.
    """

    mechanism: ClassVar[str] = "flux"

    outcomes: tuple[Outcome, ...]
    bounds: Bounds
    settings: StageSettings
    speedup: float | None
    parameters: Mapping[str, Any]

    def summary(self) -> Table:
        """The run in one row, with its verdict."""
        return summary_table(self.outcomes, self.bounds, self.settings, self.speedup)

    def tables(self) -> dict[str, Table]:
        """`cases`, one row each; `intervals`, `workers`, `moves`, `crashes` and `rounds` of all of them."""
        return {
            "cases": cases_table(self.outcomes),
            **series_tables(self.outcomes, self.bounds),
            "rounds": rounds_table(self.outcomes),
        }

    def shown(self) -> tuple[Table, Table]:
        """The cases under the verdict, and the rest of the summary."""
        return verdict_under(self.tables()["cases"], self.summary())

    def as_data(self) -> dict[str, Any]:
        """The run as JSON data."""
        return run_as_data(self.mechanism, self.parameters, self.summary(), self.tables())

    def _repr_html_(self) -> str:
        """Summary and cases, for a notebook."""
        return self.summary()._repr_html_() + cases_table(self.outcomes)._repr_html_()


def replay_flux(
    rows: Rows,
    demand: Demand,
    settings: StageSettings,
    adapting: Adapting,
    conditions: Conditions | None = None,
    pace: Pace | None = None,
    *,
    parameters: Mapping[str, Any] | None = None,
    told: Told | None = None,
) -> FluxRun:
    """Simulate a stream through a stage, once without moves and once with each policy.

    Args:
        rows: The tuples, as often as they are asked for.
        settings: The stage; its groups are its partitions.
        parameters: What is recorded as decisive.

    Raises:
        UsageError: an argument is out of its range, or a policy has nothing to move.
        BadInput: a row of the stream cannot be.
    """
    under, pace = conditions or Conditions(), pace or Pace()
    bounds = bounds_of(demand, settings, under.faults)
    every_s = usual_interval_s(bounds, pace.duration_s) if pace.interval_s is None else pace.interval_s
    pairs = LoadBalancing(adapting.min_imbalance, adapting.max_receiver)
    outcomes = []
    for case, policy in adapting.cases().items():
        taken = 0

        def tell(interval: Interval, case: str = case) -> None:
            nonlocal taken
            taken += interval.generated
            if told is not None:
                told(case, interval.end_s, taken)

        ahead = _ahead(rows, settings, under, every_s) if policy is FluxPolicy.OPTIMUM else None
        controller = controller_of(policy, adapting.min_collection_s, pairs, ahead)
        actors = Actors(controller, under.memory, under.faults, standby=under.standby)
        done = simulate(settings, rows, pace.duration_s, actors, interval_s=every_s, told=tell)
        outcomes.append(outcome_of(case, done, bounds))
    return FluxRun(tuple(outcomes), bounds, settings, pace.speedup, {**(parameters or {}), "interval_s": every_s})


def parameters_of(
    settings: StageSettings, reading: Reading, adapting: Adapting, conditions: Conditions, duration_s: float | None
) -> dict[str, Any]:
    """All that decides a replay, beside the stream and where state comes from; JSON data."""
    return {
        **stage_parameters(settings, reading, duration_s),
        "policies": [policy.value for policy in adapting.cases().values()],
        "min_collection_s": adapting.min_collection_s,
        "min_imbalance": adapting.min_imbalance,
        "max_receiver": adapting.max_receiver,
        "memory": None if conditions.memory is None else asdict(conditions.memory),
        "faults": None if conditions.faults is None else conditions.faults.document(),
        "standby": conditions.standby,
    }


def check_replay(settings: StageSettings, adapting: Adapting, conditions: Conditions) -> None:
    """What can be said of a replay before its rows are read.

    Raises:
        UsageError: the buffer is smaller than a packet, or there is nothing that a policy could move.
        BadInput: disturbances or limits of memory cannot be.
    """
    if settings.router is Router.FLUX and settings.buffer_tuples < PACKET_TUPLES:
        raise UsageError(
            f"a buffer of {settings.buffer_tuples} tuples is smaller than a packet of {PACKET_TUPLES}; give it"
            f" {PACKET_TUPLES} or more, or none at all with the router exchange"
        )
    memory, faults = conditions.memory, conditions.faults
    placed = len(adapting.cases()) > 1 or memory is not None or conditions.standby or (faults and faults.crashes)
    if settings.router is Router.RIVER and placed:
        raise UsageError(
            "the router river sends a tuple to any worker, so no partition is anywhere to be moved, spilled or taken"
            " over; use flux, or the policy none without memory, crashes and standby"
        )
    if memory is not None and conditions.standby:
        raise UsageError("the twins of standby need memory that no limit accounts for; leave --memory or --standby out")
    if settings.overload is not None and conditions.standby:
        raise UsageError("a row that is shed has no twin; leave --shed or --standby out")
    if faults is not None:
        faults.check(settings.workers, settings.disturbances)
    segments_of(settings.workers, (*settings.disturbances, *(faults.disturbances if faults else ())))
    pairs = LoadBalancing(adapting.min_imbalance, adapting.max_receiver)
    for policy in adapting.cases().values():
        if policy is not FluxPolicy.OPTIMUM:
            controller_of(policy, adapting.min_collection_s, pairs)
    if memory is not None:
        check_memory(settings, memory)


def _ahead(rows: Rows, settings: StageSettings, under: Conditions, period_s: float) -> Ahead:
    """What the optimum is told: the rows, counted in one pass more, and what the schedules say."""
    disturbances = (*settings.disturbances, *(under.faults.disturbances if under.faults else ()))
    return ahead_of(replace(settings, disturbances=disturbances), rows, under.memory, period_s)


def policies_of(names: Sequence[FluxPolicy], router: Router) -> tuple[FluxPolicy, ...]:
    """The policies that were asked for: if none was, that of the paper where there is something to move."""
    if names:
        return tuple(names)
    return (FluxPolicy.NONE,) if router is Router.RIVER else (FluxPolicy.LOAD,)
