"""Tables and verdict of a Flux replay."""

from collections.abc import Sequence
from dataclasses import dataclass

from adapt.core.metrics import column_named, columns_named
from adapt.core.phrases import counted
from adapt.core.stage.charts import CASE
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.offered_load import OWN_COLUMNS, Bounds, own_cells, stressed
from adapt.core.stage.outcome import QUEUEING, Outcome
from adapt.core.stage.simulate import CRASH_COLUMNS
from adapt.core.table import Column, Kind, Table
from adapt.core.values import duration, size

KEEPS_UP = 0.98
"""Share of the possible rate from which there is nothing to gain."""

GAINS = 1.05
"""Ratio of throughput from which one case is better."""


COSTS = 2.0
"""Ratio of latency from which one case is worse."""


@dataclass(frozen=True, slots=True)
class FluxVerdict:
    """Verdict on the cases of a replay."""

    best: str | None  # the policy closest to the possible rate; None without policies
    static_full_at: float | None  # speed-up at which the busiest worker is fully utilized on average
    best_full_at: float | None  # the same for the best placement of whole partitions
    sentence: str


def verdict_of(outcomes: Sequence[Outcome], bounds: Bounds, workers: int, speedup: float | None) -> FluxVerdict:
    """Compare the policies with the static case, which comes first."""
    static, *moving = outcomes
    best = _best(static, moving)
    static_at, best_at = bounds.full_at(speedup)
    own = bounds.own_rate(speedup)
    places = {"this placement": static_at, "the best placement of whole partitions": best_at}
    stress = stressed(speedup or 1.0, bounds.last_s, bounds.static_load, "the busiest worker")
    sentences = [
        *([] if own is None else [own.sentence(workers, places), stress]),
        *(
            _compared(static, best),
            *(f"{_failed(each)}." for each in outcomes if each.simulated.failed),
            *_left(static, best),
            *_limit(bounds, best or static),
        ),
    ]
    return FluxVerdict(best.case if best else None, static_at, best_at, " ".join(sentences))


def _best(static: Outcome, others: Sequence[Outcome]) -> Outcome | None:
    """The case with the lowest p99 of those about as close to what is possible as any."""
    most = max((each.of_capacity for each in others), default=0.0)
    gains = GAINS * static.of_capacity
    least = max(KEEPS_UP * most, gains if most >= gains else 0.0)
    return min((each for each in others if each.of_capacity >= least), key=_p99, default=None)


def _compared(static: Outcome, best: Outcome | None) -> str:
    reached = f"{static.of_capacity:.1%} of the possible rate{_with_p99(static)}"
    if static.of_capacity >= KEEPS_UP and not static.shed:
        reached = f"keeps up with all rows{_with_p99(static)}"
    else:
        reached = f"reaches {reached}"
    if best is None:
        return f"The static placement {reached}."
    alike = best.of_capacity * GAINS >= static.of_capacity and _gone(best) <= _gone(static)
    if best.of_capacity >= GAINS * static.of_capacity or (alike and _p99(static) > COSTS * _p99(best)):
        moved = f"{counted(len(best.simulated.moves), 'move')} ({size(best.moved_bytes)}){_with_p99(best)}"
        return (
            f"Use {best.case}: it reaches {best.of_capacity:.1%} of the possible rate with {moved}; the static"
            f" placement {reached}."
        )
    return f"Keep the static placement: it {reached}{_instead(static, best)}."


def _gone(one: Outcome) -> int:
    """Rows without a result."""
    return one.left + one.lost + one.shed


def _with_p99(one: Outcome) -> str:
    """Its p99 latency, if it processed rows."""
    p99 = one.total.share_below_s(0.99)
    return "" if p99 is None else f", p99 latency {duration(p99)}"


def _instead(static: Outcome, best: Outcome) -> str:
    """What moves would do where the static placement stays."""
    if not best.simulated.moves:
        return f"; {best.case} finds nothing to move"
    costs = "; moves only cost latency" if _p99(best) > COSTS * _p99(static) else ""
    moved = f"{counted(len(best.simulated.moves), 'move')} ({size(best.moved_bytes)}){_with_p99(best)}"
    return f"; {best.case} reaches {best.of_capacity:.1%} with {moved}{costs}"


def _failed(one: Outcome) -> str:
    return f"{one.case.capitalize()} fails: {one.simulated.failed}"


def _left(static: Outcome, best: Outcome | None) -> list[str]:
    """Rows not processed at the end, lost in crashes, and shed."""
    left = [f"{each.left:,} with {each.case}" for each in (static, best) if each is not None and each.left]
    lost = [f"{each.lost:,} with {each.case}" for each in (static, best) if each is not None and each.lost]
    shed = [f"{each.shed:,} with {each.case}" for each in (static, best) if each is not None and each.shed]
    of_state = {
        each.case: sum(one.lost_state_bytes for one in each.simulated.crashes) for each in (static, best or static)
    }
    state = [f"{size(lost)} with {case}" for case, lost in of_state.items()] if any(of_state.values()) else []
    return [
        *([f"Rows not processed at the end: {', '.join(left)}."] if left else []),
        *([f"Rows lost in crashes: {', '.join(lost)}."] if lost else []),
        *([f"State lost in crashes: {', '.join(state)}."] if state else []),
        *([f"Rows dropped by load shedding: {', '.join(shed)}."] if shed else []),
    ]


def _p99(outcome: Outcome) -> float:
    return outcome.total.share_below_s(0.99) or 0.0


def _limit(bounds: Bounds, best: Outcome) -> list[str]:
    """Limit of any placement of whole partitions."""
    reachable = bounds.even_s / bounds.least_s if bounds.least_s else 1.0
    if _gone(best) or max(best.of_capacity, reachable) >= KEEPS_UP or best.of_capacity > reachable:
        return []  # a rate by rows is not the share of the time that the limit is
    return [
        f"The hottest partition alone has {bounds.heaviest_share:.1%} of the work, which limits any placement of whole"
        f" partitions to {reachable:.1%} of the possible rate."
    ]


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
    Column("verdict"),
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
    """Summary of all cases in one row, with the verdict."""
    found = verdict_of(outcomes, bounds, settings.workers, speedup)
    capacity = settings.workers / bounds.row_s if bounds.row_s else None
    stage = bounds.rows, settings.workers, settings.partitions, capacity, bounds.busiest_share, bounds.heaviest_share
    own = own_cells(bounds.own_rate(speedup))
    full_at = found.static_full_at, found.best_full_at
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
