"""Simulation of a stage from start to end."""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field

from adapt.core.errors import UsageError
from adapt.core.stage.assembly import Actors, Assembly, assemble
from adapt.core.stage.conditions.arrivals import Drawn, Source
from adapt.core.stage.conditions.names import QueueingName
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.control.elasticity import Step
from adapt.core.stage.control.recovery import CrashReport, crash_table, full_rate_s
from adapt.core.stage.control.shed_log import Watched
from adapt.core.stage.engine.census import Census
from adapt.core.stage.engine.series import Interval, Series, interval_table, worker_table
from adapt.core.stage.movement.controller import Round
from adapt.core.stage.movement.course import STEPS, Moved
from adapt.core.stage.movement.splitting import SplitReport
from adapt.core.stage.records.arrays import Records
from adapt.core.table import Column, Kind, Table

CRASH_COLUMNS = (
    Column("lost_state", Kind.BYTES, "bytes", "of partitions restarted empty after a crash"),
    Column("lost_groups", Kind.COUNT, "groups", "that lost tuples or state; their answers are wrong for a window"),
    Column("takeover", Kind.SECONDS, "s", "longest time from a crash until its partitions had owners again"),
    Column("full_rate", Kind.SECONDS, "s", "longest time from a crash to the full rate; missing if never reached"),
    Column("mirrored", Kind.COUNT, "tuples", "processed twice for standby"),
    Column("standby", Kind.BYTES, "bytes", "sent for standby: tuples and state copies to replicas"),
)
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

    @property
    def throughput(self) -> float:
        """Mean tuples per second."""
        return sum(one.processed for one in self.intervals) / self.intervals[-1].end_s

    def summary(self) -> Table:
        """Totals, as one row."""
        columns = [
            Column("seconds", Kind.SECONDS, "s"),
            Column("generated", Kind.COUNT, "tuples"),
            Column("processed", Kind.COUNT, "tuples"),
            Column("throughput", Kind.NUMBER, "tuples/s"),
            Column("moves", Kind.COUNT),
            Column("moved", Kind.BYTES, "bytes"),
            Column("finished", Kind.SECONDS, "s", "time of the last processed tuple"),
            Column("lost", Kind.COUNT, "tuples", "lost in crashes"),
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
    series = Series(stage)
    while True:
        end_s = (len(series.intervals) + 1) * interval_s
        stage.run(end_s if duration_s is None else min(end_s, duration_s))
        taken = series.take()
        if on_interval is not None:
            on_interval(taken)
        if stage.drained or (duration_s is not None and stage.now_s >= duration_s):
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
