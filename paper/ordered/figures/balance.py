"""Figure 9: uneven load across partitions."""

from collections.abc import Mapping, Sequence

from adapt.core.ordered.chain.names import Reorder, WorkQueue
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, above, below, similar
from paper.experiments import Experiment, Results
from paper.ordered.figures.shown import (
    AIM,
    QUEUE,
    QUEUES,
    RATE,
    SPEED_UP,
    WORKERS,
    all_judged,
    each,
    lines,
    means,
    over,
    rate,
    said,
)
from paper.ordered.measured import Pipeline, Ran, Simulated
from paper.ordered.pipelines import PARTITIONS, one_partitioned
from paper.ordered.scope import JITTER, Scope, ran
from paper.report import Shown, averaged, section

_COST_US = 10.0
_SIGMA = Column("sigma", Kind.NUMBER, about="deviation of the keys, which are divided into ranges")
_CONTENTION = Contention(JITTER)

Key = tuple[WorkQueue, float, int]
"""Work queue, sigma and workers."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs of both work queues by sigma and number of workers."""
    return [run for runs in _runs(scope).values() for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Speed-up by sigma and by workers."""
    runs = {key: ran(results, of) for key, of in _runs(scope).items()}
    table = Table.from_rows(
        "Figure 9: uneven load",
        [QUEUE, _SIGMA, WORKERS, *averaged([RATE, SPEED_UP])],
        [
            (QUEUES[queue], sigma, workers, *means(each(seeds, rate), over(seeds, runs[queue, sigma, 1])))
            for (queue, sigma, workers), seeds in runs.items()
        ],
    )
    constants = said(_CONTENTION)
    at_most = Table.from_rows(
        f"Figure 9: {scope.most} workers", table.columns, [row for row in table.rows if row[2] == scope.most]
    )
    skewed = Table.from_rows(
        f"Figure 9: sigma {scope.sigmas[0]:g}", table.columns, [row for row in table.rows if row[1] == scope.sigmas[0]]
    )
    charts = [
        lines(
            f"Figure 9: speed-up with {scope.most} workers",
            f"The higher sigma, the more uniform the keys. Model: {constants}. Bands: 95 %.",
            at_most,
            _SIGMA.name,
            SPEED_UP.name,
            QUEUE.name,
            log_x=True,
        ),
        lines(
            f"Figure 9: speed-up with sigma {scope.sigmas[0]:g}",
            f"Model: {constants}. Bands: 95 %.",
            skewed,
            WORKERS.name,
            SPEED_UP.name,
            QUEUE.name,
        ),
    ]
    told = (
        f"One partitioned operator of {_COST_US:g} us; keys of a normal distribution on [-1, 1], divided into ranges "
        f"of equal width: {PARTITIONS} with the hybrid queue, as many as workers with the partitioned one. With 2 "
        f"workers the ranges meet at the mean, and throughput does not collapse. The model assumes {constants}."
    )
    return section("Figure 9: uneven partitions", [told], charts, [table], _claims(scope, runs))


def _runs(scope: Scope) -> dict[Key, list[Simulated]]:
    found = {}
    for queue in QUEUES:
        for sigma in scope.sigmas:
            for workers in scope.workers:
                partitions = PARTITIONS if queue is WorkQueue.HYBRID else workers
                pipeline = Pipeline.of(
                    one_partitioned, scope.few_rows, cost_us=_COST_US, partitions=partitions, sigma=sigma
                )
                settings = RunSettings(workers, Reorder.RETRY, queue)
                found[queue, sigma, workers] = scope.runs(pipeline, settings, _CONTENTION)
    return found


def _claims(scope: Scope, runs: Mapping[Key, list[Ran]]) -> list[Judged]:
    least, most = scope.sigmas[0], scope.sigmas[-1]

    def hybrid_over(sigma: float) -> list[float]:
        return over(runs[WorkQueue.HYBRID, sigma, scope.most], runs[WorkQueue.PARTITIONED, sigma, scope.most])

    def kept(queue: WorkQueue) -> list[float]:
        return over(runs[queue, least, scope.most], runs[queue, most, scope.most])

    return all_judged(
        [
            (
                Claim(
                    "Figure 9",
                    "Both queues perform alike with almost uniform keys",
                    "similar",
                    similar(),
                    f"throughput of hybrid over partitioned at sigma {most:g}, {scope.most} workers",
                ),
                hybrid_over(most),
            ),
            (
                Claim(
                    "Figure 9",
                    "With skewed keys the throughput of the partitioned queue drops sharply",
                    "heavily",
                    below(0.5, departs=1),
                    f"its throughput at sigma {least:g} over that at {most:g}, {scope.most} workers",
                ),
                kept(WorkQueue.PARTITIONED),
            ),
            (
                Claim(
                    "Figure 9",
                    "With skewed keys the hybrid queue keeps its throughput",
                    "consistently",
                    similar(),
                    f"its throughput at sigma {least:g} over that at {most:g}, {scope.most} workers",
                    "the largest of its ranges holds a share of the keys that one worker must process alone",
                ),
                kept(WorkQueue.HYBRID),
            ),
            (
                Claim(
                    "Figure 9, target",
                    f"With skewed keys the hybrid queue has at least 4 times the throughput {AIM}",
                    "> 4",
                    above(4, departs=1),
                    f"throughput of hybrid over partitioned at sigma {least:g}, {scope.most} workers",
                ),
                hybrid_over(least),
            ),
            (
                Claim(
                    "Figure 9, target",
                    f"With almost uniform keys the queues are within 10 % {AIM}",
                    "< 1.1",
                    below(1.1),
                    f"throughput of hybrid over partitioned at sigma {most:g}, {scope.most} workers",
                ),
                hybrid_over(most),
            ),
        ]
    )
