"""Simulation of a stage from start to end."""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field, replace

from adapt.core.errors import UsageError
from adapt.core.metrics import columns_named
from adapt.core.stage.conditions.arrivals import Drawn, Rows, Source
from adapt.core.stage.conditions.faults import FaultSchedule
from adapt.core.stage.conditions.names import QueueingName, Router
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.control.elasticity import Elasticity, Step, Watched
from adapt.core.stage.control.recovery import CrashReport, Recovery, crash_table, full_rate_s
from adapt.core.stage.control.rounds import OneStage, Rounds
from adapt.core.stage.control.workers import Scaling
from adapt.core.stage.engine.queues import Census
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.engine.series import Interval, Series, interval_table, worker_table
from adapt.core.stage.movement.controller import STEPS, Controller, Moved, Round
from adapt.core.stage.movement.protocol import Movement
from adapt.core.stage.movement.spilling import Memory, Outgrown, Spilling
from adapt.core.stage.movement.splitting import HotSplit, SplitReport, Splitting
from adapt.core.stage.movement.standby import Standby
from adapt.core.stage.records.arrays import Records
from adapt.core.table import Column, Kind, Table
from adapt.core.values import duration

MOST_SAMPLES = 50_000
"""Most samples of a replay, unless it has more rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Actors:
    """Controllers, faults and limits of a stage."""

    controller: Controller | None = None  # rebalancing controller; None, static
    memory: Memory | None = None  # memory limit, beyond which state spills to disk; None, unlimited
    # loads, slowdowns, pauses and crashes, in addition to the disturbances of the settings
    faults: FaultSchedule | None = None
    scaling: Scaling | None = None  # scales out and in, with all workers as the pool; None, all workers are active
    standby: bool = False  # partitions with a standby replica on another worker
    idle_clock_s: float = 0.0  # resolution at which consumers measure idle time, rounded up; 0, exact
    hot: HotSplit | None = None  # when partitions are split; None, never


@dataclass(frozen=True, slots=True, eq=False)
class Assembly:
    """A stage ready to run, with the actors that were requested."""

    stage: Stage  # the running stage
    movement: Movement  # executes moves
    rounds: Rounds | None  # runs the rebalancing controller
    spilling: Spilling | None  # enforces the memory limit
    standby: Standby | None  # maintains standby replicas
    recovery: Recovery | None  # executes crashes and restarts
    elasticity: Elasticity | None = None  # scales out and in
    splitting: Splitting | None = None


def assemble(
    settings: StageSettings,
    source: Source,
    actors: Actors | None = None,
    *,
    journal: int = 0,
) -> Assembly:
    """Assemble a stage; arguments as in `simulate`."""
    actors = actors or Actors()
    controller, memory, scaling, standby = actors.controller, actors.memory, actors.scaling, actors.standby
    faults = actors.faults or FaultSchedule()
    faults.check(settings.workers, settings.disturbances)
    if settings.router is Router.RIVER and (controller is not None or memory is not None):
        raise UsageError("router river sends a tuple to any worker, so partitions cannot move or spill; use flux")
    if settings.router is Router.RIVER and (faults.crashes or standby):
        raise UsageError("router river sends a tuple to any worker, so crashes and standby do not apply; use flux")
    engine = settings.queueing.engine
    if engine is not QueueingName.FLUX:
        if isinstance(source, Drawn):
            raise UsageError(f"queueing {engine} needs the rows of a trace; use flux")
        settings.queueing.check(standby, faults.crashes, actors.hot)
    if settings.growth is not None and settings.growth.is_ranked and not isinstance(source, Rows):
        raise UsageError("a join, or a window of state, needs rows with event times; a random source has none")
    if settings.overload is not None and isinstance(source, Drawn):
        raise UsageError(
            "load shedding needs rows with arrival times; a random source offers a tuple for each one shed"
        )
    if scaling is not None:
        if controller is not None or memory is not None or faults.crashes or standby:
            raise UsageError("elastic workers exclude rebalancing policies, memory limits, crashes and standby")
        if not isinstance(source, Rows) or settings.router is Router.RIVER:
            raise UsageError("elastic workers need rows routed by content; use a trace and router flux or exchange")
        if scaling.scaler.pool != settings.workers:
            raise UsageError(
                f"the pool must equal the {settings.workers} workers of the stage (got {scaling.scaler.pool})"
            )
        settings = replace(settings, owners=scaling.placement.place(scaling.scaler.least).owners)
    settings = replace(settings, disturbances=(*settings.disturbances, *faults.disturbances))
    if actors.hot is not None:
        if memory is not None or faults.crashes or standby or scaling is not None:
            raise UsageError("splitting hot partitions excludes memory limits, crashes, standby and elastic workers")
        actors.hot.check(settings)
        settings = actors.hot.with_parts(settings)
    stage = Stage(settings, source, journal, bool(standby))
    spilling = Spilling(stage, memory) if memory is not None else None
    movement = Movement(stage, spilling)
    twins = Standby(stage, movement, spilling) if standby else None
    recovery = Recovery(stage, movement, faults, spilling, twins) if faults.crashes or standby else None
    living = recovery.living if recovery else None
    rounds = None
    if controller is not None:
        available = spilling.available if spilling else None
        rounds = Rounds(OneStage(stage, movement), controller, actors.idle_clock_s, available, living)
    if recovery is not None:
        recovery.rounds = rounds
    elasticity = None if scaling is None else Elasticity(stage, movement, scaling)
    splitting = None if actors.hot is None else Splitting(stage, movement, actors.hot)
    return Assembly(stage, movement, rounds, spilling, twins, recovery, elasticity, splitting)


CRASH_COLUMNS = (*columns_named("lost_state lost_groups takeover full_rate mirrored standby"),)
"""Columns on crashes and the cost of standby replicas."""


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """Result of a simulated stage."""

    intervals: list[Interval]  # samples in time order, without gaps
    moves: list[Moved]  # moves in the order of their decisions
    rounds: list[Round]  # finished rounds of the controller
    census: Census  # where all tuples are at the end
    finished_s: float  # time of the last processed tuple
    journal: Records  # the first processed tuples, if requested
    crashes: list[CrashReport] = field(default_factory=list)  # reports of the crashes, by time
    mirrored: int = 0  # tuples sent to replicas, and so processed twice
    standby_bytes: int = 0  # bytes sent for standby: mirrored tuples and copied state
    disagreed: int = 0  # answers of replicas that differ from the owners'; 0
    steps: list[Step] = field(default_factory=list)  # rescales, in order
    # times and numbers of workers, if the stage is scaled
    workers: list[tuple[float, int]] = field(default_factory=list)
    watched: Watched | None = None  # what was shed when, likewise
    answers: int | None = None  # matches of the processed tuples; None without a join
    pairs: int = 0  # order-independent digest of the matches
    splits: SplitReport | None = None  # what splitting of hot partitions did; None without it
    totals: Records | None = None  # count, sum, minimum and maximum of each group, likewise; shape (groups,)
    queueing: QueueingName = QueueingName.FLUX  # whose queues it had
    batches: list[tuple[float, float, int]] = field(default_factory=list)  # start, end and rows of each micro-batch
    checkpoints: list[tuple[float, float]] = field(default_factory=list)  # start and end of each checkpoint
    failed: str | None = None  # why the run could not go on; None if it could

    @property
    def throughput(self) -> float:
        """Mean tuples per second."""
        return sum(one.processed for one in self.intervals) / self.intervals[-1].end_s

    def summary(self) -> Table:
        """Totals, as one row."""
        columns = [
            Column("seconds", Kind.SECONDS, "s"),
            Column("generated", Kind.COUNT, "tuples"),
            *columns_named("processed throughput moves state_moved_bytes finished lost"),
            *CRASH_COLUMNS,
        ]
        moved = sum(one.state_bytes for one in self.moves if STEPS[-1] in one.times_s)
        census = self.census
        whole = (self.intervals[-1].end_s, census.generated, census.processed, self.throughput, len(self.moves), moved)
        return Table.from_rows("Stage", columns, [(*whole, self.finished_s, census.lost, *self.of_crashes())])

    def of_crashes(self) -> tuple[int | float | None, ...]:
        """Values of `CRASH_COLUMNS`."""
        return (
            sum(one.lost_state_bytes for one in self.crashes),
            len(set().union(*(one.hit for one in self.crashes))),
            _longest([one.takeover_s for one in self.crashes]),
            _longest([one.full_rate_s for one in self.crashes]),
            self.mirrored,
            self.standby_bytes,
        )

    def tables(self) -> dict[str, Table]:
        """Time series, by name."""
        return {
            "intervals": interval_table(self.intervals),
            "workers": worker_table(self.intervals),
            "moves": _move_table(self.moves),
            "crashes": crash_table(self.crashes),
        }


def simulate(
    settings: StageSettings,
    source: Source,
    duration_s: float | None = None,
    actors: Actors | None = None,
    *,
    interval_s: float = 1.0,
    journal: int = 0,
    on_interval: Callable[[Interval], None] | None = None,
) -> Simulated:
    """Simulate a stage, deterministically.

    Args:
        settings: The stage.
        source: Source of tuples.
        duration_s: Upper limit of the simulated time; None, until all rows are processed.
        actors: Controllers, faults and limits, if any.
        interval_s: Sampling interval.
        journal: Number of processed tuples to record.
        on_interval: Called with every finished interval.
    """
    if not interval_s > 0 or (duration_s is not None and not duration_s > 0):
        raise UsageError(f"duration and interval must be above 0 s (got {duration_s} and {interval_s:g})")
    if duration_s is None and isinstance(source, Drawn):
        raise UsageError("a random source is unbounded; give a duration")
    return run(assemble(settings, source, actors, journal=journal), duration_s, interval_s, on_interval)


def run(
    of: Assembly, duration_s: float | None, interval_s: float, on_interval: Callable[[Interval], None] | None = None
) -> Simulated:
    """Run an assembled stage; arguments as in `simulate`."""
    stage = of.stage
    series, rows, failed = Series(stage), 0, None
    while True:
        end_s = (len(series.intervals) + 1) * interval_s
        try:
            stage.run(end_s if duration_s is None else min(end_s, duration_s))
        except Outgrown as fault:
            failed = str(fault)
            if series.intervals and stage.now_s <= series.intervals[-1].end_s:
                break
        taken = series.take()
        if on_interval is not None:
            on_interval(taken)
        rows += taken.generated
        if len(series.intervals) > max(MOST_SAMPLES, rows):
            raise UsageError(
                f"the replay of {rows:,} rows has not ended after {len(series.intervals):,} samples, one each"
                f" {duration(interval_s)}; give a longer --interval or --period, or set --duration"
            )
        if failed or stage.drained or (duration_s is not None and stage.now_s >= duration_s):
            break
    reports = of.recovery.reports if of.recovery else []
    for report in reports:
        report.full_rate_s = full_rate_s(series.intervals, stage.settings.workers, report)
    return Simulated(
        intervals=series.intervals,
        moves=of.movement.log,
        rounds=of.rounds.rounds if of.rounds else [],
        census=stage.census(),
        finished_s=float(stage.arrays.world["last"]),
        journal=stage.arrays["entry"][: int(stage.arrays.world["journalled"])],
        crashes=reports,
        mirrored=of.standby.mirrored if of.standby else 0,
        standby_bytes=of.standby.sent_bytes if of.standby else 0,
        disagreed=int(stage.arrays.world["disagreed"]),
        steps=of.elasticity.steps if of.elasticity else [],
        workers=of.elasticity.sizes if of.elasticity else [],
        watched=of.elasticity.watched() if of.elasticity else None,
        answers=stage.answers,
        pairs=int(stage.arrays.world["pairs"]),
        splits=of.splitting.report if of.splitting else None,
        totals=of.splitting.totals() if of.splitting else None,
        queueing=stage.settings.queueing.engine,
        batches=stage.queues.batches,
        checkpoints=stage.queues.checkpoints,
        failed=failed,
    )


def _longest(times_s: Sequence[float | None]) -> float | None:
    """The maximum; None if the list is empty or a time is missing."""
    known = [one for one in times_s if one is not None]
    return max(known) if known and len(known) == len(times_s) else None


def _move_table(moves: Sequence[Moved]) -> Table:
    columns = [
        Column("partition", Kind.COUNT),
        Column("donor", Kind.COUNT, "", "worker"),
        Column("receiver", Kind.COUNT, "", "worker"),
        Column("state", Kind.BYTES, "bytes"),
        *(Column(step, Kind.SECONDS, "s") for step in STEPS),
    ]
    rows = [(*astuple(one.move), one.state_bytes, *(one.times_s.get(step) for step in STEPS)) for one in moves]
    note = "A missing time: the step was not reached, or a crash prevented it."
    return Table.from_rows("Moves", columns, rows, note=note)
