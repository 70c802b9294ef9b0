"""Tables of a live replay: cases, decisions, summary with the verdict."""

from collections.abc import Sequence
from itertools import groupby

import numpy as np

from adapt.core.partitioning.loop.live import Step
from adapt.core.partitioning.measures.imbalance import max_over_mean
from adapt.core.phrases import counted
from adapt.core.replan.names import IN_SAMPLE, STATIC, TriggerName
from adapt.core.replan.outcome import ReplanOutcome
from adapt.core.stage.input.offered_load import Bounds
from adapt.core.stage.outcome import QUEUEING
from adapt.core.table import Cell, Column, Kind, Table
from adapt.core.values import duration, number, size

GAINS = 0.02
"""Share of the busiest worker's time from which re-planning gains anything."""

CASE = Column("case", about="static (do nothing), a trigger, Flux on partitions, or an in-sample plan")

CASE_COLUMNS = (
    CASE,
    Column("busiest", Kind.NUMBER, "s", "busy time of the busiest worker of each period, migration included"),
    Column("imbalance", Kind.RATIO, about="the same over the time of the mean worker"),
    Column("imbalance_max", Kind.RATIO, about="imbalance of the worst period"),
    Column("migrations", Kind.COUNT, about="times at which partitions moved"),
    Column("adopted", Kind.COUNT, about="plans that the trigger adopted"),
    Column("rescales", Kind.COUNT, about="plans for another number of channels"),
    Column("moves", Kind.COUNT, about="partitions moved: pinned keys, or sets of hashed keys"),
    Column("moved", Kind.BYTES, "bytes", "state migrated"),
    Column("latency_p50", Kind.SECONDS, "s", "from the arrival of a row until it is processed"),
    Column("latency_p99", Kind.SECONDS, "s", "from the arrival of a row until it is processed"),
    QUEUEING,
    Column("lag_max", Kind.SECONDS, "s", "longest wait of a row at the source"),
    Column("drain", Kind.SECONDS, "s", "drain time: from the last arrival until all rows were processed"),
    Column("processed", Kind.COUNT, "rows"),
    Column("unprocessed", Kind.COUNT, "rows", "arrived and not processed at the end"),
)

DECISION_COLUMNS = (
    CASE,
    Column("at", Kind.TIME, about="time of the decision, from earlier rows alone"),
    Column("adopts", about="yes if a new plan was adopted"),
    Column("why"),
    Column("channels", Kind.COUNT),
    Column("rows", Kind.COUNT, about="rows until the next decision"),
    Column("imbalance", Kind.RATIO, about="load of the busiest channel over the mean until the next decision"),
    Column("m", Kind.RATIO, about="migration factor: state moved over the state of an average channel"),
    Column("migrated_keys", Kind.COUNT, about="pinned keys that change their channel"),
    Column("migrated_state", Kind.NUMBER, about="state moved, in rows unless weighed"),
)

SUMMARY_COLUMNS = (
    Column("verdict"),
    Column("best", about="the trigger with the least busy time of the busiest workers"),
    Column("rows", Kind.COUNT, about="replayed rows of the trace"),
    Column("decisions", Kind.COUNT, about="how often each trigger decided"),
    Column("static_full_at", Kind.NUMBER, about="speed-up at which the busiest worker is fully utilized"),
)


def cases_table(outcomes: Sequence[ReplanOutcome]) -> Table:
    """One row per case."""
    return Table.from_rows("Cases", CASE_COLUMNS, [_case(each) for each in outcomes])


def decisions_table(outcomes: Sequence[ReplanOutcome]) -> Table:
    """One row per trigger and step."""
    rows = [(each.case, *_decision(step)) for each in outcomes for step in each.steps]
    return Table.from_rows("Decisions", DECISION_COLUMNS, rows)


def folded(outcomes: Sequence[ReplanOutcome]) -> Table:
    """The decisions, those that keep the plan in one row."""
    rows: list[Sequence[Cell]] = []
    for each in outcomes:
        for adopts, group in groupby(each.steps, lambda step: step.adopted is not None):
            steps = list(group)
            rows += [(each.case, 1, *_decision(step)) for step in steps] if adopts else []
            rows += [] if adopts else [(each.case, len(steps), *_held(steps))]
    columns = (CASE, Column("decisions", Kind.COUNT), *DECISION_COLUMNS[1:])
    note = "Decisions that keep the plan are in one row, with the reason of the last."
    return Table.from_rows("Decisions", columns, rows, note=note)


def imbalance_by_case(decisions: Table) -> Table:
    """Imbalance of each step, one column per trigger."""
    records = decisions.records()
    cases = list(dict.fromkeys(str(row["case"]) for row in records))
    at: dict[Cell, dict[Cell, Cell]] = {}
    for row in records:
        at.setdefault(row["at"], {})[row["case"]] = row["imbalance"]
    columns = (Column("at", Kind.TIME), *(Column(case, Kind.RATIO) for case in cases))
    rows = [(time, *(of_case.get(case) for case in cases)) for time, of_case in at.items()]
    return Table.from_rows("Imbalance between decisions", columns, rows)


def summary_table(outcomes: Sequence[ReplanOutcome], bounds: Bounds, speedup: float) -> Table:
    """The run in one row, with the verdict."""
    triggered = [each for each in outcomes if each.steps]
    best = min(triggered, key=lambda each: each.busiest_s)
    full_at = speedup / bounds.static_load if bounds.static_load else None
    said = " ".join([_compared(outcomes, best), *_full(full_at)])
    row = said, best.case, bounds.rows, len(best.steps), full_at
    return Table.from_rows("The run", SUMMARY_COLUMNS, [row])


def _case(one: ReplanOutcome) -> list[Cell]:
    outcome = one.outcome
    latencies = (outcome.total.share_below_s(share) for share in (0.5, 0.99))
    decided = (one.adopted, one.rescales) if one.steps else (None, None)
    moved = one.migrations, *decided, len(outcome.simulated.moves), outcome.moved_bytes
    waited = outcome.lag_s, outcome.late_s, outcome.processed, outcome.left
    return [one.case, one.busiest_s, one.imbalance, one.worst, *moved, *latencies, outcome.queueing, *waited]


def _decision(step: Step) -> list[Cell]:
    adopted = step.adopted
    moved: list[Cell] = [None] * 3 if adopted is None else [adopted.m, len(adopted.moved[0]), adopted.moved_state]
    adopts = "no" if adopted is None else "yes"
    return [step.at_us, adopts, step.decided.why, step.plan.channels, step.rows, max_over_mean(step.loads), *moved]


def _held(steps: Sequence[Step]) -> list[Cell]:
    """Decisions in a row that keep the plan."""
    at, adopts, _, channels, *_ = _decision(steps[0])
    most, mean = (sum(float(measure(step.loads)) for step in steps) for measure in (np.max, np.mean))
    rows = sum(step.rows for step in steps)
    return [at, adopts, steps[-1].decided.why, channels, rows, most / mean if mean else None, None, None, None]


def _compared(outcomes: Sequence[ReplanOutcome], best: ReplanOutcome) -> str:
    by_case = {each.case: each for each in outcomes}
    static, in_sample = by_case[STATIC], by_case.get(IN_SAMPLE)
    others = [each for each in outcomes if each.case in set(TriggerName) - {best.case}]
    took = [f"doing nothing {_time(static)}", *(f"{each.case} {_time(each)}" for each in others)]
    took += [] if in_sample is None else [f"a plan built from the whole trace {_time(in_sample)}"]
    if best.busiest_s > (1 - GAINS) * static.busiest_s:
        saved = max(0.0, 1 - best.busiest_s / static.busiest_s)
        return f"Keep today's placement: re-planning saves at most {saved:.1%} of the busiest workers' time."
    latencies = (each.outcome.total.share_below_s(0.99) for each in (best, static))
    p99, p99_static = (duration(each or 0.0) for each in latencies)
    return (
        f"Re-plan by {best.case}: the busiest workers are busy for {_time(best)}; {', '.join(took)}. It migrates"
        f" {counted(best.migrations, 'time')} ({size(best.outcome.moved_bytes)}), and the p99 latency is {p99},"
        f" {p99_static} when doing nothing."
    )


def _time(one: ReplanOutcome) -> str:
    return duration(one.busiest_s)


def _full(full_at: float | None) -> list[str]:
    return (
        [] if full_at is None else [f"Without re-planning, the busiest worker is full at speed-up {number(full_at)}."]
    )
