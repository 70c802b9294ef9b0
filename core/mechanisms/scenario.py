"""One scenario on one stream: its stage, simulation and outcome."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from adapt.core.counting.frequencies import Frequencies
from adapt.core.elastic.planning.cheapest_schedule import Schedule
from adapt.core.elastic.planning.known_load import KnownLoad
from adapt.core.elastic.planning.moves import moves_of_stage
from adapt.core.elastic.policies.names import ScalingPolicy
from adapt.core.elastic.policies.placements import Counting, PlannedPlacement
from adapt.core.elastic.policies.registry import Chosen, policy_of, timed_policy
from adapt.core.elastic.policies.scaler import ElasticController, Patience, Rebuild, check_pool
from adapt.core.elastic.replay.outcome import FEW, ElasticOutcome, Span, elastic_outcome_of
from adapt.core.elastic.replay.regret import Bill, Plannable
from adapt.core.elastic.replay.tables import elastic_series
from adapt.core.errors import UsageError
from adapt.core.fit.control import Sent
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.recurring import DAY_S
from adapt.core.flux.policies.registry import controller_of
from adapt.core.flux.policies.round_controller import MIN_COLLECTION_S
from adapt.core.flux.policies.season import Season
from adapt.core.mechanisms.cost_model import Terms
from adapt.core.mechanisms.ordered_stage import ORDERED, run_ordered
from adapt.core.mechanisms.planned_drops import PlannedDrops
from adapt.core.mechanisms.scenarios import Scenario, Static
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.own.own_code import OwnCode
from adapt.core.partitioning.build import Recipe, build_partitioner
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.run import run_as_data
from adapt.core.stage.assembly import Actors
from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.conditions.restart import RESTARTS
from adapt.core.stage.conditions.settings import StageSettings, check_workers, even_groups
from adapt.core.stage.control.workers import Migration, Scaling
from adapt.core.stage.engine.series import Interval
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.core.stage.input.offered_load import Bounds, Demand, bounds_of
from adapt.core.stage.input.split_rows import SplitKeys
from adapt.core.stage.movement.controller import Controller
from adapt.core.stage.movement.spilling import Memory
from adapt.core.stage.outcome import QUEUEING, outcome_of
from adapt.core.stage.simulate import Simulated, simulate
from adapt.core.stream import Weight
from adapt.core.table import Column, Kind, Table


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream that scenarios read.

    Attributes:
        rows: The tuples of a reading; they can be read many times.
        counted: The counts of its keys.
        bytes: The total size of the rows of each partition.
        known: Their offered load on a stage without disturbances and faults; None, it is summed up each time.
    """

    rows: Callable[[Reading], Rows]
    counted: Callable[[], Frequencies]
    bytes: Callable[[MiniPartitions], Any]
    known: Callable[[Reading, StageSettings], Demand] | None = None

    def demand(self, reading: Reading, settings: StageSettings) -> Demand:
        """Offered load of a reading, on an undisturbed stage."""
        if self.known is not None:
            return self.known(reading, settings)
        return Demand.from_chunks(self.rows(reading).chunks(), settings)


@dataclass(frozen=True, slots=True, eq=False)
class Staged:
    """A scenario ready to be simulated.

    Attributes:
        rows: The tuples.
        demand: Their offered load.
        settings: The stage.
        memory: Memory of a worker; None, no limit.
        rows_read: Number of rows, without merge messages and without those that a planner dropped.
        bill: How the scenario is priced: a row costs the mean of all rows, whatever is dropped or merged.
        known: The stream in advance, for the optimum; None for others.
        dropped: Rows that a planner dropped before they reached workers.
        sent: Messages that were exchanged to plan drops.
        is_ordered: Whether workers share the rows in the ordered runtime, and own no partitions.
    """

    rows: Rows
    demand: Demand
    settings: StageSettings
    memory: Memory | None
    rows_read: int
    bill: Bill
    known: Plannable | None = None
    dropped: int = 0
    sent: Sent = Sent()  # noqa: RUF009 - frozen
    is_ordered: bool = False

    @property
    def bounds(self) -> Bounds:
        """Bounds of its throughput.

        Those of the best placement where workers share all partitions.
        """
        bounds = bounds_of(self.demand, self.settings)
        if not self.is_ordered:
            return bounds
        return replace(bounds, static_load=bounds.best_load, static_s=bounds.least_s)

    @property
    def drop_rate(self) -> float:
        """Share of the rows that a planner dropped."""
        return self.dropped / (self.dropped + self.rows_read)


def staged(scenario: Scenario, terms: Terms, stream: Stream) -> Staged:
    """Prepare the stage of a scenario.

    Raises:
        UsageError: a number is out of range.
        BadInput: a row of the stream is invalid.
    """
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
    bill = Bill(terms.prices, bounds_of(demand, settings).row_s, partitions)
    if split is not None:
        rows = stream.rows(replace(reading, split=split))
        demand = Demand.from_chunks(rows.chunks(), settings)
    sent = Sent()
    if scenario.drops is not None:
        drops = PlannedDrops.planned(scenario.drops, whole, demand, settings, terms.period_s)
        rows, sent = drops.kept(whole), drops.sent
        demand = Demand.from_chunks(rows.chunks(), settings)
        rows_read = demand.all_rows
    settings = replace(settings, state_tuples=_state(terms, placed, demand, stream))
    if scenario.is_scaled:
        owners = _placement(terms, settings, demand).place(terms.least_of(scenario)).owners
        settings = replace(settings, owners=owners)
    known = None
    if scenario.knows_stream:
        load = KnownLoad.from_chunks(rows.chunks(), settings, min(demand.last_s, until_s), terms.period_s)
        moving = _migration(scenario, terms), 0.0
        known = Plannable.of_stage(load, settings, moving, terms.least_of(scenario), terms.prices)
    memory, dropped = _memory(scenario, settings), in_all - rows_read
    is_ordered = scenario.ordered is not None
    return Staged(rows, demand, settings, memory, rows_read, bill, known, dropped, sent, is_ordered)


def simulated(
    scenario: Scenario,
    terms: Terms,
    stage: Staged,
    duration_s: float | None,
    on_interval: Callable[[Interval], None] | None = None,
) -> Simulated:
    """Simulate a scenario until all rows are processed, or until a time.

    Of the schedules of the optimum, the cheapest one.
    """
    if scenario.ordered is not None:
        return run_ordered(scenario.ordered, stage.rows, stage.settings, terms.interval_s, duration_s)
    if stage.known is None:
        return _simulated(scenario, terms, stage, duration_s, on_interval)
    tried = (
        _simulated(scenario, terms, stage, duration_s, on_interval, schedule) for schedule in stage.known.schedules()
    )
    return min(tried, key=lambda done: stage.bill.cost(outcome_of_scenario(scenario, stage, done)).total_s)


def _simulated(
    scenario: Scenario,
    terms: Terms,
    stage: Staged,
    duration_s: float | None,
    on_interval: Callable[[Interval], None] | None,
    schedule: Schedule | None = None,
) -> Simulated:
    controller, scaling = _controller(scenario, terms), _scaling(scenario, terms, stage, schedule)
    actors = Actors(controller, stage.memory, scaling=scaling, idle_clock_s=terms.idle_clock_s)
    done = simulate(
        stage.settings, stage.rows, duration_s, actors, interval_s=terms.interval_s, on_interval=on_interval
    )
    return done if scenario.is_scaled else replace(done, workers=[(0.0, stage.settings.workers)])


@dataclass(frozen=True, slots=True)
class ScenarioRun:
    """The result of a scenario.

    Attributes:
        outcome: Rows, latencies, workers.
        bounds: Upper bounds of its throughput.
        staged: Its stage.
        sustained: Sustained rates, one row per number of channels; None if not measured.
        parameters: Everything that decides the result except the stream; JSON data.
    """

    mechanism: ClassVar[str] = "scenario"

    outcome: ElasticOutcome
    bounds: Bounds
    staged: Staged
    sustained: Table | None
    parameters: Mapping[str, Any]

    def summary(self) -> Table:
        """One row with all outcomes."""
        return Table.from_rows("The scenario", OUTCOME_COLUMNS, [outcome_row(self.outcome, self.bounds, self.staged)])

    def tables(self) -> dict[str, Table]:
        """The series of the stage, `rescales`, and `sustained` where measured."""
        sustained = {} if self.sustained is None else {"sustained": self.sustained}
        return {**elastic_series([self.outcome], self.bounds), **sustained}

    def as_data(self) -> dict[str, Any]:
        """The run as JSON data."""
        return run_as_data(self.mechanism, self.parameters, self.summary(), self.tables())


_PARTS = 20
_UNEVEN = "rows of the busiest worker over the mean"

OUTCOME_COLUMNS = (
    Column("scenario"),
    Column("throughput", Kind.NUMBER, "rows/s", "until the last row was processed, or the run was cut off"),
    Column("p50", Kind.SECONDS, "s", "median latency, from arrival until processed"),
    Column("p95", Kind.SECONDS, "s", "the same at the 95th percentile"),
    Column("p99", Kind.SECONDS, "s", "the same at the 99th percentile"),
    QUEUEING,
    Column("drop_rate", Kind.SHARE, "", "share of the rows shed"),
    Column("worker_time", Kind.SECONDS, "s", "time of all workers until all rows were processed"),
    Column("idle_workers", Kind.NUMBER, "", "average number of idle workers"),
    Column("imbalance_max", Kind.RATIO, "", f"{_UNEVEN}, in the worst twentieth of the time"),
    Column("moved", Kind.BYTES, "bytes", "state that changed its worker"),
    Column("paused", Kind.SECONDS, "s", "time during which at least one partition was paused"),
    Column("downtime", Kind.SECONDS, "s", "time during which restarts stopped partitions"),
    Column("restarts", Kind.COUNT, "", "changes of placement or workers; other engines restart for each"),
    Column("imbalance", Kind.RATIO, "", f"{_UNEVEN}, averaged over intervals by their rows"),
    Column("workers_mean", Kind.NUMBER, "", "average number of workers"),
    Column("workers_max", Kind.COUNT, "", "maximum number of workers"),
    Column("catch_up", Kind.SECONDS, "s", "longest time from a rescale until its backlog is gone"),
    Column("lag_max", Kind.SECONDS, "s", "longest wait of a row before a worker takes it"),
    Column("drain", Kind.SECONDS, "s", "drain time: from the last arrival until all rows are processed"),
    Column("finished", Kind.SECONDS, "s", "when the last row was processed, or the run was cut off"),
    Column("processed", Kind.COUNT, "rows"),
    Column("unprocessed", Kind.COUNT, "rows", "arrived and not processed at the end"),
    Column("moves", Kind.COUNT, "", "moves of partitions"),
    Column("spilled_max", Kind.COUNT, "rows", "most rows on disk at the same time"),
    Column("merge_tuples", Kind.COUNT, "", "merge messages of split keys; each costs as much as a row"),
    Column("messages", Kind.COUNT, "", "messages between nodes to plan drops, retries included"),
    Column("message_bytes", Kind.BYTES, "bytes", "bytes of these messages"),
    Column("load", Kind.NUMBER, "", "load of the busiest channel of the initial placement over its capacity"),
    Column("late", Kind.COUNT, "rows", "above the target latency, dropped, or left"),
    Column("cost", Kind.NUMBER, "s", "worker time, and the prices of late rows, pauses, state moved and rescales"),
    Column("cost_bound", Kind.NUMBER, "s", "of the optimum: the least cost in its model with free rescales"),
)
"""The outcomes of a scenario."""


def outcome_row(one: ElasticOutcome, bounds: Bounds, stage: Staged) -> list[str | int | float | None]:
    """The cells of `OUTCOME_COLUMNS`; latencies include those of merge messages."""
    outcome = one.outcome
    merges = stage.demand.all_rows - stage.rows_read
    processed = max(0, outcome.processed - merges)
    shed_rows = outcome.shed + stage.dropped
    in_all = processed + shed_rows + outcome.left
    rounds = sum(bool(each.moves) for each in outcome.simulated.rounds)
    throughput = processed / outcome.finished_s if outcome.finished_s else 0.0
    latencies = (outcome.total.share_below_s(share) for share in (0.5, 0.95, 0.99))
    shed = shed_rows / in_all if in_all else 0.0
    cost = one.worker_s, one.idle_s / one.ended_s, _worst_imbalance(one, stage.demand.last_s)
    moved = outcome.moved_bytes, one.paused_s, one.downtime_s, one.restarts + rounds
    workers = one.imbalance, one.mean_workers, one.most_workers, one.catch_up_s
    rows = outcome.lag_s, outcome.late_s, outcome.finished_s, processed, outcome.left
    spilled = max(each.spilled for each in outcome.simulated.intervals)
    counts = len(outcome.simulated.moves), spilled, merges, stage.sent.messages, stage.sent.size
    quality = one.case, throughput, *latencies, ORDERED if stage.is_ordered else outcome.queueing, shed
    price = stage.bill.cost(one, stage.dropped)
    priced = price.late, price.total_s, None if stage.known is None else stage.known.bound_s()
    return [*quality, *cost, *moved, *workers, *rows, *counts, bounds.static_load, *priced]


def _worst_imbalance(one: ElasticOutcome, last_s: float) -> float | None:
    """Imbalance in the worst twentieth of the input; None if all have too few rows."""
    parts: dict[int, list[tuple[Interval, Span]]] = {}
    for pair in zip(one.outcome.simulated.intervals, one.spans, strict=True):
        if pair[0].start_s < last_s:
            parts.setdefault(int(_PARTS * pair[0].start_s / last_s), []).append(pair)
    worst = []
    for pairs in parts.values():
        by_worker = np.sum([interval.by_worker for interval, _ in pairs], axis=0)
        workers = max(span.most for _, span in pairs)
        if by_worker.sum() >= FEW * workers:
            worst.append(float(by_worker.max()) * workers / float(by_worker.sum()))
    return max(worst, default=None)


def outcome_of_scenario(scenario: Scenario, stage: Staged, done: Simulated) -> ElasticOutcome:
    """The outcome of a simulated scenario."""
    return elastic_outcome_of(outcome_of(scenario.name, done, stage.bounds))


def check_scenario(scenario: Scenario, terms: Terms) -> None:
    """Check a scenario before its rows are read.

    Raises:
        UsageError: the pool is smaller than M, or a setting is out of range; the message names the scenario.
    """
    try:
        check_pool(terms.least_of(scenario), terms.workers_of(scenario))
        check_workers(terms.workers_of(scenario))
        MiniPartitions(terms.workers_of(scenario), terms.per_worker, terms.hash)
        if scenario.ordered is not None:
            RunSettings(terms.channels)
        if scenario.flux is FluxPolicy.OPTIMUM:
            raise UsageError(
                'a comparison has no flux = "optimum"; use elastic = "optimum", or `adapt replay flux --policy optimum`'
            )
        if scenario.elastic is not None:
            policy_of(scenario.elastic, _chosen(scenario, terms))
        if isinstance(scenario.flux, OwnCode):
            controller_of(scenario.flux)
        _patience(scenario, terms)
        _rebuild(scenario, terms)
    except UsageError as error:
        raise UsageError(f"scenario {scenario.name!r}: {error}") from None


def _placed(scenario: Scenario, terms: Terms, stream: Stream) -> tuple[MiniPartitions, SplitKeys | None]:
    """The initial placement of keys, and how they are split."""
    workers = terms.workers_of(scenario)
    if scenario.split is not None:
        has_head = scenario.split in (Splitting.D_CHOICES, Splitting.W_CHOICES)
        hot = _hot(stream.counted(), workers) if has_head else pa.array([], pa.string())
        return MiniPartitions(workers, terms.per_worker, terms.hash), SplitKeys(scenario.split, hot, terms.period_s)
    if scenario.plan is Static.UNIFORM or scenario.is_scaled:
        return MiniPartitions(workers, terms.per_worker, terms.hash), None
    if isinstance(scenario.plan, OwnCode):
        recipe = Recipe(hash=terms.hash, own=scenario.plan)
    else:
        recipe = Recipe(Scheme(scenario.plan.value), hash=terms.hash)
    return MiniPartitions(
        workers, terms.per_worker, terms.hash, build_partitioner(stream.counted(), recipe, workers)
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


def _memory(scenario: Scenario, settings: StageSettings) -> Memory | None:
    """Memory of each worker, at least that of the largest partition."""
    if scenario.memory is None:
        return None
    sizes = settings.state_sizes() * settings.costs.tuple_bytes
    return Memory(max(scenario.memory * float(sizes.sum()) / settings.workers, float(sizes.max()), 1.0))


def _controller(scenario: Scenario, terms: Terms) -> Controller | None:
    policy = scenario.flux or FluxPolicy.NONE
    return controller_of(policy, min(MIN_COLLECTION_S, terms.period_s), season=Season(DAY_S / terms.speedup))


def _scaling(scenario: Scenario, terms: Terms, stage: Staged, schedule: Schedule | None) -> Scaling | None:
    if not scenario.is_scaled:
        return None
    partitions, rebuild = stage.settings.partitions, _rebuild(scenario, terms)
    migration = _migration(scenario, terms)
    taken = moves_of_stage(stage.settings, migration, 0.0)
    chosen = replace(_chosen(scenario, terms), partitions=partitions, taken=taken, schedule=schedule)
    policy, patience = timed_policy(scenario.elastic or ScalingPolicy.FIXED, chosen, _patience(scenario, terms))
    least, pool = terms.least_of(scenario), terms.workers_of(scenario)
    controller = ElasticController(policy, least, pool, patience, rebuild, partitions, scenario.alignment)
    placement = _placement(terms, stage.settings, stage.demand)
    return Scaling(controller, placement, terms.period_s, migration)


def _migration(scenario: Scenario, terms: Terms) -> Migration:
    """How partitions migrate: as the scenario says, else as all do."""
    how = terms.migration.how if scenario.migrating is None else scenario.migrating
    restart = terms.migration.restart if scenario.restart is None else RESTARTS[scenario.restart]
    return replace(terms.migration, how=how, restart=restart)


def _placement(terms: Terms, settings: StageSettings, demand: Demand) -> PlannedPlacement:
    recipe = Recipe(Scheme.HYBRID, hash=terms.hash)
    return PlannedPlacement(recipe, settings.partitions, Counting(terms.window_s), demand.cost_s is not None)


def _chosen(scenario: Scenario, terms: Terms) -> Chosen:
    return Chosen(
        scenario.thresholds or terms.thresholds,
        scenario.signal,
        terms.overload.capacity_tuples if scenario.sheds else None,
        scenario.utilization,
        terms.lag_rows if scenario.lag_rows is None else scenario.lag_rows,
        scenario.scale_on,
        terms.workers_of(scenario),
        prices=terms.prices,
        bounds=(terms.least_of(scenario), terms.workers_of(scenario)),
    )


def _patience(scenario: Scenario, terms: Terms) -> Patience:
    return Patience(
        terms.scale_out_delay_s if scenario.scale_out_delay_s is None else scenario.scale_out_delay_s,
        terms.cooldown_s if scenario.cooldown_s is None else scenario.cooldown_s,
    )


def _rebuild(scenario: Scenario, terms: Terms) -> Rebuild:
    if not scenario.rebuilds:
        return Rebuild()
    by_the_clock = scenario.rebuild_limit is None
    every_s = terms.rebuild_s if scenario.rebuild_s is None and by_the_clock else scenario.rebuild_s
    return Rebuild(every_s, scenario.rebuild_limit, terms.scale_out_delay_s)
