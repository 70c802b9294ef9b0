"""One scenario on one stream: its stage, simulation and outcome."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from adapt.core.counting.frequencies import Frequencies
from adapt.core.elastic.policies.names import ScalingPolicy
from adapt.core.elastic.policies.placements import Counting, PlannedPlacement
from adapt.core.elastic.policies.registry import Chosen, policy_of, timed_policy
from adapt.core.elastic.policies.scaler import ElasticController, Patience, Rebuild, check_pool
from adapt.core.errors import UsageError
from adapt.core.fit.distributed.messages import Traffic
from adapt.core.flux.policies.load_policy import MIN_COLLECTION_S
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import controller_of
from adapt.core.mechanisms.cost_model import Terms
from adapt.core.mechanisms.planned_drops import PlannedDrops
from adapt.core.mechanisms.scenarios import Scenario, Static
from adapt.core.own.own_code import OwnCode
from adapt.core.partitioning.build import Recipe, build_partitioner
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.conditions.settings import RESTARTS, StageSettings, check_workers, even_groups
from adapt.core.stage.control.workers import Scaling
from adapt.core.stage.engine.series import Interval
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.core.stage.input.offered_load import Bounds, Demand, bounds_of
from adapt.core.stage.input.split_rows import SplitKeys
from adapt.core.stage.movement.spilling import Memory
from adapt.core.stage.simulate import Actors, Simulated, simulate
from adapt.core.stream import Weight


@dataclass(frozen=True, slots=True, eq=False)
class Staged:
    """A scenario ready to be simulated.

    Attributes:
        sent: Messages that were exchanged to plan drops.
    """

    rows: Rows  # the tuples
    demand: Demand  # their offered load
    settings: StageSettings
    memory: Memory | None  # memory of a worker; None, no limit
    rows_read: int  # number of rows, without merge messages and without those that a planner dropped
    dropped: int = 0  # rows that a planner dropped before they reached workers
    sent: Traffic = Traffic()  # noqa: RUF009 - frozen

    @property
    def bounds(self) -> Bounds:
        """Bounds of its throughput."""
        return bounds_of(self.demand, self.settings)

    @property
    def drop_rate(self) -> float:
        """Share of the rows that a planner dropped."""
        return self.dropped / (self.dropped + self.rows_read)


ROUNDS = 100
"""Most rounds of Flux in a control period: a stream of years has no use for statistics every 0.15 s."""


def scaling_of(scenario: Scenario, terms: Terms, stage: Staged) -> Scaling | None:
    """What scales the stage; None if the number of workers is fixed."""
    if not scenario.is_scaled:
        return None
    partitions, (rebuild, patience) = stage.settings.partitions, timing_of(scenario, terms)
    chosen = replace(chosen_of(scenario, terms), partitions=partitions)
    policy, patience_s = timed_policy(scenario.elastic or ScalingPolicy.FIXED, chosen, patience)
    least, pool = terms.least_of(scenario), terms.workers_of(scenario)
    controller = ElasticController(policy, least, pool, patience_s, rebuild, partitions, scenario.alignment)
    how = terms.migration.how if scenario.migrating is None else scenario.migrating
    restart = terms.migration.restart if scenario.restart is None else RESTARTS[scenario.restart]
    migration = replace(terms.migration, how=how, restart=restart)
    return Scaling(controller, placement_of(terms, stage.settings, stage.demand), terms.period_s, migration)


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


def timing_of(scenario: Scenario, terms: Terms) -> tuple[Rebuild, Patience]:
    """When plans are rebuilt without a rescale; scale-out delay and cooldown."""
    patience = Patience(
        terms.scale_out_delay_s if scenario.scale_out_delay_s is None else scenario.scale_out_delay_s,
        terms.cooldown_s if scenario.cooldown_s is None else scenario.cooldown_s,
    )
    if not scenario.rebuilds:
        return Rebuild(), patience
    by_the_clock = scenario.rebuild_limit is None
    every_s = terms.rebuild_s if scenario.rebuild_s is None and by_the_clock else scenario.rebuild_s
    return Rebuild(every_s, scenario.rebuild_limit, terms.scale_out_delay_s), patience


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream that scenarios read."""

    rows: Callable[[Reading], Rows]  # the tuples of a reading; they can be read many times
    counted: Callable[[], Frequencies]  # the counts of its keys
    bytes: Callable[[MiniPartitions], Any]  # the total size of the rows of each partition
    # their offered load on a stage without disturbances and faults; None, it is summed up each time
    known: Callable[[Reading, StageSettings], Demand] | None = None

    def demand(self, reading: Reading, settings: StageSettings) -> Demand:
        """Offered load of a reading, on an undisturbed stage."""
        if self.known is not None:
            return self.known(reading, settings)
        return Demand.from_chunks(self.rows(reading).chunks(), settings)


def staged(scenario: Scenario, terms: Terms, stream: Stream) -> Staged:
    """Prepare the stage of a scenario."""
    check_scenario(scenario, terms)
    placed, split = _placed(scenario, terms, stream)
    until_s = np.inf if terms.duration_s is None else terms.duration_s
    reading = Reading(placed, terms.speedup, terms.row_costs, terms.by_stream, until_s)
    workers, partitions = placed.workers, placed.count
    tau2 = (scenario.thresholds or terms.thresholds).tau2
    overload = replace(terms.overload, factor=replace(terms.overload.factor, tau2=tau2)) if scenario.sheds else None
    settings = StageSettings(
        workers=workers,
        owners=placed.owners,
        partition_of=even_groups(partitions, partitions),
        buffer_tuples=terms.buffer_tuples,
        network=terms.network,
        costs=terms.costs,
        state_tuples=terms.state if isinstance(terms.state, int) else 0,
        seed=terms.seed,
        overload=overload,
        queueing=terms.queueing,
    )
    whole = stream.rows(reading)
    demand = stream.demand(reading, settings)
    rows, in_all = whole, demand.all_rows
    rows_read = in_all
    if split is not None:
        rows = stream.rows(replace(reading, split=split))
        demand = Demand.from_chunks(rows.chunks(), settings)
    sent = Traffic()
    if scenario.drops is not None:
        drops = PlannedDrops.planned(scenario.drops, whole, demand, settings, terms.period_s)
        rows, sent = drops.kept(whole), drops.sent
        demand = Demand.from_chunks(rows.chunks(), settings)
        rows_read = demand.all_rows
    settings = replace(settings, state_tuples=_state(terms, placed, demand, stream))
    if scenario.is_scaled:
        owners = placement_of(terms, settings, demand).place(terms.least_of(scenario)).owners
        settings = replace(settings, owners=owners)
    memory = None
    if scenario.memory is not None:
        sizes = settings.state_sizes() * settings.costs.tuple_bytes
        memory = Memory(max(scenario.memory * float(sizes.sum()) / settings.workers, float(sizes.max()), 1.0))
    return Staged(rows, demand, settings, memory, rows_read, in_all - rows_read, sent)


def simulated(
    scenario: Scenario,
    terms: Terms,
    stage: Staged,
    duration_s: float | None,
    on_interval: Callable[[Interval], None] | None = None,
) -> Simulated:
    """Simulate a scenario until all rows are processed, or until a time."""
    collection_s = max(min(MIN_COLLECTION_S, terms.period_s), terms.period_s / ROUNDS)
    controller = controller_of(scenario.flux or FluxPolicy.NONE, collection_s)
    actors = Actors(controller, stage.memory, scaling=scaling_of(scenario, terms, stage))
    done = simulate(
        stage.settings, stage.rows, duration_s, actors, interval_s=terms.interval_s, on_interval=on_interval
    )
    return done if scenario.is_scaled else replace(done, workers=[(0.0, stage.settings.workers)])


def check_scenario(scenario: Scenario, terms: Terms) -> None:
    """Check a scenario before its rows are read."""
    try:
        check_pool(terms.least_of(scenario), terms.workers_of(scenario))
        check_workers(terms.workers_of(scenario))
        MiniPartitions(terms.workers_of(scenario), terms.per_worker)
        if scenario.elastic is not None:
            policy_of(scenario.elastic, chosen_of(scenario, terms))
        if isinstance(scenario.flux, OwnCode):
            controller_of(scenario.flux)
        timing_of(scenario, terms)
    except UsageError as error:
        raise UsageError(f"scenario {scenario.name!r}: {error}") from None


def _placed(scenario: Scenario, terms: Terms, stream: Stream) -> tuple[MiniPartitions, SplitKeys | None]:
    """The initial placement of keys, and how they are split."""
    workers = terms.workers_of(scenario)
    if scenario.split is not None:
        has_head = scenario.split in (Splitting.D_CHOICES, Splitting.W_CHOICES)
        hot = _hot(stream.counted(), workers) if has_head else pa.array([], pa.string())
        return MiniPartitions(workers, terms.per_worker), SplitKeys(scenario.split, hot, terms.period_s)
    if scenario.plan is Static.UNIFORM or scenario.is_scaled:
        return MiniPartitions(workers, terms.per_worker), None
    recipe = Recipe(own=scenario.plan) if isinstance(scenario.plan, OwnCode) else Recipe(Scheme(scenario.plan.value))
    return MiniPartitions(
        workers, terms.per_worker, partitioner=build_partitioner(stream.counted(), recipe, workers)
    ), None


def _hot(counted: Frequencies, workers: int) -> pa.Array:
    """Hot keys: those with a share above 1/(5N), as published."""
    return counted.keys.filter(pa.array(counted.count_low * 5 * workers > counted.total))


def _state(terms: Terms, placed: MiniPartitions, demand: Demand, stream: Stream) -> Any:
    """Tuples of state of each partition, or one number for all."""
    if isinstance(terms.state, int):
        return terms.state
    if terms.state is Weight.COUNT:
        return demand.rows
    return np.maximum(1, -(-stream.bytes(placed) // terms.costs.tuple_bytes))
