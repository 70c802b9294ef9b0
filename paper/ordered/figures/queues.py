"""Figure 11: hybrid and partitioned work queues under the queries."""

from collections.abc import Mapping, Sequence

from adapt.core.ordered.chain.names import WorkQueue
from adapt.core.ordered.engine.settings import Contention
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, above, similar
from paper.experiments import Experiment, Results
from paper.ordered.figures.shown import (
    LATENCY,
    QUERY,
    QUEUE,
    QUEUES,
    RATE,
    WORKERS,
    all_judged,
    dots,
    each,
    latency,
    means,
    over,
    peaks,
    rate,
    said,
)
from paper.ordered.measured import Ran, Simulated
from paper.ordered.pipelines import CATEGORIES, KEYS
from paper.ordered.scope import JITTER, Scope, ran
from paper.report import Shown, averaged, section

_KAPPA_US = 0.1
_SKEWS = {0.0: "even", 0.6: "Zipf 0.6", 1.0: "Zipf 1"}
_JUDGED = 0.6
_KEYS_ARE = Column("keys")
_PEAK = Column("peak workers", Kind.COUNT, about="number of workers with the highest mean throughput")
_CONTENTION = Contention(JITTER, _KAPPA_US)

Key = tuple[float, str, WorkQueue, int]
"""Skew, query, work queue and workers."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs by query, work queue, skew and number of workers."""
    return [run for runs in _runs(scope).values() for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Peak throughput, and the latency at the peak."""
    runs = {key: ran(results, of) for key, of in _runs(scope).items()}
    best = peaks(runs)
    table = Table.from_rows(
        "Figure 11: peak throughput by queue",
        [_KEYS_ARE, QUERY, QUEUE, _PEAK, *averaged([RATE, LATENCY])],
        [
            (_SKEWS[skew], name, QUEUES[queue], workers, *means(each(seeds, rate), each(seeds, latency)))
            for (skew, name, queue), (workers, seeds) in best.items()
        ],
    )
    everything = Table.from_rows(
        "Figure 11: every number of workers",
        [_KEYS_ARE, QUERY, QUEUE, WORKERS, *averaged([RATE, LATENCY])],
        [
            (_SKEWS[skew], name, QUEUES[queue], workers, *means(each(seeds, rate), each(seeds, latency)))
            for (skew, name, queue, workers), seeds in runs.items()
        ],
    )
    constants = said(_CONTENTION)
    judged = Table.from_rows(
        f"Figure 11: keys are {_SKEWS[_JUDGED]}",
        table.columns,
        [row for row in table.rows if row[0] == _SKEWS[_JUDGED]],
    )
    charts = [
        dots(
            f"Figure 11: {what}",
            f"By CT, at the peak of each; keys are {_SKEWS[_JUDGED]}. Model: {constants}. Bars: 95 %.",
            judged,
            QUERY.name,
            column.name,
            QUEUE.name,
            log_y=is_log,
        )
        for what, column, is_log in (("peak throughput", RATE, False), ("latency", LATENCY, True))
    ]
    told = (
        "By CT, with 100 partitions and the hybrid queue, or a partition per worker and the partitioned queue; Q15 "
        f"has at most {CATEGORIES} partitions, one per category, with uniform load. The paper does not give the skew "
        f"of the"
        f" keys: there are {KEYS} of each kind, uniform or Zipf-distributed; claims use {_SKEWS[_JUDGED]}."
        f" The model assumes {constants}."
    )
    return section("Figure 11: queues under queries", [told], charts, [table, everything], _claims(scope, best))


def _runs(scope: Scope) -> dict[Key, list[Simulated]]:
    return {
        (skew, name, queue, workers): scope.query_runs(
            name, workers, work_queue=queue, contention=_CONTENTION, skew=skew
        )
        for skew in _SKEWS
        for name in scope.queries
        for queue in QUEUES
        for workers in scope.workers
        if workers > 1
    }


def _claims(scope: Scope, best: Mapping[tuple[object, ...], tuple[int, list[Ran]]]) -> list[Judged]:
    claims: list[tuple[Claim, Sequence[float]]] = []
    for name in scope.queries:
        hybrid, partitioned = (best[_JUDGED, name, queue][1] for queue in (WorkQueue.HYBRID, WorkQueue.PARTITIONED))
        unclear = name == "Q15"
        claims.append(
            (
                Claim(
                    "Figure 11",
                    f"The difference in throughput is unclear on {name}"
                    if unclear
                    else f"The hybrid queue has the higher throughput on {name}",
                    "unclear" if unclear else "much higher",
                    similar() if unclear else above(1),
                    "peak throughput of hybrid over partitioned",
                    "the last operators limit both alike",
                ),
                over(hybrid, partitioned),
            )
        )
        claims.append(
            (
                Claim(
                    "Figure 11",
                    f"The hybrid queue has no higher latency on {name}",
                    "better in 3 of 5, else similar",
                    above(0.8),
                    "latency of partitioned over hybrid, each at its peak",
                ),
                over(partitioned, hybrid, latency),
            )
        )
    return all_judged(claims)
