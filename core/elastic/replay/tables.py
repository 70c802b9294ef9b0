"""Tables of an elastic replay: cases, series, rescales, facts, conclusion."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from adapt.core.elastic.replay.outcome import ElasticOutcome
from adapt.core.metrics import column_named, columns_named
from adapt.core.phrases import counted, percent, rounded
from adapt.core.stage.charts import series_tables
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.control.elasticity import Step
from adapt.core.stage.input.offered_load import OWN_COLUMNS, Bounds, own_cells
from adapt.core.stage.movement.controller import STEPS
from adapt.core.stage.outcome import CALM, CHEAP, QUEUEING, SHED, late_by
from adapt.core.table import Column, Kind, Table
from adapt.core.values import duration

_OTHERS = 2
"""Cases that the conclusion names besides what it recommends."""

BRIEF = "case, workers_mean: workers, rescales, latency_p99: p99, worker_time: worker time, rows_dropped: dropped"
"""Columns of cases shown below the conclusion, and their headings."""

OSCILLATES = 2
"""Reversals from which notes call a policy oscillating."""

CASE = Column("case", about="fixed (do nothing), fixed workers with plan rebuilds, or a scaling policy")

CASE_COLUMNS = (
    CASE,
    *columns_named("workers_mean workers_max rescales"),
    Column("reversals", Kind.COUNT, "", "rescales that take back the one before, at most 10 minutes later"),
    Column("migration", about="how partitions migrate: live, or by a restart as this engine does"),
    *columns_named("rows_dropped dropped_falsely dropped_unevenly latency_p50 latency_p95 latency_p99"),
    QUEUEING,
    *columns_named("worker_time idle_time paused pause_time downtime stopped catch_up moves state_moved_bytes"),
    *columns_named("imbalance imbalance_max throughput lag_max drain processed unprocessed"),
)

JOIN_COLUMNS = (
    column_named("answers"),
    Column("expected", Kind.COUNT, "", "matches of a serial run over all rows"),
    column_named("recall"),
    Column("recall_if_random", Kind.SHARE, "", "recall if rows were shed at random: the kept share squared"),
)
"""Further columns of cases with a join."""

RESCALE_COLUMNS = (
    CASE,
    Column("decided", Kind.SECONDS, "s", "time of the decision"),
    Column("why", about="scale out, scale in, or rebuild"),
    Column("before", Kind.COUNT, "workers"),
    Column("after", Kind.COUNT, "workers"),
    Column("backlog", Kind.COUNT, "rows", "arrived and not processed at the decision"),
    *columns_named("moves state_moved_bytes downtime"),
    Column("restart_backlog", Kind.COUNT, "rows", "waiting when a restart was over"),
    column_named("stopped"),
    Column("done", Kind.SECONDS, "s", "when the last partition had moved"),
    Column("caught_up", Kind.SECONDS, "s", "when the backlog was down to one period's arrivals; missing if it stays"),
)


def elastic_cases(outcomes: Sequence[ElasticOutcome]) -> Table:
    """One row per case; with a join, its answers too."""
    if all(one.expected is None for one in outcomes):
        return Table.from_rows("Cases", CASE_COLUMNS, [_case(one) for one in outcomes])
    rows = [
        (*_case(one), one.outcome.simulated.answers, one.expected, one.recall, (1 - one.drop_rate) ** 2)
        for one in outcomes
    ]
    return Table.from_rows("Cases", (*CASE_COLUMNS, *JOIN_COLUMNS), rows)


def _case(one: ElasticOutcome) -> list[str | int | float | None]:
    outcome, waste = one.outcome, one.waste
    migration = None if one.start is None else one.start[1]
    workers = one.case, one.mean_workers, one.most_workers, one.restarts, len(one.reversals), migration
    wasted = (0, 0) if waste is None else (waste.dropped_falsely, waste.dropped_unevenly)
    latencies = (outcome.total.share_below_s(share) for share in (0.5, 0.95, 0.99))
    times = one.worker_s, one.idle_s, one.paused_s, one.pauses_s, one.downtime_s, one.stopped_worker_s, one.catch_up_s
    moved = len(outcome.simulated.moves), outcome.moved_bytes, one.imbalance, one.worst_imbalance
    rows = outcome.throughput, outcome.lag, outcome.late_s, outcome.processed, outcome.left
    return [*workers, outcome.shed, *wasted, *latencies, outcome.queueing, *times, *moved, *rows]


def elastic_series(outcomes: Sequence[ElasticOutcome], bounds: Bounds) -> dict[str, Table]:
    """The stage's series with workers, utilization and imbalance, and `rescales`."""
    series = series_tables([one.outcome for one in outcomes], bounds)
    columns: tuple[Column, ...] = (
        Column("workers", Kind.NUMBER, "", "average number of workers"),
        Column("utilization", Kind.SHARE, "", "average utilization of the workers"),
        column_named("imbalance"),
    )
    added: list[tuple[float | None, ...]] = [
        (span.workers, 1 - span.idle_s / (span.workers * (interval.end_s - interval.start_s)), span.imbalance)
        for one in outcomes
        for interval, span in zip(one.outcome.simulated.intervals, one.spans, strict=True)
    ]
    if any(one.expected is not None for one in outcomes):
        columns = (*columns, Column("answers", Kind.COUNT, "", "matches found"))
        answers = [interval.answers for one in outcomes for interval in one.outcome.simulated.intervals]
        added = [(*more, count) for more, count in zip(added, answers, strict=True)]
    intervals = series["intervals"]
    rows = tuple((*row, *more) for row, more in zip(intervals.rows, added, strict=True))
    series["intervals"] = replace(intervals, columns=(*intervals.columns, *columns), rows=rows)
    rescales = [_rescale(one.case, step) for one in outcomes for step in one.rescales]
    return {
        **{name: _of_cases(table) for name, table in series.items() if name != "crashes"},
        "rescales": Table.from_rows("Rescales", RESCALE_COLUMNS, rescales),
    }


def _rescale(case: str, step: Step) -> list[str | int | float | None]:
    why = "rebuild" if step.before == step.after else "scale out" if step.after > step.before else "scale in"
    moved = sum(moved.state_bytes for moved in step.moves if STEPS[-1] in moved.times_s)
    changed = case, step.decided_s, why, step.before, step.after, step.waited
    stop = step.stop
    stopped = (None, None, None) if stop is None else (stop.downtime_s, stop.backlog, stop.worker_s)
    return [*changed, len(step.moves), moved, *stopped, step.done_s, step.caught_up_s]


def _of_cases(table: Table) -> Table:
    return replace(table, columns=(CASE, *table.columns[1:]))


def elastic_facts(
    bounds: Bounds, least: int, settings: StageSettings, starts: float | None, speedup: float | None
) -> Table:
    """One row; arguments as in `ElasticRun`."""
    columns = (
        column_named("rows"),
        Column("workers", Kind.COUNT, about="workers at the start"),
        Column("pool", Kind.COUNT, "workers", "maximum number of workers"),
        column_named("partitions"),
        Column("capacity", Kind.NUMBER, "rows/s", "rate that one worker can process"),
        *columns_named("hottest_partition offered"),
        Column("scale_out_load", Kind.NUMBER, about="offered load over capacity at which thresholds scale out"),
        *OWN_COLUMNS,
    )
    known = None if starts is None or starts == float("inf") else starts
    capacity = 1 / bounds.row_s if bounds.row_s else None
    pool, partitions = settings.workers, settings.partitions
    stage = bounds.rows, least, pool, partitions, capacity, bounds.heaviest_share, bounds.even_load
    row = *stage, known, *own_cells(bounds.own_rate(speedup))
    return Table.from_rows("The run", columns, [row])


def elastic_conclusion(
    outcomes: Sequence[ElasticOutcome], bounds: Bounds, least: int, settings: StageSettings, speedup: float | None
) -> str:
    """Whether to scale, and what the trace needs at its own rate."""
    own = bounds.own_rate(speedup)
    whose = f"a pool of {counted(settings.workers, 'worker')}"
    rate = [] if own is None else [own.sentence(speedup or 1.0, bounds.even_load, whose)]
    return " ".join([_action(outcomes, bounds.last_s, least), *rate])


def chosen_of(outcomes: Sequence[ElasticOutcome], last_s: float) -> ElasticOutcome:
    """The recommended case.

    The cheapest that keeps up, of alike ones the fastest; the first unless another is clearly better. If none keeps
    up, the fastest of those that lose no more rows than the first.
    """
    fixed = outcomes[0]
    keep_up = [one for one in outcomes if keeps_up(one, last_s)]
    if fixed in keep_up:
        better = [
            one
            for one in keep_up
            if one.worker_s * CHEAP < fixed.worker_s and _p99(one) <= CALM * _p99(fixed) and _gone(one) <= _gone(fixed)
        ]
        return min(better, key=lambda one: one.worker_s, default=fixed)
    if keep_up:
        whole = [one for one in keep_up if not _gone(one)] or keep_up
        least_s = min(one.worker_s for one in whole)
        return min((one for one in whole if one.worker_s <= CHEAP * least_s), key=_p99)
    closest = min((one for one in outcomes if _gone(one) <= _gone(fixed)), key=_p99)
    return closest if _p99(closest) * CALM < _p99(fixed) or _gone(closest) < _gone(fixed) else fixed


def keeps_up(one: ElasticOutcome, last_s: float) -> bool:
    """Whether a case ends in time, with few drops and low p99."""
    outcome = one.outcome
    return late_by(outcome.late_s, outcome.total.share_below_s(0.99), last_s) <= 1 and one.drop_rate <= SHED


def _action(outcomes: Sequence[ElasticOutcome], last_s: float, least: int) -> str:
    fixed, workers, best = outcomes[0], counted(least, "worker"), chosen_of(outcomes, last_s)
    others = sorted((one for one in outcomes[1:] if one is not best), key=lambda one: (not one.restarts, _p99(one)))
    did = {one.case: f"{_quality(one)} ({_worker_time(one, fixed)})" for one in others[:_OTHERS]}
    told = [f"{one.case} {did[one.case] if one.restarts else 'never rescales'}" for one in others[:_OTHERS]]
    if best is not fixed:
        falls = "" if keeps_up(best, last_s) else "; no case keeps up with this load"
        today = f"{_quality(fixed)} with {workers}"
        return (
            f"{'; '.join([f'Use {best.case}: {_quality(best)} ({_worker_time(best, fixed)})', today, *told])}{falls}."
        )
    if len(outcomes) == 1 or keeps_up(fixed, last_s):
        return f"{'; '.join([f'Keep {workers}: {_quality(fixed)}', *told])}."
    return f"{'; '.join([f'Scaling does not help: {workers} fall behind, {_quality(fixed)}', *told])}."


def _worker_time(one: ElasticOutcome, fixed: ElasticOutcome) -> str:
    ratio = one.worker_s / fixed.worker_s if fixed.worker_s else 1.0
    if 1 / CHEAP <= ratio <= CHEAP:
        return "the same worker time"
    return f"{percent(ratio, 2)} of the worker time" if ratio < 1 else f"{ratio:.3g} times the worker time"


def elastic_notes(
    outcomes: Sequence[ElasticOutcome], bounds: Bounds, settings: StageSettings, starts: float | None
) -> list[str]:
    """Loads of the buffers, and why policies rescale late, never or back."""
    said = [_buffered(bounds, settings)]
    said += [f"{one.case[0].upper()}{one.case[1:]} {late}." for one in outcomes if (late := _too_short(one))]
    said += [_oscillation(one) for one in outcomes]
    if starts is not None and starts == float("inf"):
        said.append(
            "Dropping rows keeps utilization below tau3, so thresholds never scale out; use"
            " --policy thresholds:signal=offered."
        )
    elif starts is not None and starts > 1:
        said.append(
            f"Dropping rows hides the load: thresholds scale out only at {starts:.2f} times the workers' capacity; with"
            " thresholds:signal=offered they do so at tau3."
        )
    return said


def _buffered(bounds: Bounds, settings: StageSettings) -> str:
    """Sentence on the mean load of the buffers; empty where no rows are dropped."""
    overload = settings.overload
    if overload is None or not bounds.last_s:
        return ""
    rate = overload.capacity_tuples / overload.window_s
    load = bounds.rows / bounds.last_s / settings.workers / rate
    return (
        f"The buffers, {overload.capacity_tuples:,} rows per {duration(overload.window_s)} and worker, are offered"
        f" {rounded(load)} times what they hold, on average; more in bursts."
    )


def _too_short(one: ElasticOutcome) -> str:
    """Why a policy cannot have rescaled; empty if it could."""
    if one.start is None or one.ended_s >= one.start[0]:
        return ""
    return f"decides first after {duration(one.start[0])}, the run takes {duration(one.ended_s)}"


def _oscillation(one: ElasticOutcome) -> str:
    """How often rescales are taken back; empty if at most once."""
    times = one.reversals
    if len(times) < OSCILLATES:
        return ""
    took = duration(times[-1][1] - times[0][0])
    return f"{one.case[0].upper()}{one.case[1:]} takes rescales back {len(times)} times in {took}."


def _p99(one: ElasticOutcome) -> float:
    p99 = one.outcome.total.share_below_s(0.99)
    return inf if p99 is None else p99


def _gone(one: ElasticOutcome) -> int:
    """Rows without a result."""
    return one.outcome.shed + one.outcome.left


def _quality(one: ElasticOutcome) -> str:
    said = "no row is processed" if _p99(one) == inf else f"p99 {duration(_p99(one))}"
    if one.downtime_s:
        said += f", stopped for {duration(one.downtime_s)}"
    if one.outcome.shed:
        said += f", {percent(one.drop_rate)} of the rows dropped"
    if one.recall is not None and one.recall < 1:
        said += f", {percent(one.recall)} of the answers found"
    if one.outcome.left:
        said += f", {one.outcome.left:,} rows unprocessed"
    return said
