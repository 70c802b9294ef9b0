"""Flux replay: a stream through a stage, static and with each policy."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Any, ClassVar

from adapt.core.errors import BadInput, UsageError
from adapt.core.flux.policies.load_policy import MIN_COLLECTION_S, LoadBalancing
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import ChosenFluxPolicy, controller_of
from adapt.core.flux.replay.tables import cases_table, rounds_table, summary_table
from adapt.core.own.own_code import by_case, own_parameters
from adapt.core.run import run_as_data, verdict_under
from adapt.core.stage.charts import series_tables
from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.conditions.faults import FaultSchedule, segments_of
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import PACKET_TUPLES, StageSettings
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.offered_load import Bounds, Demand, bounds_of
from adapt.core.stage.movement.spilling import Memory, check_memory, check_room
from adapt.core.stage.movement.splitting import HotSplit
from adapt.core.stage.outcome import Outcome, Told, outcome_of, stage_parameters, telling, usual_interval_s, with_queues
from adapt.core.stage.simulate import Actors, simulate
from adapt.core.table import Displayed, Table

STATIC = "static"
"""Name of the case without moves."""

LOAD, NONE = (ChosenFluxPolicy(policy, LoadBalancing()) for policy in (FluxPolicy.LOAD, FluxPolicy.NONE))


@dataclass(frozen=True, slots=True)
class Adapting:
    """Rebalancing policies."""

    policies: tuple[ChosenFluxPolicy, ...] = (LOAD,)  # policies to compare with the static case
    min_collection_s: float = MIN_COLLECTION_S  # minimum collection time, delta_min
    hot: HotSplit | None = None  # when partitions are split; None, never

    def cases(self) -> dict[str, ChosenFluxPolicy]:
        """Policy of each case by name, static first, without duplicates."""
        return {STATIC: NONE, **by_case(each for each in self.policies if each.policy is not FluxPolicy.NONE)}

    @property
    def round_s(self) -> float:
        """Shortest time between rounds; infinite without a policy."""
        return self.min_collection_s if len(self.cases()) > 1 else inf


@dataclass(frozen=True, slots=True)
class Conditions:
    """Memory limits, faults and standby replicas of a replay."""

    memory: Memory | None = None  # memory of each worker; None, unlimited
    faults: FaultSchedule | None = None  # loads, slowdowns, pauses and crashes
    standby: bool = False  # whether every partition has a standby replica on another worker


@dataclass(frozen=True, slots=True)
class Pace:
    """Speed-up, duration and sampling interval of a replay."""

    speedup: float | None = 1.0  # trace seconds per simulated second; None, as fast as workers accept rows
    duration_s: float | None = None  # upper limit of the simulated time; None, until all rows are processed
    interval_s: float | None = None  # sampling interval; None, some hundred samples


@dataclass(frozen=True, slots=True, repr=False)
class FluxRun(Displayed):
    """Result of a Flux replay."""

    mechanism: ClassVar[str] = "flux"

    outcomes: tuple[Outcome, ...]  # outcome of each case, static first
    bounds: Bounds  # performance bounds
    settings: StageSettings
    speedup: float | None  # trace seconds per simulated second; None, as fast as workers accept rows
    parameters: Mapping[str, Any]  # all parameters of the replay, as JSON data

    def summary(self) -> Table:
        """The run as one row, with its verdict."""
        table = summary_table(self.outcomes, self.bounds, self.settings, self.speedup)
        return with_queues(table, self.outcomes)

    def tables(self) -> dict[str, Table]:
        """`cases`, and `intervals`, `workers`, `moves`, `crashes` and `rounds` of all cases."""
        return {
            "cases": cases_table(self.outcomes),
            **series_tables(self.outcomes, self.bounds),
            "rounds": rounds_table(self.outcomes),
        }

    def shown(self) -> tuple[Table, Table]:
        """The cases with the verdict, and the rest of the summary."""
        return verdict_under(self.tables()["cases"], self.summary())

    def as_data(self) -> dict[str, Any]:
        """The run as JSON data."""
        return run_as_data(self.mechanism, self.parameters, self.summary(), self.tables())

    def displayed(self) -> list[Table]:
        """Summary and cases."""
        return [self.summary(), cases_table(self.outcomes)]


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
    """Replay a stream through a stage, static and with each policy.

    Args:
        rows: The tuples, repeatable.
        settings: The stage; its groups are its partitions.
        parameters: Parameters to record with the run.
    """
    under, pace = conditions or Conditions(), pace or Pace()
    bounds = bounds_of(demand, settings, under.faults)
    every_s = usual_interval_s(bounds, pace.duration_s) if pace.interval_s is None else pace.interval_s
    crashes = under.faults is not None and under.faults.crashes
    if under.memory is not None and settings.overload is None and not crashes:
        check_room(rows.chunks(), settings, under.memory)
    outcomes = []
    for case, chosen in adapting.cases().items():
        controller = controller_of(chosen.policy, adapting.min_collection_s, chosen.parameters)
        actors = Actors(
            *(controller, under.memory, under.faults),
            standby=under.standby,
            hot=adapting.hot,
        )
        done = simulate(settings, rows, pace.duration_s, actors, interval_s=every_s, on_interval=telling(case, told))
        outcomes.append(outcome_of(case, done, bounds))
    failed = [one.simulated.failed for one in outcomes]
    if failed[0] is not None and all(failed):
        raise BadInput(failed[0])
    return FluxRun(tuple(outcomes), bounds, settings, pace.speedup, {**(parameters or {}), "interval_s": every_s})


def parameters_of(
    settings: StageSettings, reading: Reading, adapting: Adapting, conditions: Conditions, duration_s: float | None
) -> dict[str, Any]:
    """Parameters of a replay, as JSON data."""
    return {
        **stage_parameters(settings, reading, duration_s),
        "policies": [str(policy) for policy in adapting.cases().values()],
        **own_parameters(each.policy for each in adapting.policies),
        "min_collection_s": adapting.min_collection_s,
        "split_hot": None if adapting.hot is None else asdict(adapting.hot),
        "memory": None if conditions.memory is None else asdict(conditions.memory),
        "faults": None if conditions.faults is None else conditions.faults.document(),
        "standby": conditions.standby,
    }


def check_replay(settings: StageSettings, adapting: Adapting, conditions: Conditions) -> None:
    """Check a replay before its rows are read."""
    if settings.router is Router.FLUX and settings.buffer_tuples < PACKET_TUPLES:
        raise UsageError(
            f"--producers buffer must be at least one packet, {PACKET_TUPLES} tuples (got {settings.buffer_tuples});"
            " --router exchange needs no buffer"
        )
    memory, faults = conditions.memory, conditions.faults
    settings.queueing.check(conditions.standby, faults and faults.crashes, adapting.hot)
    placed = len(adapting.cases()) > 1 or memory is not None or conditions.standby or (faults and faults.crashes)
    if settings.router is Router.RIVER and placed:
        raise UsageError(
            "--router river sends a tuple to any worker, so policies, memory limits, crashes and standby do not apply;"
            " use --router flux, or --policy none without them"
        )
    if adapting.hot is not None:
        adapting.hot.check(settings)
    if faults is not None:
        faults.check(settings.workers, settings.disturbances)
    segments_of(settings.workers, (*settings.disturbances, *(faults.disturbances if faults else ())))
    for chosen in adapting.cases().values():
        controller_of(chosen.policy, adapting.min_collection_s, chosen.parameters)
    if memory is not None:
        check_memory(settings, memory)


def policies_of(chosen: Sequence[ChosenFluxPolicy], router: Router) -> tuple[ChosenFluxPolicy, ...]:
    """The requested policies; by default load, if partitions can move."""
    if chosen:
        return tuple(chosen)
    return (NONE,) if router is Router.RIVER else (LOAD,)
