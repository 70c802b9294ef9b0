"""What the figures of ordered streams have in common: names, colours, columns, and claims."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from adapt.core.ordered.chain.names import Heuristic, Reorder, WorkQueue
from adapt.core.ordered.engine.contention import Contention
from adapt.core.table import Column, Kind
from paper import charts, claims
from paper.claims import Claim, Judged
from paper.estimates import Estimate
from paper.ordered.measured import Ran
from paper.report import cells

PAPER_RUNS = 3
"""What a number of the paper is the mean of (section 7)."""

LABELS: Mapping[Heuristic, str] = {
    Heuristic.CT: "CT",
    Heuristic.LP: "LP",
    Heuristic.ET: "ET",
    Heuristic.QST: "QST",
    Heuristic.CT_LITERAL: "CT as printed",
}
"""How each heuristic is named."""

HEURISTICS = (Heuristic.CT, Heuristic.LP, Heuristic.ET, Heuristic.QST)
"""The paper's."""

QUEUES: Mapping[WorkQueue, str] = {WorkQueue.HYBRID: "hybrid", WorkQueue.PARTITIONED: "partitioned"}
"""How each work queue is named."""

SCHEMES: Mapping[Reorder, str] = {Reorder.CLAIM: "non-blocking", Reorder.LOCK: "lock-based"}
"""How each way of reordering is named."""

lines = partial(charts.lines, order=(*LABELS.values(),))
dots = partial(charts.dots, order=(*LABELS.values(),))

judged = partial(claims.judged, runs=PAPER_RUNS)
"""Judged as a mean of the paper's."""

AIM = "(a target of ours)"
"""Ends claims that the paper does not make."""

QUERY = Column("query")
HEURISTIC = Column("heuristic")
QUEUE = Column("queue", about="the work queue of partitioned operators")
SCHEME = Column("reordering")
WORKERS = Column("workers", Kind.COUNT)
COST = Column("cost", Kind.NUMBER, "us", "of a tuple")
RATE = Column("throughput", Kind.NUMBER, "tuples/s", "tuples that enter")
SPEED_UP = Column("speed-up", Kind.RATIO, about="throughput over that of one worker")
LATENCY = Column("latency", Kind.NUMBER, "ms", "of processing, on average")
CONSTANTS = Column("constants", about="of the model, in microseconds; assumed, not fitted")

Measure = Callable[[Ran], float]


def rate(run: Ran) -> float:
    """Tuples a second."""
    return run.rate


def latency(run: Ran) -> float:
    """Milliseconds of processing."""
    return run.latency_ms


def said(contention: Contention) -> str:
    """The constants of the model, in words."""
    parts = [
        f"kappa {contention.contention_us:g}",
        f"d {contention.send_us:g}",
        f"e {contention.output_us:g}",
        f"h {contention.lock_handover_us:g}",
    ]
    return f"{', '.join(parts)}; jitter {contention.jitter:g}"


def each(runs: Sequence[Ran], measure: Measure) -> list[float]:
    """A number a seed."""
    return [measure(run) for run in runs]


def over(
    runs: Sequence[Ran], others: Sequence[Ran], measure: Measure = rate, their: Measure | None = None
) -> list[float]:
    """One over the other, seed by seed."""
    return [measure(run) / (their or measure)(other) for run, other in zip(runs, others, strict=True)]


def over_most(runs: Sequence[Ran], others: Sequence[Sequence[Ran]], measure: Measure = rate) -> list[float]:
    """Over the most of several, seed by seed."""
    return [
        measure(run) / max(measure(other) for other in together)
        for run, together in zip(runs, zip(*others, strict=True), strict=True)
    ]


def over_least(runs: Sequence[Ran], others: Sequence[Sequence[Ran]], measure: Measure) -> list[float]:
    """Over the least of several, seed by seed."""
    return [
        measure(run) / min(measure(other) for other in together)
        for run, together in zip(runs, zip(*others, strict=True), strict=True)
    ]


def means(*values: Sequence[float]) -> list[float | None]:
    """Cells of several series, each of a number a seed."""
    return cells(*(Estimate.of(series) for series in values))


def all_judged(claimed: Sequence[tuple[Claim, Sequence[float]]]) -> list[Judged]:
    """Every claim by its numbers."""
    return [judged(claim, values) for claim, values in claimed]


def peaks(runs: Mapping[tuple[Any, ...], list[Ran]]) -> dict[tuple[Any, ...], tuple[int, list[Ran]]]:
    """Of each case the workers with the highest throughput on average, and its runs; the last of a key are workers."""
    best: dict[tuple[Any, ...], tuple[int, list[Ran]]] = {}
    for (*case, workers), seeds in runs.items():
        before = best.get(tuple(case))
        if before is None or Estimate.of(each(seeds, rate)).mean > Estimate.of(each(before[1], rate)).mean:
            best[tuple(case)] = workers, seeds
    return best
