"""Controllers, memory and placement of a scenario."""

from dataclasses import replace

from adapt.core.elastic.policies.names import ScalingPolicy
from adapt.core.elastic.policies.placements import Counting, PlannedPlacement
from adapt.core.elastic.policies.registry import Chosen, timed_policy
from adapt.core.elastic.policies.scaler import ElasticController, Patience, Rebuild
from adapt.core.flux.policies.load_policy import MIN_COLLECTION_S
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import controller_of
from adapt.core.mechanisms.cost_model import Terms
from adapt.core.mechanisms.scenarios import Scenario
from adapt.core.mechanisms.staged import Staged
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stage.conditions.restart import RESTARTS
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.control.workers import Migration, Scaling
from adapt.core.stage.input.offered_load import Demand
from adapt.core.stage.movement.controller import Controller
from adapt.core.stage.movement.spilling import Memory

ROUNDS = 100
"""Most rounds of Flux in a control period: a stream of years has no use for statistics every 0.15 s."""


def memory_of(scenario: Scenario, settings: StageSettings) -> Memory | None:
    """Memory of each worker, at least that of the largest partition."""
    if scenario.memory is None:
        return None
    sizes = settings.state_sizes() * settings.costs.tuple_bytes
    return Memory(max(scenario.memory * float(sizes.sum()) / settings.workers, float(sizes.max()), 1.0))


def controller_of_scenario(scenario: Scenario, terms: Terms) -> Controller | None:
    """What moves partitions between workers; None without a policy."""
    policy = scenario.flux or FluxPolicy.NONE
    return controller_of(policy, max(min(MIN_COLLECTION_S, terms.period_s), terms.period_s / ROUNDS))


def scaling_of(scenario: Scenario, terms: Terms, stage: Staged) -> Scaling | None:
    """What scales the stage; None if the number of workers is fixed."""
    if not scenario.is_scaled:
        return None
    partitions, rebuild = stage.settings.partitions, rebuild_of(scenario, terms)
    migration = migration_of_scenario(scenario, terms)
    chosen = replace(chosen_of(scenario, terms), partitions=partitions)
    policy, patience = timed_policy(scenario.elastic or ScalingPolicy.FIXED, chosen, patience_of(scenario, terms))
    least, pool = terms.least_of(scenario), terms.workers_of(scenario)
    controller = ElasticController(policy, least, pool, patience, rebuild, partitions, scenario.alignment)
    placement = placement_of(terms, stage.settings, stage.demand)
    return Scaling(controller, placement, terms.period_s, migration)


def migration_of_scenario(scenario: Scenario, terms: Terms) -> Migration:
    """How partitions migrate: as the scenario says, else as all do."""
    how = terms.migration.how if scenario.migrating is None else scenario.migrating
    restart = terms.migration.restart if scenario.restart is None else RESTARTS[scenario.restart]
    return replace(terms.migration, how=how, restart=restart)


def placement_of(terms: Terms, settings: StageSettings, demand: Demand) -> PlannedPlacement:
    """Plans of partitions, from the rows counted so far."""
    recipe = Recipe(Scheme.HYBRID)
    return PlannedPlacement(recipe, settings.partitions, Counting(terms.window_s), demand.cost_s is not None)


def chosen_of(scenario: Scenario, terms: Terms) -> Chosen:
    """Settings of the scaling policy."""
    return Chosen(
        scenario.thresholds or terms.thresholds,
        scenario.signal,
        terms.overload.capacity_tuples if scenario.sheds else None,
        scenario.utilization,
        terms.lag_rows if scenario.lag_rows is None else scenario.lag_rows,
        scenario.scale_on,
        terms.workers_of(scenario),
    )


def patience_of(scenario: Scenario, terms: Terms) -> Patience:
    """Scale-out delay and cooldown."""
    return Patience(
        terms.scale_out_delay_s if scenario.scale_out_delay_s is None else scenario.scale_out_delay_s,
        terms.cooldown_s if scenario.cooldown_s is None else scenario.cooldown_s,
    )


def rebuild_of(scenario: Scenario, terms: Terms) -> Rebuild:
    """When plans are rebuilt without a rescale."""
    if not scenario.rebuilds:
        return Rebuild()
    by_the_clock = scenario.rebuild_limit is None
    every_s = terms.rebuild_s if scenario.rebuild_s is None and by_the_clock else scenario.rebuild_s
    return Rebuild(every_s, scenario.rebuild_limit, terms.scale_out_delay_s)
