"""Tables of a Flux replay: cases, rounds and summary."""

from collections.abc import Sequence

from adapt.core.flux.replay.sentences import verdict_of
from adapt.core.stage.case_tables import CASE
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.offered_load import Bounds
from adapt.core.stage.input.own_rate import OWN_COLUMNS, own_cells
from adapt.core.stage.outcome import QUEUEING, Outcome
from adapt.core.stage.simulate import CRASH_COLUMNS
from adapt.core.table import Column, Kind, Table

CASE_COLUMNS = (
    CASE,
    Column("throughput", Kind.NUMBER, "rows/s", "until all rows were processed, or the cut-off"),
    Column("capacity_share", Kind.SHARE, about="throughput over the capacity of all workers for the same rows"),
    Column("finished", Kind.SECONDS, "s", "time of the last processed row, or of the cut-off"),
    Column("latency_mean", Kind.SECONDS, "s", "from the arrival of a row until it is processed"),
    Column("latency_p50", Kind.SECONDS, "s", "from the arrival of a row until it is processed"),
    Column("latency_p99", Kind.SECONDS, "s", "from the arrival of a row until it is processed"),
    QUEUEING,
    Column("operator_mean", Kind.SECONDS, "s", "from when a consumer takes a row until it is processed"),
    Column("operator_p50", Kind.SECONDS, "s", "from when a consumer takes a row until it is processed"),
    Column("operator_p99", Kind.SECONDS, "s", "from when a consumer takes a row until it is processed"),
    Column("moves", Kind.COUNT),
    Column("moved", Kind.BYTES, "bytes", "state migrated"),
    Column("degraded", Kind.SECONDS, "s", "time below 85 % of capacity while input waited"),
    Column("recovery", Kind.SECONDS, "s", "from falling behind until caught up; missing if it never caught up"),
    Column("lag_max", Kind.SECONDS, "s", "longest wait of a row at the source"),
    Column("drain", Kind.SECONDS, "s", "drain time: from the last arrival until all rows were processed"),
    Column("processed", Kind.COUNT, "rows"),
    Column("unprocessed", Kind.COUNT, "rows", "arrived and not processed at the end"),
    Column("lost", Kind.COUNT, "rows", "lost in crashes"),
    Column("shed", Kind.COUNT, "rows", "dropped by load shedding"),
    Column("on_disk_max", Kind.COUNT, "partitions", "largest number on disk at once"),
    Column("spilled_max", Kind.COUNT, "rows", "largest number on disk at once"),
    Column("state_max", Kind.BYTES, "bytes", "largest state of a worker in memory"),
)

SPLIT_COLUMNS = (
    Column("parts_added", Kind.COUNT, about="to partitions that are split"),
    Column("parts_max", Kind.COUNT, about="most parts of a partition at once"),
    Column("merged", Kind.BYTES, "bytes", "partial aggregates sent to be merged"),
    Column("merge_lag_max", Kind.SECONDS, "s", "longest time until a row was in the merged aggregates"),
)
"""Further columns of cases with partitions that are split."""

JOIN_COLUMNS = (Column("answers", Kind.COUNT, "", "matches found"),)
"""Further columns of cases with a join."""

SUMMARY_COLUMNS = (
    Column("verdict"),
    Column("best", about="the policy closest to capacity"),
    Column("rows", Kind.COUNT, about="replayed rows of the trace"),
    Column("workers", Kind.COUNT),
    Column("partitions", Kind.COUNT),
    Column("capacity", Kind.NUMBER, "rows/s", "of all workers without disturbances"),
    Column("busiest_worker", Kind.SHARE, about="share of all work on the busiest worker, at the start"),
    Column("hottest_partition", Kind.SHARE, about="share of all work in the hottest partition"),
    Column("static_full_at", Kind.NUMBER, about="speed-up at which the busiest worker is fully utilized"),
    Column("best_full_at", Kind.NUMBER, about="the same for the best placement of whole partitions"),
    Column("uniform_full_at", Kind.NUMBER, about="the same for uniform hashing; missing without a plan"),
    Column("offered", Kind.NUMBER, about="load of the busiest worker at the start, over its capacity"),
    *OWN_COLUMNS,
)

ROUND_COLUMNS = (
    CASE,
    Column("round", Kind.COUNT, about="from 0; only rounds with moves"),
    Column("collection", Kind.SECONDS, "s", "collection time"),
    Column("moves", Kind.COUNT),
    Column("moving", Kind.SECONDS, "s", "duration of the moves"),
)


def cases_table(outcomes: Sequence[Outcome]) -> Table:
    """One row per case, with columns on joins and crashes if any."""
    columns: tuple[Column, ...] = CASE_COLUMNS
    rows = [_case(one) for one in outcomes]
    if all(one.simulated.answers is not None for one in outcomes):
        columns = (*columns, *JOIN_COLUMNS)
        rows = [[*row, one.simulated.answers] for row, one in zip(rows, outcomes, strict=True)]
    splits = [one.simulated.splits for one in outcomes if one.simulated.splits is not None]
    if splits:
        columns = (*columns, *SPLIT_COLUMNS)
        did = [(one.added, one.most, one.sent_bytes, one.lag_s) for one in splits]
        rows = [[*row, *values] for row, values in zip(rows, did, strict=True)]
    if any(one.simulated.crashes or one.simulated.mirrored for one in outcomes):
        columns = (*columns, *CRASH_COLUMNS)
        rows = [[*row, *one.simulated.of_crashes()] for row, one in zip(rows, outcomes, strict=True)]
    return Table.from_rows("Cases", columns, rows)


def _case(one: Outcome) -> list[str | int | float | None]:
    speed = one.case, one.throughput, one.of_capacity, one.finished_s
    total, operator = (
        (latency.mean_s, latency.share_below_s(0.5), latency.share_below_s(0.99))
        for latency in (one.total, one.operator)
    )
    latencies = *total, one.queueing, *operator
    moved = len(one.simulated.moves), one.moved_bytes
    waited = one.behind_s, one.recovered_s, one.lag_s, one.late_s
    on_disk = (
        max(part.on_disk for part in one.simulated.intervals),
        max(part.spilled for part in one.simulated.intervals),
        max(int(part.state_in_memory.max()) for part in one.simulated.intervals),
    )
    return [*speed, *latencies, *moved, *waited, one.processed, one.left, one.lost, one.shed, *on_disk]


def summary_table(
    outcomes: Sequence[Outcome],
    bounds: Bounds,
    settings: StageSettings,
    speedup: float | None,
    uniform_at: float | None = None,
) -> Table:
    """Summary of all cases in one row, with the verdict."""
    found = verdict_of(outcomes, bounds, settings.workers, speedup, uniform_at)
    capacity = settings.workers / bounds.row_s if bounds.row_s else None
    stage = bounds.rows, settings.workers, settings.partitions, capacity, bounds.busiest_share, bounds.heaviest_share
    own = own_cells(bounds.own_rate(speedup))
    full_at = found.static_full_at, found.best_full_at, uniform_at
    row = (found.sentence, found.best, *stage, *full_at, bounds.static_load, *own)
    return Table.from_rows("The run", SUMMARY_COLUMNS, [row])


def rounds_table(outcomes: Sequence[Outcome]) -> Table:
    """One row per round with moves."""
    rows = [
        (outcome.case, number, one.collection_s, len(one.moves), one.moving_s)
        for outcome in outcomes
        for number, one in enumerate(outcome.simulated.rounds)
        if one.moves
    ]
    return Table.from_rows("Rounds", ROUND_COLUMNS, rows)
