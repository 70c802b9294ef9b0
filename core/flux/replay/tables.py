"""Tables and conclusion of a Flux replay."""

from collections.abc import Sequence
from typing import NamedTuple

from adapt.core.metrics import column_named, columns_named
from adapt.core.phrases import counted, percent
from adapt.core.stage.charts import CASE
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.offered_load import OWN_COLUMNS, Bounds, own_cells
from adapt.core.stage.outcome import QUEUEING, Outcome
from adapt.core.stage.simulate import CRASH_COLUMNS
from adapt.core.table import Column, Kind, Table
from adapt.core.values import duration, size

STATIC = "static"
"""Name of the case without moves."""

KEEPS_UP = 0.98
"""Share of the possible rate from which there is nothing to gain."""

GAINS = 1.05
"""Ratio of throughput from which one case is better."""


COSTS = 2.0
"""Ratio of latency from which one case is worse."""


class Compared(NamedTuple):
    """A case as the conclusion compares it."""

    case: str
    of_capacity: float  # rate over the possible rate
    gone: int  # rows without a result
    p99_s: float
    moves: int
    moved_bytes: int

    @classmethod
    def from_outcome(cls, one: Outcome) -> "Compared":
        """A case of one stage."""
        gone = one.left + one.lost + one.shed
        p99_s = one.total.share_below_s(0.99) or 0.0
        return cls(one.case, one.of_capacity, gone, p99_s, len(one.simulated.moves), one.moved_bytes)

    @property
    def keeps_up(self) -> bool:
        """Whether there is nothing to gain."""
        return self.of_capacity >= KEEPS_UP and not self.gone

    @property
    def reached(self) -> str:
        """How much of the rows, and how fast."""
        rate = (
            "keeps up with all rows" if self.keeps_up else f"reaches {percent(self.of_capacity)} of the possible rate"
        )
        moved = f", with {counted(self.moves, 'move')} ({size(self.moved_bytes)} of state)" if self.moves else ""
        return f"{rate}, p99 {duration(self.p99_s)}{moved}"

    def beats(self, static: "Compared") -> bool:
        """Whether its rate is clearly better, or its p99 at the same."""
        alike = self.of_capacity * GAINS >= static.of_capacity and self.gone <= static.gone
        return self.of_capacity >= GAINS * static.of_capacity or (alike and static.p99_s > COSTS * self.p99_s)


def best_of(static: Compared, others: Sequence[Compared]) -> Compared | None:
    """The case with the lowest p99 of those with the best rate."""
    most = max((each.of_capacity for each in others), default=0.0)
    gains = GAINS * static.of_capacity
    least = max(KEEPS_UP * most, gains if most >= gains else 0.0)
    return min((each for each in others if each.of_capacity >= least), key=lambda each: each.p99_s, default=None)


def action(static: Compared, best: Compared | None) -> str:
    """What to do: use the best case, or keep today's placement."""
    today = f"today's placement {static.reached}"
    if best is None:
        return f"{today[0].upper()}{today[1:]}; no policy was compared with it."
    if best.beats(static):
        return f"Use {best.case}: it {best.reached}; {today}."
    other = f"{best.case} {best.reached if best.moves else 'finds nothing to move'}"
    if static.keeps_up:
        return f"Keep today's placement: it {static.reached}; {other}."
    return f"Moving partitions does not help: {today}; {other}."


def flux_conclusion(outcomes: Sequence[Outcome], bounds: Bounds, speedup: float | None) -> str:
    """What to do, losses, and the need at the own rate."""
    static, *moving = (Compared.from_outcome(each) for each in outcomes)
    own = bounds.own_rate(speedup)
    rate = "" if own is None else own.sentence(speedup or 1.0, bounds.static_load, "the busiest worker")
    return " ".join(filter(None, (action(static, best_of(static, moving)), _losses(outcomes), rate)))


def _losses(outcomes: Sequence[Outcome]) -> str:
    """What each case did not process, lost and dropped, or why it failed; empty if nothing."""
    told: dict[str, list[str]] = {}
    for one in outcomes:
        state = sum(each.lost_state_bytes for each in one.simulated.crashes)
        lost = {"rows not processed at the end": one.left, "rows lost in crashes": one.lost, "rows dropped": one.shed}
        texts = {what: f"{count:,}" * bool(count) for what, count in lost.items()}
        for what, text in {**texts, "state lost in crashes": size(state) * bool(state)}.items():
            if text:
                told.setdefault(what, []).append(f"{text} {'today' if one.case == STATIC else f'with {one.case}'}")
    failed = [f"{each.case} fails: {each.simulated.failed}".rstrip(".") for each in outcomes if each.simulated.failed]
    said = "; ".join([*(f"{what}: {', '.join(cells)}" for what, cells in told.items()), *failed])
    return f"{said[0].upper()}{said[1:]}." if said else ""


def limit_sentence(outcomes: Sequence[Outcome], bounds: Bounds) -> str:
    """Limit of any placement of whole partitions, if reached."""
    reachable = bounds.even_s / bounds.least_s if bounds.least_s else 1.0
    found = [Compared.from_outcome(each) for each in outcomes]
    most = max(each.of_capacity for each in found)
    if min(each.gone for each in found) or max(most, reachable) >= KEEPS_UP or most > reachable:
        return ""  # a rate by rows is not the share of the time that the limit is
    return (
        f"The hottest partition alone has {percent(bounds.heaviest_share)} of the work, which limits any placement of"
        f" whole partitions to {percent(reachable)} of the possible rate."
    )


BRIEF = (
    "case, capacity_share: of the possible rate, latency_p99: p99, moves, state_moved_bytes: state moved, unprocessed"
)
"""Columns of cases shown below the conclusion, and their headings."""

CASE_COLUMNS = (
    CASE,
    *columns_named("throughput capacity_share finished latency_mean latency_p50 latency_p99"),
    QUEUEING,
    *columns_named("operator_mean operator_p50 operator_p99 moves state_moved_bytes degraded recovery lag_max drain"),
    *columns_named("processed unprocessed lost rows_dropped on_disk_max spilled_max state_max"),
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
    Column("best", about="the policy closest to the possible rate, or of those alike, that with the lowest p99"),
    *columns_named("rows workers partitions capacity busiest_worker hottest_partition static_full_at best_full_at"),
    column_named("offered"),
    *OWN_COLUMNS,
)

ROUND_COLUMNS = (
    CASE,
    Column("round", Kind.COUNT, about="from 0; only rounds with moves"),
    Column("collection", Kind.SECONDS, "s", "collection time"),
    column_named("moves"),
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
    waited = one.behind_s, one.recovered_s, one.lag, one.late_s
    on_disk = (
        max(part.on_disk for part in one.simulated.intervals),
        max(part.spilled for part in one.simulated.intervals),
        max(int(part.state_in_memory.max()) for part in one.simulated.intervals),
    )
    return [*speed, *latencies, *moved, *waited, one.processed, one.left, one.lost, one.shed, *on_disk]


def summary_table(outcomes: Sequence[Outcome], bounds: Bounds, settings: StageSettings, speedup: float | None) -> Table:
    """All cases in one row."""
    static, *moving = (Compared.from_outcome(each) for each in outcomes)
    best = best_of(static, moving)
    capacity = settings.workers / bounds.row_s if bounds.row_s else None
    stage = bounds.rows, settings.workers, settings.partitions, capacity, bounds.busiest_share, bounds.heaviest_share
    own, full_at = own_cells(bounds.own_rate(speedup)), bounds.full_at(speedup)
    row = (best and best.case, *stage, *full_at, bounds.static_load, *own)
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
