"""One scenario on one stream: its stage, simulation and outcome."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from adapt.core.counting.frequencies import Frequencies
from adapt.core.elastic.policies.registry import policy_of
from adapt.core.elastic.policies.scaler import check_pool
from adapt.core.errors import UsageError
from adapt.core.fit.control import Sent
from adapt.core.flux.policies.registry import controller_of
from adapt.core.mechanisms.actors import (
    chosen_of,
    controller_of_scenario,
    memory_of,
    patience_of,
    placement_of,
    rebuild_of,
    scaling_of,
)
from adapt.core.mechanisms.cost_model import Terms
from adapt.core.mechanisms.planned_drops import PlannedDrops
from adapt.core.mechanisms.scenarios import Scenario, Static
from adapt.core.mechanisms.staged import Staged
from adapt.core.own.own_code import OwnCode
from adapt.core.partitioning.build import Recipe, build_partitioner
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.conditions.settings import StageSettings, check_workers, even_groups
from adapt.core.stage.engine.series import Interval
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.core.stage.input.offered_load import Demand
from adapt.core.stage.input.split_rows import SplitKeys
from adapt.core.stage.simulate import Actors, Simulated, simulate
from adapt.core.stream import Weight


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
    sent = Sent()
    if scenario.drops is not None:
        drops = PlannedDrops.planned(scenario.drops, whole, demand, settings, terms.period_s)
        rows, sent = drops.kept(whole), drops.sent
    if scenario.drops is not None:
        demand = Demand.from_chunks(rows.chunks(), settings)
        rows_read = demand.all_rows
    settings = replace(settings, state_tuples=_state(terms, placed, demand, stream))
    if scenario.is_scaled:
        owners = placement_of(terms, settings, demand).place(terms.least_of(scenario)).owners
        settings = replace(settings, owners=owners)
    memory, dropped = memory_of(scenario, settings), in_all - rows_read
    return Staged(rows, demand, settings, memory, rows_read, dropped, sent)


def simulated(
    scenario: Scenario,
    terms: Terms,
    stage: Staged,
    duration_s: float | None,
    on_interval: Callable[[Interval], None] | None = None,
) -> Simulated:
    """Simulate a scenario until all rows are processed, or until a time."""
    controller, scaling = controller_of_scenario(scenario, terms), scaling_of(scenario, terms, stage)
    actors = Actors(controller, stage.memory, scaling=scaling)
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
        patience_of(scenario, terms)
        rebuild_of(scenario, terms)
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
