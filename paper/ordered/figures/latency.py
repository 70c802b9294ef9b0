"""Figure 10: latency by cost of a tuple."""

from collections.abc import Mapping, Sequence

from adapt.core.ordered.chain.names import Reorder, WorkQueue
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, above, below, similar
from paper.experiments import Experiment, Results
from paper.ordered.figures.shown import (
    AIM,
    COST,
    LATENCY,
    QUEUES,
    RATE,
    all_judged,
    each,
    latency,
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

_WORKERS = 8
_CONTENTION = Contention(JITTER)
_OF_COST = Column("over cost", Kind.RATIO, about="latency over the cost of a tuple")
_CASE = Column("work queue", about="the work queue and its partitions")
_FULLEST = Column("in the ring buffer", Kind.NUMBER, "tuples", "most tuples that wait for earlier ones")

_CASES = ((WorkQueue.HYBRID, PARTITIONS), (WorkQueue.PARTITIONED, _WORKERS), (WorkQueue.PARTITIONED, PARTITIONS))
"""Work queues with their partitions: as in Figure 9, and as many for both."""

Key = tuple[WorkQueue, int, float]
"""Work queue, its partitions and cost."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs of both work queues by cost."""
    return [run for runs in _runs(scope).values() for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Latency over cost."""
    runs = {key: ran(results, of) for key, of in _runs(scope).items()}
    table = Table.from_rows(
        "Figure 10: latency by cost",
        [_CASE, COST, *averaged([LATENCY, _OF_COST, RATE, _FULLEST])],
        [
            (
                f"{QUEUES[queue]}, {partitions}",
                cost_us,
                *means(
                    each(seeds, latency),
                    _of_cost(seeds, cost_us),
                    each(seeds, rate),
                    [float(run.fullest) for run in seeds],
                ),
            )
            for (queue, partitions, cost_us), seeds in runs.items()
        ],
    )
    constants = said(_CONTENTION)
    charts = [
        lines(
            "Figure 10: latency by cost",
            f"{_WORKERS} workers, uniform keys. Model: {constants}. Bands: 95 %.",
            table,
            COST.name,
            LATENCY.name,
            _CASE.name,
            log_x=True,
            log_y=True,
        )
    ]
    told = (
        f"One partitioned operator, {_WORKERS} workers, uniform keys: {PARTITIONS} partitions with the hybrid queue and"
        ", with the partitioned one, as many as workers, as the paper says of Figure 9. It does not say how many "
        f"Figure 10 has, so the partitioned queue is shown with {PARTITIONS} too; claims are judged with {_WORKERS}. "
        f"The model assumes {constants}. With the hybrid queue, latency exceeds the cost by the wait for slower tuples "
        f"with earlier serial numbers, which depends on the jitter."
    )
    return section("Figure 10: latency", [told], charts, [table], _claims(scope, runs))


def _of_cost(runs: Sequence[Ran], cost_us: float) -> list[float]:
    return [1000 * run.latency_ms / cost_us for run in runs]


def _runs(scope: Scope) -> dict[Key, list[Simulated]]:
    found = {}
    for queue, partitions in _CASES:
        for cost_us in scope.costs_us:
            pipeline = Pipeline.of(one_partitioned, scope.few_rows, cost_us=cost_us, partitions=partitions)
            found[queue, partitions, cost_us] = scope.runs(
                pipeline, RunSettings(_WORKERS, Reorder.RETRY, queue), _CONTENTION
            )
    return found


def _claims(scope: Scope, runs: Mapping[Key, list[Ran]]) -> list[Judged]:
    hybrid = {cost: runs[WorkQueue.HYBRID, PARTITIONS, cost] for cost in scope.costs_us}
    partitioned = {cost: runs[WorkQueue.PARTITIONED, _WORKERS, cost] for cost in scope.costs_us}
    worst = max(scope.costs_us, key=lambda cost: sum(_of_cost(hybrid[cost], cost)))
    best = min(scope.costs_us, key=lambda cost: sum(_of_cost(partitioned[cost], cost)))
    uneven = max(
        scope.costs_us,
        key=lambda cost: abs(sum(over(hybrid[cost], partitioned[cost])) / scope.seeds - 1),
    )
    return all_judged(
        [
            (
                Claim(
                    "Figure 10",
                    "With the hybrid queue the latency is close to the cost of a tuple",
                    "close",
                    similar(),
                    f"largest latency over cost, at {worst:g} us",
                    "a tuple waits for slower earlier ones; without jitter it would not",
                ),
                _of_cost(hybrid[worst], worst),
            ),
            (
                Claim(
                    "Figure 10, target",
                    f"With the hybrid queue the latency is at most 1.5 times the cost {AIM}",
                    "< 1.5",
                    below(1.5),
                    f"largest latency over cost, at {worst:g} us",
                ),
                _of_cost(hybrid[worst], worst),
            ),
            (
                Claim(
                    "Figure 10",
                    "With the partitioned queue the latency is much higher",
                    "much higher",
                    above(1),
                    f"latency over that with the hybrid queue, at {best:g} us",
                ),
                over(partitioned[best], hybrid[best], latency),
            ),
            (
                Claim(
                    "Figure 10, target",
                    f"With the partitioned queue the latency is at least 20 times the cost {AIM}",
                    "> 20",
                    above(20, departs=1),
                    f"smallest latency over cost, at {best:g} us",
                ),
                _of_cost(partitioned[best], best),
            ),
            (
                Claim(
                    "Figure 10",
                    "Both queues have about the same throughput",
                    "similar",
                    similar(),
                    f"throughput of hybrid over partitioned at the largest difference, {uneven:g} us",
                ),
                over(hybrid[uneven], partitioned[uneven]),
            ),
        ]
    )
