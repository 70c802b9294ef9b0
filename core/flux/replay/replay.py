"""Flux replay: a stream through a stage, static and with each policy."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import inf
from typing import Any, ClassVar

from adapt.core.errors import BadInput, UsageError
from adapt.core.flux.policies.load_policy import MIN_COLLECTION_S, LoadBalancing
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import ChosenFluxPolicy, controller_of
from adapt.core.flux.replay.tables import (
    BRIEF,
    STATIC,
    cases_table,
    flux_conclusion,
    limit_sentence,
    rounds_table,
    summary_table,
)
from adapt.core.own.own_code import by_case, own_parameters
from adapt.core.run import Run
from adapt.core.stage.charts import series_tables
from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.conditions.faults import FaultSchedule, segments_of
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import StageSettings, check_buffer
from adapt.core.stage.input.offered_load import Bounds, Demand, bounds_of
from adapt.core.stage.movement.controller import Controller
from adapt.core.stage.movement.spilling import Memory, check_memory, check_room
from adapt.core.stage.movement.splitting import HotSplit
from adapt.core.stage.outcome import Outcome, Pace, Told, outcome_of, queues_sentence, telling, usual_interval_s
from adapt.core.stage.simulate import Actors, simulate
from adapt.core.table import Table

LOAD, NONE = (ChosenFluxPolicy(policy, LoadBalancing()) for policy in (FluxPolicy.LOAD, FluxPolicy.NONE))


@dataclass(frozen=True, slots=True, repr=False)
class FluxRun(Run):
    """Result of a Flux replay."""

    mechanism: ClassVar[str] = "flux"
    brief: ClassVar[str] = BRIEF

    outcomes: tuple[Outcome, ...]  # outcome of each case, static first
    bounds: Bounds  # performance bounds
    settings: StageSettings
    speedup: float | None  # trace seconds per simulated second; None, as fast as workers accept rows
    parameters: Mapping[str, Any]  # all parameters of the replay, as JSON data

    @property
    def is_timed(self) -> bool:
        """Whether rows arrive by their times."""
        return self.speedup is not None

    def conclusion(self) -> str:
        """Whether to rebalance."""
        return flux_conclusion(self.outcomes, self.bounds, self.speedup)

    def notes(self) -> Sequence[str]:
        """The limit of whole partitions, and the queues."""
        return limit_sentence(self.outcomes, self.bounds), queues_sentence(self.outcomes[0].simulated)

    def facts(self) -> Table:
        """The run as one row."""
        return summary_table(self.outcomes, self.bounds, self.settings, self.speedup)

    def tables(self) -> dict[str, Table]:
        """`cases`, and `intervals`, `workers`, `moves`, `crashes` and `rounds` of all cases."""
        return {
            "cases": cases_table(self.outcomes),
            **series_tables(self.outcomes, self.bounds),
            "rounds": rounds_table(self.outcomes),
        }


@dataclass(frozen=True, slots=True)
class Flux:
    """Rebalancing policies, with memory, faults and replicas of workers."""

    policies: tuple[ChosenFluxPolicy, ...] = (LOAD,)  # policies to compare with the static case
    min_collection_s: float = MIN_COLLECTION_S  # minimum collection time, delta_min
    hot: HotSplit | None = None  # when partitions are split, so that each key has aggregates of its own; None, never
    memory: Memory | None = None  # memory of each worker; None, unlimited
    faults: FaultSchedule | None = None  # loads, slowdowns, pauses and crashes
    standby: bool = False  # whether every partition has a standby replica on another worker

    def cases(self) -> dict[str, ChosenFluxPolicy]:
        """Policy of each case by name, static first, without duplicates."""
        return {STATIC: NONE, **by_case(each for each in self.policies if each.policy is not FluxPolicy.NONE)}

    def controllers(self) -> dict[str, Controller | None]:
        """The controller of each case; None, static."""
        return {
            case: controller_of(each.policy, self.min_collection_s, each.parameters)
            for case, each in self.cases().items()
        }

    @property
    def period_s(self) -> float:
        """Shortest time between rounds; infinite without a policy."""
        return self.min_collection_s if len(self.cases()) > 1 else inf

    def parameters(self) -> dict[str, Any]:
        """All but the stage, as JSON data."""
        return {
            "policies": [str(policy) for policy in self.cases().values()],
            **own_parameters(each.policy for each in self.policies),
            "min_collection_s": self.min_collection_s,
            "split_hot": None if self.hot is None else asdict(self.hot),
            "memory": None if self.memory is None else asdict(self.memory),
            "faults": None if self.faults is None else self.faults.document(),
            "standby": self.standby,
        }

    def check(self, settings: StageSettings) -> None:
        """Check a replay before its rows are read."""
        if settings.router is Router.FLUX:
            check_buffer(settings.buffer_tuples, "; router exchange needs no buffer")
        faults = self.faults or FaultSchedule()
        settings.queueing.check(self.standby, faults.crashes, self.hot)
        placed = len(self.cases()) > 1 or self.memory is not None or self.standby or faults.crashes
        if settings.router is Router.RIVER and placed:
            raise UsageError(
                "router river sends a tuple to any worker, so policies, memory limits, crashes and standby do not"
                " apply; use router flux, or policy none without them"
            )
        if self.hot is not None:
            self.hot.check(settings)
        faults.check(settings.workers, settings.disturbances)
        segments_of(settings.workers, (*settings.disturbances, *faults.disturbances))
        self.controllers()
        if self.memory is not None:
            check_memory(settings, self.memory)

    def replay(
        self,
        rows: Rows,
        demand: Demand,
        settings: StageSettings,
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
        pace = pace or Pace()
        bounds = bounds_of(demand, settings, self.faults)
        every_s = usual_interval_s(bounds, pace.duration_s) if pace.interval_s is None else pace.interval_s
        crashes = self.faults is not None and self.faults.crashes
        if self.memory is not None and settings.overload is None and not crashes:
            check_room(rows.chunks(), settings, self.memory)
        outcomes = []
        for case, controller in self.controllers().items():
            actors = Actors(controller, self.memory, self.faults, standby=self.standby, hot=self.hot)
            tell = telling(case, told)
            done = simulate(settings, rows, pace.duration_s, actors, interval_s=every_s, on_interval=tell)
            outcomes.append(outcome_of(case, done, bounds))
        failed = [one.simulated.failed for one in outcomes]
        if failed[0] is not None and all(failed):
            raise BadInput(failed[0])
        return FluxRun(tuple(outcomes), bounds, settings, pace.speedup, {**(parameters or {}), "interval_s": every_s})


def policies_of(chosen: Sequence[ChosenFluxPolicy], router: Router) -> tuple[ChosenFluxPolicy, ...]:
    """The requested policies; by default load, if partitions can move."""
    if chosen:
        return tuple(chosen)
    return (NONE,) if router is Router.RIVER else (LOAD,)
