"""A stage simulated from start to end."""

from collections.abc import Sequence
from dataclasses import dataclass

from adapt.core.errors import UsageError
from adapt.core.stage.arrays import Records
from adapt.core.stage.arrivals import Source
from adapt.core.stage.memory import Memory, Spilling
from adapt.core.stage.movement import STEPS, Moved, Movement
from adapt.core.stage.moves import Controller, Round
from adapt.core.stage.names import Router
from adapt.core.stage.rounds import Rounds
from adapt.core.stage.series import Interval, Series, interval_table, site_table
from adapt.core.stage.settings import StageSettings
from adapt.core.stage.stage import Census, Stage
from adapt.core.table import Column, Kind, Table


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
    """

    intervals: list[Interval]
    moves: list[Moved]
    rounds: list[Round]
    census: Census
    finished_s: float
    journal: Records

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
        ]
        moved = sum(one.state_bytes for one in self.moves if STEPS[-1] in one.times_s)
        census = self.census
        row = (self.intervals[-1].end_s, census.generated, census.processed, self.throughput, len(self.moves), moved)
        return Table.of("Stage", columns, [(*row, self.finished_s)])

    def tables(self) -> dict[str, Table]:
        """Its series, by name."""
        return {
            "intervals": interval_table(self.intervals),
            "sites": site_table(self.intervals),
            "moves": _move_table(self.moves),
        }


def simulate(
    settings: StageSettings,
    source: Source,
    duration_s: float | None = None,
    controller: Controller | None = None,
    memory: Memory | None = None,
    *,
    interval_s: float = 1.0,
    idle_clock_s: float = 0.0,
    journal: int = 0,
) -> Simulated:
    """Run a stage. The same arguments always give the same result.

    Args:
        settings: What it is made of.
        source: Where tuples come from.
        duration_s: Until then; if not given, until a stream has ended and all its tuples are processed.
        controller: Moves partitions; none do if not given.
        memory: Limits it, and what does not fit goes to disk; without limit if not given.
        interval_s: How often to take down what the stage does.
        idle_clock_s: Consumers can tell how long they have waited in whole multiples of this, rounded up; 0, exactly.
        journal: How many of the first tuples that are processed to write down.

    Raises:
        UsageError: an argument is out of its range; a drawn source has no duration; River has nothing to move.
        BadInput: a disturbance, the shares of groups or a row of the stream cannot be.
    """
    if not interval_s > 0 or (duration_s is not None and not duration_s > 0):
        raise UsageError(f"a run of {duration_s} s in intervals of {interval_s:g} s is none; give times above 0")
    stage = Stage(settings, source, journal)
    if duration_s is None and stage.feed is None:
        raise UsageError("drawn tuples have no end; give a duration")
    if settings.router is Router.RIVER and (controller is not None or memory is not None):
        raise UsageError(
            "River sends a tuple to any site, so no partition is anywhere to be moved or spilled; use Flux"
        )
    spilling = Spilling(stage, memory) if memory is not None else None
    movement = Movement(stage, spilling)
    rounds = Rounds(stage, movement, controller, idle_clock_s, spilling) if controller is not None else None
    series = Series(stage)
    while True:
        end_s = (len(series.intervals) + 1) * interval_s
        stage.run(end_s if duration_s is None else min(end_s, duration_s))
        series.take()
        if stage.drained if duration_s is None else stage.now_s >= duration_s:
            break
    return Simulated(
        intervals=series.intervals,
        moves=movement.log,
        rounds=rounds.rounds if rounds else [],
        census=stage.census(),
        finished_s=float(stage.arrays.world["last"]),
        journal=stage.arrays["entry"][: int(stage.arrays.world["journalled"])],
    )


def _move_table(moves: Sequence[Moved]) -> Table:
    columns = [
        Column("partition", Kind.COUNT),
        Column("donor", Kind.COUNT, "", "site"),
        Column("receiver", Kind.COUNT, "", "site"),
        Column("state", Kind.BYTES, "bytes"),
        *(Column(step, Kind.SECONDS, "s") for step in STEPS),
    ]
    rows = [
        (
            one.move.partition,
            one.move.donor,
            one.move.receiver,
            one.state_bytes,
            *(one.times_s.get(step) for step in STEPS),
        )
        for one in moves
    ]
    return Table.of("Moves", columns, rows, note="A time that is missing was still to come at the end of the run.")
