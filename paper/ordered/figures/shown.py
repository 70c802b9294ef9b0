"""Shared names, colors, columns and claims of the ordered figures."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from adapt.core.ordered.chain.names import Heuristic, Reorder, WorkQueue
from adapt.core.ordered.engine.settings import Contention
from adapt.core.table import Column, Kind
from paper import charts, claims
from paper.claims import Claim, Judged
from paper.estimates import Estimate
from paper.ordered.measured import Ran
from paper.report import cells

PAPER_RUNS = 3
"""Number of runs that the paper averages over (section 7)."""

LABELS: Mapping[Heuristic, str] = {
    Heuristic.CT: "CT",
    Heuristic.LP: "LP",
    Heuristic.ET: "ET",
    Heuristic.QST: "QST",
    Heuristic.CT_LITERAL: "CT as printed",
}
"""Display names of the heuristics."""

HEURISTICS = (Heuristic.CT, Heuristic.LP, Heuristic.ET, Heuristic.QST)
"""The paper's heuristics."""

QUEUES: Mapping[WorkQueue, str] = {WorkQueue.HYBRID: "hybrid", WorkQueue.PARTITIONED: "partitioned"}
"""Display names of the work queues."""

SCHEMES: Mapping[Reorder, str] = {
    Reorder.RETRY: "non-blocking",
    Reorder.CLAIM: "claim (ours)",
    Reorder.LOCK: "lock-based",
}
"""Display names of the reorder buffers."""

lines = partial(charts.lines, order=(*LABELS.values(),))
dots = partial(charts.dots, order=(*LABELS.values(),))

judged = partial(claims.judged, runs=PAPER_RUNS)
"""Judge as a mean of the paper's runs."""

AIM = "(a target of ours)"
"""Suffix of claims that the paper does not make."""

QUERY = Column("query")
HEURISTIC = Column("heuristic")
QUEUE = Column("queue", about="the work queue of partitioned operators")
SCHEME = Column("reordering")
WORKERS = Column("workers", Kind.COUNT)
COST = Column("cost", Kind.NUMBER, "us", "of a tuple")
RATE = Column("throughput", Kind.NUMBER, "tuples/s", "tuples that enter")
SPEED_UP = Column("speed-up", Kind.RATIO, about="throughput over that of one worker")
LATENCY = Column("latency", Kind.NUMBER, "ms", "mean processing latency")
BLOCKED = Column("blocked", Kind.SHARE, about="share of worker time: waits for room in a ring buffer or for a lock")
CONSTANTS = Column("constants", about="constants of the model in microseconds; assumed, not fitted")

Measure = Callable[[Ran], float]


def rate(run: Ran) -> float:
    """Tuples per second of each run."""
    return run.rate


def latency(run: Ran) -> float:
    """Processing latency of each run in milliseconds."""
    return run.latency_ms


def said(contention: Contention) -> str:
    """The constants of the model as text."""
    parts = [
        f"kappa {contention.contention_us:g}",
        f"d {contention.send_us:g}",
        f"e {contention.output_us:g}",
        f"h {contention.lock_handover_us:g}",
    ]
    return f"{', '.join(parts)}; jitter {contention.jitter:g}"


def each(runs: Sequence[Ran], measure: Measure) -> list[float]:
    """A number per seed."""
    return [measure(run) for run in runs]


def over(
    runs: Sequence[Ran], others: Sequence[Ran], measure: Measure = rate, their: Measure | None = None
) -> list[float]:
    """Ratio of two series, seed by seed."""
    return [measure(run) / (their or measure)(other) for run, other in zip(runs, others, strict=True)]


def over_most(runs: Sequence[Ran], others: Sequence[Sequence[Ran]], measure: Measure = rate) -> list[float]:
    """Ratio to the highest of several series, seed by seed."""
    return [
        measure(run) / max(measure(other) for other in together)
        for run, together in zip(runs, zip(*others, strict=True), strict=True)
    ]


def over_least(runs: Sequence[Ran], others: Sequence[Sequence[Ran]], measure: Measure) -> list[float]:
    """Ratio to the lowest of several series, seed by seed."""
    return [
        measure(run) / min(measure(other) for other in together)
        for run, together in zip(runs, zip(*others, strict=True), strict=True)
    ]


def means(*values: Sequence[float]) -> list[float | None]:
    """Cells of several series with a number per seed."""
    return cells(*(Estimate.of(series) for series in values))


def all_judged(claimed: Sequence[tuple[Claim, Sequence[float]]]) -> list[Judged]:
    """Judge every claim by its numbers."""
    return [judged(claim, values) for claim, values in claimed]


def peaks(runs: Mapping[tuple[Any, ...], list[Ran]]) -> dict[tuple[Any, ...], tuple[int, list[Ran]]]:
    """Number of workers at peak throughput, and its runs.

    By case; the key ends with the workers.
    """
    best: dict[tuple[Any, ...], tuple[int, list[Ran]]] = {}
    for (*case, workers), seeds in runs.items():
        before = best.get(tuple(case))
        if before is None or Estimate.of(each(seeds, rate)).mean > Estimate.of(each(before[1], rate)).mean:
            best[tuple(case)] = workers, seeds
    return best
