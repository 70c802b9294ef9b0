"""What an elastic replay measured, as tables: its cases, their series and steps, and the whole with its verdict."""

from collections.abc import Sequence
from dataclasses import replace

from adapt.core.elastic.replay.outcome import ElasticOutcome
from adapt.core.phrases import counted
from adapt.core.stage.case_tables import series_tables
from adapt.core.stage.control.elasticity import Step
from adapt.core.stage.input.offered_load import Bounds
from adapt.core.stage.movement.course import STEPS
from adapt.core.table import Column, Kind, Table
from adapt.core.values import duration

CASE = Column("case", about="fixed, the workers at the start all the time; rebuild, with plans built anew; or a policy")

CASE_COLUMNS = (
    CASE,
    Column("workers_mean", Kind.NUMBER, "", "over the time of the run"),
    Column("workers_max", Kind.COUNT, "", "at any time"),
    Column("restarts", Kind.COUNT, "", "steps that changed the workers or the plan"),
    Column("shed", Kind.COUNT, "rows", "that workers dropped as they filled up"),
    Column("shed_falsely", Kind.COUNT, "rows", "while the pool, evenly filled, would have been below tau2 with all"),
    Column("shed_unevenly", Kind.COUNT, "rows", "of these, while the workers there were would have been"),
    Column("latency_p50", Kind.SECONDS, "s", "from when a row is due until it is processed"),
    Column("latency_p95", Kind.SECONDS, "s", "from when a row is due until it is processed"),
    Column("latency_p99", Kind.SECONDS, "s", "from when a row is due until it is processed"),
    Column("worker_seconds", Kind.NUMBER, "s", "that workers were there"),
    Column("idle", Kind.NUMBER, "s", "of these without work"),
    Column("paused", Kind.SECONDS, "s", "time in which some partition was paused"),
    Column("pauses", Kind.NUMBER, "s", "the pauses of all partitions together"),
    Column("catch_up", Kind.SECONDS, "s", "the longest from a step until rows no longer waited; missing if they did"),
    Column("moves", Kind.COUNT),
    Column("moved", Kind.BYTES, "bytes", "state that went to another worker"),
    Column("imbalance", Kind.RATIO, "", "rows of the busiest worker over the mean, by intervals"),
    Column("imbalance_max", Kind.RATIO, "", "of the worst interval"),
    Column("throughput", Kind.NUMBER, "rows/s", "until it was through with the rows, or cut off"),
    Column("lag_max", Kind.SECONDS, "s", "the longest that a row waited to be taken"),
    Column("late", Kind.SECONDS, "s", "from when the last row was due until all were processed"),
    Column("processed", Kind.COUNT, "rows"),
    Column("left", Kind.COUNT, "rows", "due and not processed at the end"),
)

JOIN_COLUMNS = (
    Column("answers", Kind.COUNT, "", "matches that were found"),
    Column("expected", Kind.COUNT, "", "matches in a serial run of all rows"),
    Column("recall", Kind.SHARE, "", "answers over those expected"),
    Column(
        "recall_by_chance", Kind.SHARE, "", "if rows were shed by chance alone: the square of the part that is kept"
    ),
)
"""Of cases in which two streams are joined, behind the others."""

TRADE_OFF_COLUMNS = (
    Column("tau1", Kind.NUMBER, "", "how full workers are to be when their number is chosen"),
    Column("policy", about="what scales; rebuild, with plans built anew"),
    Column("workers_start", Kind.COUNT),
    Column("workers_mean", Kind.NUMBER, "", "over the time of the run"),
    Column("idle_share", Kind.SHARE, "", "of the worker-seconds, without work"),
    Column("shed_share", Kind.SHARE, "", "of the rows"),
    Column("false_share", Kind.SHARE, "", "of the rows, shed while the pool would have held all below tau2"),
    Column("uneven_share", Kind.SHARE, "", "of the rows, shed while the workers there were would have"),
    Column("recall", Kind.SHARE, "", "answers of a join over those of a serial run"),
    Column("restarts", Kind.COUNT, "", "steps that changed the workers or the plan"),
    Column("moved", Kind.BYTES, "bytes", "state that went to another worker"),
    Column("latency_p99", Kind.SECONDS, "s", "from when a row is due until it is processed"),
)

STEP_COLUMNS = (
    CASE,
    Column("decided", Kind.SECONDS, "s"),
    Column("why", about="up, down, or rebuild"),
    Column("before", Kind.COUNT, "workers"),
    Column("after", Kind.COUNT, "workers"),
    Column("waited", Kind.COUNT, "rows", "that were due and not processed"),
    Column("moves", Kind.COUNT),
    Column("moved", Kind.BYTES, "bytes", "state that went to another worker"),
    Column("done", Kind.SECONDS, "s", "when all had moved"),
    Column("caught_up", Kind.SECONDS, "s", "when no more rows waited than come in a period; missing if more did"),
)


def elastic_cases(outcomes: Sequence[ElasticOutcome]) -> Table:
    """One row a case; with its answers, where streams are joined."""
    if all(one.expected is None for one in outcomes):
        return Table.from_rows("Cases", CASE_COLUMNS, [_case(one) for one in outcomes])
    rows = [
        (*_case(one), one.outcome.simulated.answers, one.expected, one.recall, (1 - one.shed_share) ** 2)
        for one in outcomes
    ]
    return Table.from_rows("Cases", (*CASE_COLUMNS, *JOIN_COLUMNS), rows)


def trade_off(outcomes: Sequence[ElasticOutcome]) -> Table:
    """One row for each tau1 and policy: false shedding against idle workers and state that moves."""
    rows: list[list[str | int | float | None]] = []
    for one in outcomes:
        if one.start is not None:
            waste, outcome = one.waste, one.outcome
            wasted = (waste.shed_falsely, waste.shed_unevenly) if waste and outcome.shed else (0, 0)
            shares = (one.shed_share * shed / outcome.shed if outcome.shed else 0.0 for shed in wasted)
            begun = one.start.tau1, one.start.policy, one.start.workers, one.mean_workers, one.idle_share
            took = one.recall, one.restarts, outcome.moved_bytes, outcome.total.share_below_s(0.99)
            rows.append([*begun, one.shed_share, *shares, *took])
    return Table.from_rows("Trade-off", TRADE_OFF_COLUMNS, rows)


def _case(one: ElasticOutcome) -> list[str | int | float | None]:
    outcome, waste = one.outcome, one.waste
    workers = one.case, one.mean_workers, one.most_workers, one.restarts
    wasted = (0, 0) if waste is None else (waste.shed_falsely, waste.shed_unevenly)
    latencies = (outcome.total.share_below_s(share) for share in (0.5, 0.95, 0.99))
    times = one.worker_s, one.idle_s, one.paused_s, one.pauses_s, one.catch_up_s
    moved = len(outcome.simulated.moves), outcome.moved_bytes, one.imbalance, one.worst_imbalance
    rows = outcome.throughput, outcome.lag_s, outcome.late_s, outcome.processed, outcome.left
    return [*workers, outcome.shed, *wasted, *latencies, *times, *moved, *rows]


def elastic_series(outcomes: Sequence[ElasticOutcome], bounds: Bounds) -> dict[str, Table]:
    """`intervals` with workers, their utilization and imbalance, `workers`, `moves` and `steps`, each of all cases."""
    series = series_tables([one.outcome for one in outcomes], bounds)
    columns: tuple[Column, ...] = (
        Column("workers", Kind.NUMBER, "", "on average over the interval"),
        Column("utilization", Kind.SHARE, "", "of the workers, on average"),
        Column("imbalance", Kind.RATIO, "", "rows of the busiest worker over the mean"),
    )
    added: list[tuple[float | None, ...]] = [
        (span.workers, 1 - span.idle_s / (span.workers * (interval.end_s - interval.start_s)), span.imbalance)
        for one in outcomes
        for interval, span in zip(one.outcome.simulated.intervals, one.spans, strict=True)
    ]
    if any(one.expected is not None for one in outcomes):
        columns = (*columns, Column("answers", Kind.COUNT, "", "matches that were found"))
        answers = [interval.answers for one in outcomes for interval in one.outcome.simulated.intervals]
        added = [(*more, count) for more, count in zip(added, answers, strict=True)]
    intervals = series["intervals"]
    rows = tuple((*row, *more) for row, more in zip(intervals.rows, added, strict=True))
    return {
        "intervals": _of_cases(replace(intervals, columns=(*intervals.columns, *columns), rows=rows)),
        "workers": _of_cases(series["workers"]),
        "moves": _of_cases(series["moves"]),
        "steps": Table.from_rows(
            "Steps", STEP_COLUMNS, [_step(one.case, step) for one in outcomes for step in one.steps]
        ),
    }


def _step(case: str, step: Step) -> list[str | int | float | None]:
    why = "rebuild" if step.before == step.after else "up" if step.after > step.before else "down"
    moved = sum(moved.state_bytes for moved in step.moves if STEPS[-1] in moved.times_s)
    changed = case, step.decided_s, why, step.before, step.after, step.waited
    return [*changed, len(step.moves), moved, step.done_s, step.caught_up_s]


def _of_cases(table: Table) -> Table:
    return replace(table, columns=(CASE, *table.columns[1:]))


def elastic_summary(
    outcomes: Sequence[ElasticOutcome], bounds: Bounds, least: int, pool: int, partitions: int, starts: float | None
) -> Table:
    """The whole in one row, with its verdict; the arguments are as in `ElasticRun`."""
    columns = (
        Column("verdict"),
        Column("rows", Kind.COUNT, about="of the trace, or of its part that was replayed"),
        Column("workers", Kind.COUNT, about="at the start"),
        Column("pool", Kind.COUNT, "workers"),
        Column("partitions", Kind.COUNT),
        Column("capacity", Kind.NUMBER, "rows/s", "of a worker that does nothing else"),
        Column("hottest_partition", Kind.SHARE, about="of all work"),
        Column("starts_at", Kind.NUMBER, about="load over what workers can hold, from which on more are asked for"),
    )
    known = None if starts is None or starts == float("inf") else starts
    capacity = 1 / bounds.row_s if bounds.row_s else None
    stage = bounds.rows, least, pool, partitions, capacity, bounds.heaviest_share
    return Table.from_rows("The run", columns, [(_verdict(outcomes, least, starts), *stage, known)])


def _verdict(outcomes: Sequence[ElasticOutcome], least: int, starts: float | None) -> str:
    begun = [one.start for one in outcomes if one.start is not None]
    if len({start.tau1 for start in begun}) > 1:
        return " ".join(_of_sweep(policy, outcomes) for policy in dict.fromkeys(start.policy for start in begun))
    fixed, *others = outcomes
    told = [f"With {counted(least, 'worker')} all the time {_quality(fixed)}."]
    for one in others:
        if not one.restarts:
            told.append(f"{one.case} changes nothing.")
            continue
        steps = (
            f"{one.mean_workers:.1f} workers on average, at most {one.most_workers}, {counted(one.restarts, 'step')}"
        )
        told.append(f"With {one.case} ({steps}) {_quality(one)}.")
    if starts is not None and starts == float("inf"):
        told.append("What workers hold never reaches tau3, since they shed all before; take the signal offered.")
    elif starts is not None and starts > 1:
        told.append(
            f"Shedding hides the load: what is held asks for more workers only from {starts:.2f} times on what they can"
            " hold; the signal offered asks at once."
        )
    return " ".join(told)


def _of_sweep(policy: str, outcomes: Sequence[ElasticOutcome]) -> str:
    """What a policy does with the least and with the greatest tau1."""
    by_tau1 = {one.start.tau1: one for one in outcomes if one.start is not None and one.start.policy == policy}
    told = []
    for tau1 in (min(by_tau1), max(by_tau1)):
        one = by_tau1[tau1]
        falsely = 0 if one.waste is None else one.waste.shed_falsely
        rows = one.outcome.processed + one.outcome.shed + one.outcome.left
        told.append(
            f"with tau1 {tau1:g} {one.mean_workers:.1f} workers idle for {one.idle_share:.1%} of their time, and"
            f" {one.shed_share:.1%} of the rows are shed, {falsely / rows if rows else 0:.1%} falsely"
        )
    return f"{policy[:1].upper()}{policy[1:]}: {'; '.join(told)}."


def _quality(one: ElasticOutcome) -> str:
    p99 = one.outcome.total.share_below_s(0.99)
    rows = one.outcome.processed + one.outcome.shed + one.outcome.left
    said = "no row is processed" if p99 is None else f"99% of the rows done take at most {duration(p99)}"
    if one.outcome.shed:
        said += f", {one.outcome.shed / rows:.1%} of all are shed"
    if one.recall is not None and one.recall < 1:
        said += f", {one.recall:.1%} of the answers are found"
    if one.outcome.left:
        said += f", {one.outcome.left:,} are left"
    return said
