"""Elastic replay of a stream: fixed workers, then each scaling policy."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

from adapt.core.elastic.policies.names import ScalingPolicy
from adapt.core.elastic.policies.placements import Counting, PlannedPlacement, RulePlacement, range_placement
from adapt.core.elastic.policies.registry import (
    AnyScalingPolicy,
    Chosen,
    ChosenScalingPolicy,
    migration_of,
    policy_of,
    published,
    timed_policy,
)
from adapt.core.elastic.policies.scaler import ElasticController, Patience, Rebuild, check_pool
from adapt.core.elastic.policies.thresholds import initial_workers, starts_at, workers_for
from adapt.core.elastic.replay.outcome import ElasticOutcome, elastic_outcome_of
from adapt.core.elastic.replay.tables import (
    BRIEF,
    elastic_cases,
    elastic_conclusion,
    elastic_facts,
    elastic_notes,
    elastic_series,
)
from adapt.core.engines.units import EngineUnits
from adapt.core.own.own_code import by_case, own_parameters
from adapt.core.partitioning.build import Recipe
from adapt.core.phrases import counted
from adapt.core.run import Run
from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.conditions.faults import segments_of
from adapt.core.stage.conditions.names import Migrating, Router
from adapt.core.stage.conditions.settings import StageSettings, check_buffer
from adapt.core.stage.conditions.shed_factor import Thresholds
from adapt.core.stage.control.workers import Migration, Placement, Scaling
from adapt.core.stage.input.offered_load import Bounds, Demand, bounds_of
from adapt.core.stage.outcome import Pace, Told, outcome_of, queues_sentence, telling, usual_interval_s
from adapt.core.stage.simulate import Actors, simulate
from adapt.core.table import Table

FIXED, REBUILD = "fixed", "rebuild"
"""The cases without rescales: with the first plan, and with plan rebuilds."""


@dataclass(frozen=True, slots=True, repr=False)
class ElasticRun(Run):
    """The result of an elastic replay."""

    mechanism: ClassVar[str] = "elastic"
    brief: ClassVar[str] = BRIEF

    outcomes: tuple[ElasticOutcome, ...]  # one per case, fixed workers first
    bounds: Bounds  # upper bounds of the pool's throughput
    settings: StageSettings  # the stage; its workers are the pool
    least: int  # M
    starts: float | None  # offered load over capacity at which thresholds scale out; None without thresholds
    parameters: Mapping[str, Any]  # everything that decides the result except the stream; JSON data
    placed: str = ""  # a sentence on the engine that places keys; empty if plans or ranges do

    def conclusion(self) -> str:
        """Whether to scale."""
        speedup = self.parameters.get("speedup")
        return elastic_conclusion(self.outcomes, self.bounds, self.least, self.settings, speedup)

    def notes(self) -> list[str]:
        """Buffers, policies, placement and queues."""
        queues = queues_sentence(self.outcomes[0].outcome.simulated)
        return [*elastic_notes(self.outcomes, self.bounds, self.settings, self.starts), self.placed, queues]

    def facts(self) -> Table:
        """One row."""
        speedup = self.parameters.get("speedup")
        return elastic_facts(self.bounds, self.least, self.settings, self.starts, speedup)

    @property
    def today(self) -> str:
        """The workers without a policy."""
        return counted(self.least, "worker")

    def tables(self) -> dict[str, Table]:
        """`cases`, the stage's series, and `rescales`."""
        return {"cases": elastic_cases(self.outcomes), **elastic_series(self.outcomes, self.bounds)}


@dataclass(frozen=True, slots=True)
class Elastic:
    """How a stage scales.

    Attributes:
        thresholds: tau0 to tau3.
        usual: Those of policies without any of their own.
    """

    pool: int  # the maximum number of workers
    # M, the workers at the start and the minimum; None, as many as the mean arrival rate needs
    least: int | None = None
    # scaling policies, one case each after that of fixed workers
    policies: tuple[ChosenScalingPolicy, ...] = (ChosenScalingPolicy(ScalingPolicy.THRESHOLDS, Chosen()),)
    thresholds: Thresholds = Thresholds()  # noqa: RUF009 - frozen
    patience: Patience | None = None  # scale-out delay and cooldown; None, those of each policy
    usual: Patience = Patience()  # noqa: RUF009 - frozen
    rebuild: Rebuild = field(default_factory=Rebuild)  # when the plan is rebuilt without a rescale
    # how plans are built; None, partitions are placed as the engine places its units, or in ranges
    recipe: Recipe | None = None
    units: EngineUnits | None = None  # the engine's units, which are then the partitions; None, no engine's
    counting: Counting = field(default_factory=Counting)  # how the load of partitions is counted for plans
    period_s: float = 1.0  # how often the controller runs
    migration: Migration | None = None  # how partitions migrate; None, as the engine of each policy does, else live
    startup_s: float = 0.0  # start-up time of a worker

    def cases(self) -> dict[str, tuple[ChosenScalingPolicy, Rebuild]]:
        """Policy and rebuilds by case, fixed workers first."""
        fixed, none = (
            ChosenScalingPolicy(ScalingPolicy.FIXED, Chosen()),
            replace(self.rebuild, every_s=None, limit=None),
        )
        cases = {FIXED: (fixed, none)}
        if self.rebuild != none:
            cases[REBUILD] = (fixed, self.rebuild)
        given = by_case(each for each in self.policies if each.policy is not ScalingPolicy.FIXED)
        return {**cases, **{case: (policy, self.rebuild) for case, policy in given.items()}}

    @property
    def restart_s(self) -> float:
        """Longest restart of a policy without state, in seconds."""
        given = [migration_of(each.policy, self.migration, each.parameters.times) for each in self.policies]
        return max((one.restart.fixed_s for one in given if one.how is Migrating.RESTART), default=0.0)

    def placement(self, partitions: int, costed: bool) -> Placement:
        """A placement of partitions without counts."""
        if self.units is not None:
            return RulePlacement(partitions, self.units.owners)
        if self.recipe is None:
            return range_placement(partitions)
        return PlannedPlacement(self.recipe, partitions, self.counting, costed)

    def parameters(self) -> dict[str, Any]:
        """All but the stage, as JSON data."""
        recipe, units = self.recipe, self.units
        scheme = units.engine if units is not None else None if recipe is None else recipe.scheme
        return {
            "pool": self.pool,
            "policies": [str(policy) for policy, _ in self.cases().values()],
            **own_parameters(each.policy for each in self.policies),
            "thresholds": asdict(self.thresholds),
            "scale_out_delay_s": (self.patience or self.usual).scale_out_delay_s,
            "cooldown_s": (self.patience or self.usual).cooldown_s,
            "own_times": self.patience is None,
            "rebuild": asdict(self.rebuild),
            "scheme": None if scheme is None else scheme.value,
            "units": None if units is None else units.count,
            "construction": None if recipe is None else recipe.construction.value,
            "counting": asdict(self.counting),
            "period_s": self.period_s,
            "migration": None if self.migration is None else asdict(self.migration),
            "startup_s": self.startup_s,
        }

    def check(self, settings: StageSettings) -> None:
        """Check a replay before its rows are read."""
        if settings.router is Router.FLUX:
            check_buffer(settings.buffer_tuples)
        check_pool(1 if self.least is None else self.least, self.pool)
        segments_of(settings.workers, settings.disturbances)
        for each, _ in self.cases().values():
            policy_of(each.policy, each.parameters)
        placement = self.placement(settings.partitions, costed=False)
        controller = ElasticController(policy_of(ScalingPolicy.FIXED), 1, self.pool)
        Scaling(controller, placement, self.period_s, self.migration or Migration(), self.startup_s)

    def replay(
        self,
        rows: Rows,
        demand: Demand,
        settings: StageSettings,
        pace: Pace | None = None,
        *,
        parameters: Mapping[str, Any] | None = None,
        told: Told | None = None,
    ) -> ElasticRun:
        """Simulate a stream with fixed workers and with each scaling policy.

        Args:
            rows: The tuples with their arrival times; they are read once per case.
            settings: The stage, with its pool of workers, load shedding and join.
            parameters: Recorded with the run.
        """
        pace = pace or Pace()
        costed = demand.cost_s is not None
        least = self.least or self.expected_workers(demand, settings)
        check_pool(least, self.pool)
        settings = replace(settings, owners=self.placement(settings.partitions, costed).place(least).owners)
        bounds = bounds_of(demand, settings)
        usual_s = usual_interval_s(bounds, pace.duration_s, self.restart_s)
        every_s = usual_s if pace.interval_s is None else pace.interval_s
        overload = settings.overload
        capacity = None if overload is None else overload.capacity_tuples

        def replayed(case: str, each: ChosenScalingPolicy, rebuild: Rebuild) -> ElasticOutcome:
            policy, partitions = each.policy, settings.partitions
            chosen = replace(
                each.parameters,
                thresholds=self.thresholds,
                capacity_tuples=capacity,
                pool=self.pool,
                partitions=partitions,
            )
            migration = migration_of(policy, self.migration, chosen.times)
            timed, patience = timed_policy(policy, chosen, self.patience, self.usual)
            bounded = timed, least, self.pool
            scaler = ElasticController(*bounded, patience, rebuild, partitions, chosen.alignment)
            placement = self.placement(partitions, costed)
            scaling = Scaling(scaler, placement, self.period_s, migration, self.startup_s)
            actors, tell = Actors(scaling=scaling), telling(case, told)
            done = simulate(settings, rows, pace.duration_s, actors, interval_s=every_s, on_interval=tell)
            began = _started(policy, chosen, self.migration, paced=patience is None)
            return elastic_outcome_of(outcome_of(case, done, bounds), overload, self.pool, began, demand.answers)

        outcomes = [replayed(case, each, rebuild) for case, (each, rebuild) in self.cases().items()]
        by_thresholds = [each.parameters for each in self.policies if each.policy is ScalingPolicy.THRESHOLDS]
        factor = None if overload is None else overload.factor
        asks_from = starts_at(self.thresholds, factor, by_thresholds[0].signal) if by_thresholds else None
        decisive = {**(parameters or {}), "workers": least, "interval_s": every_s}
        placed = "" if self.units is None else self.units.sentence
        return ElasticRun(tuple(outcomes), bounds, settings, least, asks_from, decisive, placed)

    def expected_workers(self, demand: Demand, settings: StageSettings) -> int:
        """M for the mean rate of a stream, at utilization tau1.

        Source: ESJ, initial deployment; without buffers, by busy time.
        """
        rate = demand.all_rows / demand.last_s if demand.last_s > 0 else 0.0
        tau1, overload = self.thresholds.tau1, settings.overload
        if overload is not None:
            return initial_workers(rate, overload.window_s, overload.capacity_tuples, tau1)
        work_s = settings.costs.service_s if demand.cost_s is None else float(demand.cost_s.sum()) / demand.all_rows
        return workers_for(rate * (work_s + settings.costs.produce_s), tau1)


def _started(policy: AnyScalingPolicy, chosen: Chosen, given: Migration | None, *, paced: bool) -> tuple[float, str]:
    """When a policy decides first, `paced` if by its own timing, and how partitions migrate."""
    own, migration = published(policy), (given or Migration()).named
    if own is not None and own.restart is not None and given is None:
        migration = own.restart.value
    return own.first_s * chosen.times if own and paced else 0.0, migration
