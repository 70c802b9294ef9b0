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
from adapt.core.elastic.replay.outcome import ElasticOutcome, Start, elastic_outcome_of
from adapt.core.elastic.replay.tables import elastic_cases, elastic_series, elastic_summary
from adapt.core.engines.units import EngineUnits
from adapt.core.errors import UsageError
from adapt.core.own.own_code import by_case, own_parameters
from adapt.core.partitioning.build import Recipe
from adapt.core.run import run_as_data, verdict_under
from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.conditions.faults import segments_of
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import PACKET_TUPLES, StageSettings
from adapt.core.stage.conditions.shed_factor import Thresholds
from adapt.core.stage.control.workers import Migration, Placement, Scaling
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.offered_load import Bounds, Demand, bounds_of
from adapt.core.stage.outcome import (
    Told,
    outcome_of,
    stage_parameters,
    telling,
    usual_interval_s,
    with_queues,
    with_sentence,
)
from adapt.core.stage.simulate import Actors, simulate
from adapt.core.table import Displayed, Table

FIXED, REBUILD = "fixed", "rebuild"
"""The cases without rescales: with the first plan, and with plan rebuilds."""


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

    def placement(self, partitions: int, costed: bool) -> Placement:
        """A placement of partitions without counts."""
        if self.units is not None:
            return RulePlacement(partitions, self.units.owners)
        if self.recipe is None:
            return range_placement(partitions)
        return PlannedPlacement(self.recipe, partitions, self.counting, costed)


@dataclass(frozen=True, slots=True, repr=False)
class ElasticRun(Displayed):
    """The result of an elastic replay."""

    mechanism: ClassVar[str] = "elastic"

    outcomes: tuple[ElasticOutcome, ...]  # one per case, fixed workers first
    bounds: Bounds  # upper bounds of the pool's throughput
    settings: StageSettings  # the stage; its workers are the pool
    least: int  # M
    starts: float | None  # offered load over capacity at which thresholds scale out; None without thresholds
    parameters: Mapping[str, Any]  # everything that decides the result except the stream; JSON data
    placed: str = ""  # a sentence on the engine that places keys; empty if plans or ranges do

    def summary(self) -> Table:
        """One row with the verdict."""
        speedup = self.parameters.get("speedup")
        table = elastic_summary(self.outcomes, self.bounds, self.least, self.settings, self.starts, speedup)
        outcomes = [one.outcome for one in self.outcomes]
        table = with_sentence(table, self.placed)
        return with_queues(table, outcomes)

    def tables(self) -> dict[str, Table]:
        """`cases`, the stage's series, and `rescales`."""
        return {"cases": elastic_cases(self.outcomes), **elastic_series(self.outcomes, self.bounds)}

    def shown(self) -> tuple[Table, Table]:
        """The cases, then the summary."""
        return verdict_under(elastic_cases(self.outcomes), self.summary())

    def as_data(self) -> dict[str, Any]:
        """The run as JSON data."""
        return run_as_data(self.mechanism, self.parameters, self.summary(), self.tables())

    def displayed(self) -> list[Table]:
        """Summary and cases."""
        return [self.summary(), elastic_cases(self.outcomes)]


def replay_elastic(
    rows: Rows,
    demand: Demand,
    settings: StageSettings,
    elastic: Elastic,
    *,
    duration_s: float | None = None,
    interval_s: float | None = None,
    parameters: Mapping[str, Any] | None = None,
    told: Told | None = None,
) -> ElasticRun:
    """Simulate a stream with fixed workers and with each scaling policy.

    Args:
        rows: The tuples with their arrival times; they are read once per case.
        settings: The stage, with its pool of workers, load shedding and join.
        duration_s: When to stop; default: when all rows are processed.
        interval_s: Length of a measurement interval; default: about 300 intervals.
        parameters: Recorded with the run.
    """
    costed = demand.cost_s is not None
    least = elastic.least or expected_workers(demand, settings, elastic)
    check_pool(least, elastic.pool)
    settings = replace(settings, owners=elastic.placement(settings.partitions, costed).place(least).owners)
    bounds = bounds_of(demand, settings)
    every_s = usual_interval_s(bounds, duration_s) if interval_s is None else interval_s
    overload = settings.overload
    capacity = None if overload is None else overload.capacity_tuples

    def replayed(case: str, each: ChosenScalingPolicy, rebuild: Rebuild) -> ElasticOutcome:
        policy, partitions = each.policy, settings.partitions
        chosen = replace(
            each.parameters,
            thresholds=elastic.thresholds,
            capacity_tuples=capacity,
            pool=elastic.pool,
            partitions=partitions,
        )
        migration = migration_of(policy, elastic.migration, chosen.times)
        timed, patience = timed_policy(policy, chosen, elastic.patience, elastic.usual)
        bounded = timed, least, elastic.pool
        scaler = ElasticController(*bounded, patience, rebuild, partitions, chosen.alignment)
        placement = elastic.placement(partitions, costed)
        scaling = Scaling(scaler, placement, elastic.period_s, migration, elastic.startup_s)
        actors, tell = Actors(scaling=scaling), telling(case, told)
        done = simulate(settings, rows, duration_s, actors, interval_s=every_s, on_interval=tell)
        began = _started(policy, chosen, elastic.migration, paced=patience is None)
        return elastic_outcome_of(outcome_of(case, done, bounds), overload, elastic.pool, began, demand.answers)

    outcomes = [replayed(case, each, rebuild) for case, (each, rebuild) in elastic.cases().items()]
    by_thresholds = [each.parameters for each in elastic.policies if each.policy is ScalingPolicy.THRESHOLDS]
    factor = None if overload is None else overload.factor
    asks_from = starts_at(elastic.thresholds, factor, by_thresholds[0].signal) if by_thresholds else None
    decisive = {**(parameters or {}), "workers": least, "interval_s": every_s}
    placed = "" if elastic.units is None else elastic.units.sentence
    return ElasticRun(tuple(outcomes), bounds, settings, least, asks_from, decisive, placed)


def _started(policy: AnyScalingPolicy, chosen: Chosen, given: Migration | None, *, paced: bool) -> Start:
    """What a policy brings along; `paced` if it keeps its own timing."""
    own, migration = published(policy), (given or Migration()).named
    if own is not None and own.restart is not None and given is None:
        migration = own.restart.value
    return Start(own.first_s * chosen.times if own and paced else 0.0, migration)


def expected_workers(demand: Demand, settings: StageSettings, elastic: Elastic) -> int:
    """M for the mean rate of a stream, at utilization tau1.

    Source: ESJ, initial deployment; without buffers, by busy time.
    """
    rate = demand.all_rows / demand.last_s if demand.last_s > 0 else 0.0
    tau1, overload = elastic.thresholds.tau1, settings.overload
    if overload is not None:
        return initial_workers(rate, overload.window_s, overload.capacity_tuples, tau1)
    work_s = settings.costs.service_s if demand.cost_s is None else float(demand.cost_s.sum()) / demand.all_rows
    return workers_for(rate * (work_s + settings.costs.produce_s), tau1)


def elastic_parameters(
    settings: StageSettings, reading: Reading, elastic: Elastic, duration_s: float | None
) -> dict[str, Any]:
    """Parameters of a replay, except stream and source of state."""
    recipe, units = elastic.recipe, elastic.units
    scheme = units.engine if units is not None else None if recipe is None else recipe.scheme
    return {
        **stage_parameters(settings, reading, duration_s),
        "pool": elastic.pool,
        "policies": [str(policy) for policy, _ in elastic.cases().values()],
        **own_parameters(each.policy for each in elastic.policies),
        "thresholds": asdict(elastic.thresholds),
        "scale_out_delay_s": (elastic.patience or elastic.usual).scale_out_delay_s,
        "cooldown_s": (elastic.patience or elastic.usual).cooldown_s,
        "own_times": elastic.patience is None,
        "rebuild": asdict(elastic.rebuild),
        "scheme": None if scheme is None else scheme.value,
        "units": None if units is None else units.count,
        "construction": None if recipe is None else recipe.construction.value,
        "counting": asdict(elastic.counting),
        "period_s": elastic.period_s,
        "migration": None if elastic.migration is None else asdict(elastic.migration),
        "startup_s": elastic.startup_s,
    }


def check_elastic(settings: StageSettings, elastic: Elastic) -> None:
    """Check a replay before its rows are read."""
    if settings.router is Router.FLUX and settings.buffer_tuples < PACKET_TUPLES:
        raise UsageError(
            f"--producers buffer must hold at least one packet of {PACKET_TUPLES} rows (got {settings.buffer_tuples})"
        )
    check_pool(1 if elastic.least is None else elastic.least, elastic.pool)
    segments_of(settings.workers, settings.disturbances)
    for each, _ in elastic.cases().values():
        policy_of(each.policy, each.parameters)
    placement = elastic.placement(settings.partitions, costed=False)
    controller = ElasticController(policy_of(ScalingPolicy.FIXED), 1, elastic.pool)
    Scaling(controller, placement, elastic.period_s, elastic.migration or Migration(), elastic.startup_s)
