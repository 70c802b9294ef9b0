"""A stage simulated from start to end."""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, field

from adapt.core.errors import UsageError
from adapt.core.stage.assembly import Actors, assemble
from adapt.core.stage.conditions.arrivals import Drawn, Source
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.control.elasticity import Step
from adapt.core.stage.control.recovery import CrashReport, crash_table, full_rate_s
from adapt.core.stage.control.shed_log import Watched
from adapt.core.stage.engine.census import Census
from adapt.core.stage.engine.series import Interval, Series, interval_table, worker_table
from adapt.core.stage.movement.controller import Round
from adapt.core.stage.movement.course import STEPS, Moved
from adapt.core.stage.records.arrays import Records
from adapt.core.table import Column, Kind, Table

CRASH_COLUMNS = (
    Column("lost_state", Kind.BYTES, "bytes", "of partitions that began anew after a crash"),
    Column("lost_groups", Kind.COUNT, "groups", "that lost tuples or state, with wrong answers for a window"),
    Column("takeover", Kind.SECONDS, "s", "the longest from a crash until its partitions had owners again"),
    Column("full_rate", Kind.SECONDS, "s", "the longest from a crash to the full rate; missing if one never was"),
    Column("mirrored", Kind.COUNT, "tuples", "processed twice, for standby"),
    Column("standby", Kind.BYTES, "bytes", "sent for standby: tuples to twins, and copies of state"),
)
"""Of workers that die, and of being ready for it."""


@dataclass(frozen=True, slots=True, eq=False)
class Simulated:
    """What a simulated stage did.

    Attributes:
        intervals: In order, without a gap.
        moves: In the order in which they were decided.
        rounds: Those that are over.
        census: Where all tuples are at the end.
        finished_s: When a tuple was last processed.
        journal: The first tuples that were processed, where this was asked for.
        crashes: What each crash took, in the order of their times.
        mirrored: Tuples that were sent to twins, and so are processed twice.
        standby_bytes: What standby has sent: these, and states that were copied.
        disagreed: Answers of twins that differ from the owners'; 0.
        steps: Scale steps, in order.
        workers: From when on there were how many workers, where they are scaled.
        watched: What shed when, likewise.
        answers: Matches of all tuples that were processed; None where nothing is joined.
        pairs: A digest of which they are, whatever the order.
    """

    intervals: list[Interval]
    moves: list[Moved]
    rounds: list[Round]
    census: Census
    finished_s: float
    journal: Records
    crashes: list[CrashReport] = field(default_factory=list)
    mirrored: int = 0
    standby_bytes: int = 0
    disagreed: int = 0
    steps: list[Step] = field(default_factory=list)
    workers: list[tuple[float, int]] = field(default_factory=list)
    watched: Watched | None = None
    answers: int | None = None
    pairs: int = 0

    @property
    def throughput(self) -> float:
        """Tuples a second over all."""
        return sum(one.processed for one in self.intervals) / self.intervals[-1].end_s

    def summary(self) -> Table:
        """The whole in one row."""
        columns = [
            Column("seconds", Kind.SECONDS, "s"),
            Column("generated", Kind.COUNT, "tuples"),
            Column("processed", Kind.COUNT, "tuples"),
            Column("throughput", Kind.NUMBER, "tuples/s"),
            Column("moves", Kind.COUNT),
            Column("moved", Kind.BYTES, "bytes"),
            Column("finished", Kind.SECONDS, "s", "when a tuple was last processed"),
            Column("lost", Kind.COUNT, "tuples", "that died with a worker"),
            *CRASH_COLUMNS,
        ]
        moved = sum(one.state_bytes for one in self.moves if STEPS[-1] in one.times_s)
        census = self.census
        whole = (self.intervals[-1].end_s, census.generated, census.processed, self.throughput, len(self.moves), moved)
        return Table.from_rows("Stage", columns, [(*whole, self.finished_s, census.lost, *self.of_crashes())])

    def of_crashes(self) -> tuple[int | float | None, ...]:
        """What crashes took, how long they were felt, and what it costs to be ready for them: `CRASH_COLUMNS`."""
        return (
            sum(one.lost_state_bytes for one in self.crashes),
            len(set().union(*(one.hit for one in self.crashes))),
            _longest([one.takeover_s for one in self.crashes]),
            _longest([one.full_rate_s for one in self.crashes]),
            self.mirrored,
            self.standby_bytes,
        )

    def tables(self) -> dict[str, Table]:
        """Its series, by name."""
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
    told: Callable[[Interval], None] | None = None,
) -> Simulated:
    """Run a stage. The same arguments always give the same result.

    Args:
        settings: What it is made of.
        source: Where tuples come from.
        duration_s: Until then at most. A stream may end before, when all its tuples are processed.
        actors: What acts on it; nothing if not given.
        interval_s: How often to take down what the stage does.
        journal: How many of the first tuples that are processed to write down.
        told: Given every interval when it is over.

    Raises:
        UsageError: an argument is out of its range; a drawn source has no duration; River has nothing to move or to
            protect; memory is limited with standby; something else acts on a stage that is scaled.
        BadInput: a disturbance, a fault, the shares of groups or a row of the stream cannot be.
    """
    if not interval_s > 0 or (duration_s is not None and not duration_s > 0):
        raise UsageError(f"a run of {duration_s} s in intervals of {interval_s:g} s is none; give times above 0")
    if duration_s is None and isinstance(source, Drawn):
        raise UsageError("drawn tuples have no end; give a duration")
    of = assemble(settings, source, actors, journal=journal)
    stage = of.stage
    series = Series(stage)
    while True:
        end_s = (len(series.intervals) + 1) * interval_s
        stage.run(end_s if duration_s is None else min(end_s, duration_s))
        taken = series.take()
        if told is not None:
            told(taken)
        if stage.drained or (duration_s is not None and stage.now_s >= duration_s):
            break
    reports = of.recovery.reports if of.recovery else []
    for report in reports:
        report.full_rate_s = full_rate_s(series.intervals, settings.workers, report)
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
    )


def _longest(times_s: Sequence[float | None]) -> float | None:
    """None if there is none, or one is missing."""
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
    note = "A time that is missing was still to come, or never came since a worker died."
    return Table.from_rows("Moves", columns, rows, note=note)
