"""What a replay through a stage measured, as tables: its cases, their series, and the whole with its verdict."""

from collections.abc import Sequence

from adapt.core.flux.replay.sentences import verdict_of
from adapt.core.stage.case_tables import CASE
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.offered_load import Bounds
from adapt.core.stage.outcome import Outcome
from adapt.core.stage.simulate import CRASH_COLUMNS
from adapt.core.table import Column, Kind, Table

CASE_COLUMNS = (
    CASE,
    Column("throughput", Kind.NUMBER, "rows/s", "until it was through with the rows, or cut off"),
    Column("of_capacity", Kind.SHARE, about="of what all workers together could have done with the same rows"),
    Column("finished", Kind.SECONDS, "s", "when the last row was processed, or it was cut off"),
    Column("latency_p50", Kind.SECONDS, "s", "from when a row is due until it is processed"),
    Column("latency_p99", Kind.SECONDS, "s", "from when a row is due until it is processed"),
    Column("operator_p50", Kind.SECONDS, "s", "from when a consumer takes a row until it is processed"),
    Column("operator_p99", Kind.SECONDS, "s", "from when a consumer takes a row until it is processed"),
    Column("moves", Kind.COUNT),
    Column("moved", Kind.BYTES, "bytes", "state that went to another worker"),
    Column("behind", Kind.SECONDS, "s", "time at less than 85 % of what the workers could do, while input waited"),
    Column("recovered", Kind.SECONDS, "s", "from when it fell behind until it no longer was; missing if it never did"),
    Column("lag_max", Kind.SECONDS, "s", "the longest that a row waited to be taken"),
    Column("late", Kind.SECONDS, "s", "from when the last row was due until all were processed"),
    Column("processed", Kind.COUNT, "rows"),
    Column("left", Kind.COUNT, "rows", "due and not processed at the end"),
    Column("lost", Kind.COUNT, "rows", "that died with a worker"),
    Column("shed", Kind.COUNT, "rows", "that workers dropped as they filled up"),
    Column("on_disk_max", Kind.COUNT, "partitions", "on disk at the same time"),
    Column("spilled_max", Kind.COUNT, "rows", "on disk at the same time"),
)

SUMMARY_COLUMNS = (
    Column("verdict"),
    Column("best", about="the policy that comes closest to what the workers can do"),
    Column("rows", Kind.COUNT, about="of the trace, or of its part that was replayed"),
    Column("workers", Kind.COUNT),
    Column("partitions", Kind.COUNT),
    Column("capacity", Kind.NUMBER, "rows/s", "of all workers while nothing disturbs them"),
    Column("busiest_worker", Kind.SHARE, about="of all work, at the start"),
    Column("heaviest_partition", Kind.SHARE, about="of all work"),
    Column("static_full_at", Kind.NUMBER, about="speed-up at which the busiest worker has all the work it can do"),
    Column("best_full_at", Kind.NUMBER, about="the same, of the best placement of whole partitions"),
)

ROUND_COLUMNS = (
    CASE,
    Column("round", Kind.COUNT, about="from 0; those without moves are left out"),
    Column("collection", Kind.SECONDS, "s", "how long statistics were collected"),
    Column("moves", Kind.COUNT),
    Column("moving", Kind.SECONDS, "s", "how long the moves took"),
)


def cases_table(outcomes: Sequence[Outcome]) -> Table:
    """One row a case; with what crashes took, and what standby costs, where there are any."""
    if any(one.simulated.crashes or one.simulated.mirrored for one in outcomes):
        rows = [(*_case(one), *one.simulated.of_crashes()) for one in outcomes]
        return Table.from_rows("Cases", (*CASE_COLUMNS, *CRASH_COLUMNS), rows)
    return Table.from_rows("Cases", CASE_COLUMNS, [_case(one) for one in outcomes])


def _case(one: Outcome) -> list[str | int | float | None]:
    speed = one.case, one.throughput, one.of_capacity, one.finished_s
    latencies = (latency.share_below_s(share) for latency in (one.total, one.operator) for share in (0.5, 0.99))
    moved = len(one.simulated.moves), one.moved_bytes
    waited = one.behind_s, one.recovered_s, one.lag_s, one.late_s
    on_disk = (
        max(part.on_disk for part in one.simulated.intervals),
        max(part.spilled for part in one.simulated.intervals),
    )
    return [*speed, *latencies, *moved, *waited, one.processed, one.left, one.lost, one.shed, *on_disk]


def summary_table(outcomes: Sequence[Outcome], bounds: Bounds, settings: StageSettings, speedup: float | None) -> Table:
    """All cases in one row, with the verdict."""
    found = verdict_of(outcomes, bounds, speedup)
    capacity = settings.workers / bounds.row_s if bounds.row_s else None
    stage = bounds.rows, settings.workers, settings.partitions, capacity, bounds.busiest_share, bounds.heaviest_share
    row = (found.sentence, found.best, *stage, found.static_full_at, found.best_full_at)
    return Table.from_rows("The run", SUMMARY_COLUMNS, [row])


def rounds_table(outcomes: Sequence[Outcome]) -> Table:
    """One row for each round of a controller in which something moved."""
    rows = [
        (outcome.case, number, one.collection_s, len(one.moves), one.moving_s)
        for outcome in outcomes
        for number, one in enumerate(outcome.simulated.rounds)
        if one.moves
    ]
    return Table.from_rows("Rounds", ROUND_COLUMNS, rows)
