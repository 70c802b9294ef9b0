"""Figures 8, 11 and 14 by the shipped retail chains, whose functions run on generated streams."""

from collections.abc import Mapping, Sequence

from adapt.core.ordered.chain.names import Heuristic, Reorder, WorkQueue
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.table import Table
from paper.claims import Claim, Judged, above, below, similar
from paper.experiments import Experiment, Results
from paper.ordered.figures.shown import (
    HEURISTIC,
    HEURISTICS,
    LABELS,
    LATENCY,
    QUERY,
    QUEUE,
    QUEUES,
    RATE,
    SCHEME,
    SCHEMES,
    SPEED_UP,
    WORKERS,
    all_judged,
    dots,
    each,
    latency,
    means,
    over,
    over_least,
    over_most,
    rate,
    said,
)
from paper.ordered.measured import Pipeline, Ran, Simulated
from paper.ordered.pipelines import CATEGORIES, PARTITIONS, retail
from paper.ordered.scope import JITTER, LONG_QUEUE, Scope, ran
from paper.report import Shown, averaged, section

_CONTENTION = Contention(JITTER, contention_us=0.1, send_us=0.1, output_us=0.05, lock_handover_us=0.3)
_CT, _HYBRID, _PAPERS = Heuristic.CT, WorkQueue.HYBRID, Reorder.RETRY

How = tuple[Heuristic, WorkQueue, Reorder]
Key = tuple[str, How, int]
"""Query, heuristic with work queue and reorder buffer, and workers."""

_BASE: How = (_CT, _HYBRID, _PAPERS)
_WAYS: tuple[How, ...] = (
    *((heuristic, _HYBRID, _PAPERS) for heuristic in HEURISTICS),
    (_CT, WorkQueue.PARTITIONED, _PAPERS),
    (_CT, _HYBRID, Reorder.LOCK),
)


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs by query, heuristic, work queue, reorder buffer and workers."""
    return [run for runs in _runs(scope).values() for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Throughput, speed-up and latency of each chain."""
    runs = {key: ran(results, of) for key, of in _runs(scope).items()}
    table = Table.from_rows(
        "Retail chains",
        [QUERY, HEURISTIC, QUEUE, SCHEME, WORKERS, *averaged([RATE, SPEED_UP, LATENCY])],
        [
            (
                *(name, LABELS[how[0]], QUEUES[how[1]], SCHEMES[how[2]], workers),
                *means(each(seeds, rate), over(seeds, runs[name, _BASE, 1]), each(seeds, latency)),
            )
            for (name, how, workers), seeds in runs.items()
        ],
    )
    constants = said(_CONTENTION)
    heuristics = Table.from_rows(
        f"Retail chains: {scope.most} workers",
        table.columns,
        [row for row in table.rows if row[2:5] == (QUEUES[_HYBRID], SCHEMES[_PAPERS], scope.most)],
    )
    charts = [
        dots(
            f"Retail chains: {what}",
            f"{scope.most} workers, hybrid queue. Model: {constants}. Bars: 95 %.",
            heuristics,
            QUERY.name,
            column.name,
            HEURISTIC.name,
            log_y=is_log,
        )
        for what, column, is_log in (("speed-up over one worker", SPEED_UP, False), ("latency", LATENCY, True))
    ]
    told = (
        "Here the model runs the functions of the shipped chains retail-q1 to -q15 on generated clicks and sales, so "
        "that keys, their skew, selectivities and bursts at the ends of windows are those of the streams. Sales have "
        "3,000 items, Zipf-distributed, and tickets of several lines; clicks come in sessions of 20,000 users, "
        "Zipf-distributed with an exponent of 0.8. A tuple costs as much as in the parts above (1 to 4 us by operator),"
        f" and a punctuation nothing. The hybrid queue has {PARTITIONS} partitions, the partitioned one as many as "
        f"workers; Q15 has at most {CATEGORIES}. The model assumes {constants}."
    )
    return section("Figures 8, 11 and 14 by the retail chains", [told], charts, [table], _claims(scope, runs))


def _runs(scope: Scope) -> dict[Key, list[Simulated]]:
    found = {}
    for name in scope.queries:
        for how, workers in ((_BASE, 1), *((way, scope.most) for way in _WAYS)):
            heuristic, work_queue, reorder = how
            partitions = PARTITIONS if work_queue is _HYBRID else workers
            pipeline = Pipeline.of(retail, scope.rows, name=name, partitions=partitions)
            settings = RunSettings(workers, reorder, work_queue, heuristic, queue_capacity=LONG_QUEUE)
            found[name, how, workers] = scope.runs(pipeline, settings, _CONTENTION)
    return found


def _claims(scope: Scope, runs: Mapping[Key, list[Ran]]) -> list[Judged]:
    claims: list[tuple[Claim, Sequence[float]]] = []
    where = f"{scope.most} workers, retail chain on its stream"
    for name in scope.queries:
        by = {how: runs[name, how, scope.most] for how in _WAYS}
        others = [by[heuristic, _HYBRID, _PAPERS] for heuristic in HEURISTICS if heuristic is not _CT]
        last = [by[heuristic, _HYBRID, _PAPERS] for heuristic in HEURISTICS if heuristic is not Heuristic.LP]
        unclear = name == "Q15"
        claims += [
            (
                Claim(
                    "Figure 8a, retail",
                    f"CT has the best throughput on {name}",
                    "best",
                    above(1),
                    f"throughput over that of the best other heuristic, {where}",
                    "stateful operators and bursts at the ends of windows limit all heuristics alike",
                ),
                over_most(by[_BASE], others),
            ),
            (
                Claim(
                    "Figure 8b, retail",
                    f"LP has the lowest latency on {name}",
                    "lowest",
                    below(1),
                    f"latency of LP over the lowest of the others, {where}",
                    "bursts at the ends of windows wait at the last operators under all heuristics",
                ),
                over_least(by[Heuristic.LP, _HYBRID, _PAPERS], last, latency),
            ),
            (
                Claim(
                    "Figure 11, retail",
                    f"The difference in throughput is unclear on {name}"
                    if unclear
                    else f"The hybrid queue has the higher throughput on {name}",
                    "unclear" if unclear else "much higher",
                    similar() if unclear else above(1),
                    f"throughput of hybrid over partitioned, {where}",
                    "each partition sends its own most frequent items to the last operator, so more partitions give it "
                    "more tuples",
                ),
                over(by[_BASE], by[_CT, WorkQueue.PARTITIONED, _PAPERS]),
            ),
            (
                Claim(
                    "Figure 14, retail",
                    f"Non-blocking reordering has the higher throughput on {name}",
                    "better",
                    above(1),
                    f"throughput over that of lock-based, {where}",
                    "the last operators limit both alike",
                ),
                over(by[_BASE], by[_CT, _HYBRID, Reorder.LOCK]),
            ),
        ]
    return all_judged(claims)
