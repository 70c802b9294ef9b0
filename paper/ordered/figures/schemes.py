"""Section 3.2: time of blocked workers, and Figures 8 to 11 by reorder buffer."""

from collections.abc import Mapping, Sequence

from adapt.core.ordered.chain.names import Reorder, WorkQueue
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, above, below, equal
from paper.experiments import Experiment, Results
from paper.ordered.figures.shown import (
    AIM,
    BLOCKED,
    LATENCY,
    QUEUE,
    QUEUES,
    RATE,
    SCHEME,
    SCHEMES,
    all_judged,
    dots,
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

_CONTENTION = Contention(JITTER, contention_us=0.1, send_us=0.1, output_us=0.05, lock_handover_us=0.3)
_COST_US = 10.0
_QUEUE = 4096
_RINGS = (16, 32, 64, 256, _QUEUE)
_RING = Column("ring buffer", Kind.COUNT, "tuples")
_FIGURE = Column("figure")
_CASE = Column("case")

Case = tuple[str, str, WorkQueue, Reorder]
"""Figure, what it varies, work queue and reorder buffer."""

Ring = tuple[Reorder, int]
"""Reorder buffer and its size."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs by reorder buffer: of each figure, and by size of the ring buffer."""
    return [run for runs in (*_runs(scope).values(), *_by_ring(scope).values()) for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Throughput, latency and blocked time by reorder buffer."""
    runs = {key: ran(results, of) for key, of in _runs(scope).items()}
    rings = {key: ran(results, of) for key, of in _by_ring(scope).items()}
    table = Table.from_rows(
        "Figures 8 to 11 by reordering",
        [_FIGURE, _CASE, QUEUE, SCHEME, *averaged([RATE, LATENCY, BLOCKED])],
        [
            (figure, case, QUEUES[queue], SCHEMES[scheme], *_measured(seeds))
            for (figure, case, queue, scheme), seeds in runs.items()
        ],
    )
    by_ring = Table.from_rows(
        "Blocked workers by ring buffer",
        [SCHEME, _RING, *averaged([RATE, LATENCY, BLOCKED])],
        [(SCHEMES[scheme], size, *_measured(seeds)) for (scheme, size), seeds in rings.items()],
    )
    constants = said(_CONTENTION)
    queries = Table.from_rows("Figure 8 by reordering", table.columns, [row for row in table.rows if row[0] == "8"])
    charts = [
        dots(
            "Figure 8 by reordering",
            f"By CT, hybrid queue, {scope.most} workers. Model: {constants}. Bars: 95 %.",
            queries,
            _CASE.name,
            RATE.name,
            SCHEME.name,
        ),
        lines(
            "Throughput by ring buffer",
            f"One partitioned operator of {_COST_US:g} us, hybrid queue, {scope.most} workers. Model: {constants}."
            " Bands: 95 %.",
            by_ring,
            _RING.name,
            RATE.name,
            SCHEME.name,
            log_x=True,
        ),
    ]
    told = (
        "The same cases with the paper's reordering, with ours, which claims no tuple without room in the ring buffer, "
        f"and with a lock, all with {scope.most} workers. Ring buffers have {_QUEUE:,} places, those of the paper's "
        "scheme with partitioned queues as many as the work queue, since it could hang with fewer. The first table "
        f"varies them, with work queues of {_QUEUE:,}. The model assumes {constants}."
    )
    return section("Section 3.2: blocked workers", [told], charts, [by_ring, table], _claims(scope, runs, rings))


def _blocked(run: Ran) -> float:
    return run.blocked


def _measured(seeds: Sequence[Ran]) -> list[float | None]:
    return means(each(seeds, rate), each(seeds, latency), each(seeds, _blocked))


def _runs(scope: Scope) -> dict[Case, list[Simulated]]:
    def one(queue: WorkQueue, scheme: Reorder, **arguments: float) -> list[Simulated]:
        partitions = PARTITIONS if queue is WorkQueue.HYBRID else scope.most
        pipeline = Pipeline.of(one_partitioned, scope.few_rows, partitions=partitions, **arguments)
        return scope.runs(pipeline, RunSettings(scope.most, scheme, queue), _CONTENTION)

    def of_query(name: str, queue: WorkQueue, scheme: Reorder, skew: float) -> list[Simulated]:
        return scope.query_runs(name, scope.most, work_queue=queue, reorder=scheme, contention=_CONTENTION, skew=skew)

    found = {}
    for scheme in SCHEMES:
        for name in scope.queries:
            found["8", name, WorkQueue.HYBRID, scheme] = of_query(name, WorkQueue.HYBRID, scheme, 0.0)
        for queue in QUEUES:
            for sigma in (scope.sigmas[0], scope.sigmas[-1]):
                found["9", f"sigma {sigma:g}", queue, scheme] = one(queue, scheme, cost_us=_COST_US, sigma=sigma)
            for cost_us in scope.costs_us:
                found["10", f"{cost_us:g} us", queue, scheme] = one(queue, scheme, cost_us=cost_us)
            for name in scope.queries:
                found["11", name, queue, scheme] = of_query(name, queue, scheme, 0.6)
    return found


def _by_ring(scope: Scope) -> dict[Ring, list[Simulated]]:
    pipeline = Pipeline.of(one_partitioned, scope.few_rows, cost_us=_COST_US, partitions=PARTITIONS)
    return {
        (scheme, size): scope.runs(
            pipeline, RunSettings(scope.most, scheme, ring_buffer=size, queue_capacity=_QUEUE), _CONTENTION
        )
        for scheme in SCHEMES
        for size in _RINGS
    }


def _claims(scope: Scope, runs: Mapping[Case, list[Ran]], rings: Mapping[Ring, list[Ran]]) -> list[Judged]:
    apart = max(scope.queries, key=lambda name: sum(abs(ratio - 1) for ratio in _over_claim(runs, name)))
    smallest = rings[Reorder.RETRY, _RINGS[0]]
    claims: list[tuple[Claim, Sequence[float]]] = [
        (
            Claim(
                "Section 3.2",
                f"With a ring buffer of {_QUEUE:,} workers are rarely blocked on {name}",
                "avoid as much as possible",
                below(0.01),
                f"share of the workers' time, {scope.most} workers",
                "it has fewer partitions than there are workers, and those of slow ones hold back all others",
            ),
            each(runs["8", name, WorkQueue.HYBRID, Reorder.RETRY], _blocked),
        )
        for name in scope.queries
    ]
    claims += [
        (
            Claim(
                "Section 3.2",
                f"With a ring buffer of {_RINGS[0]} workers are blocked longer",
                "appropriately sized",
                above(0.01),
                f"share of the workers' time, one operator of {_COST_US:g} us, {scope.most} workers",
            ),
            each(smallest, _blocked),
        ),
        (
            Claim(
                "Section 3.2, target",
                f"With a ring buffer of {_RINGS[0]}, workers of the paper do more than ours, which are never blocked "
                f"{AIM}",
                "> 1",
                above(1),
                f"throughput of the paper's scheme over ours, one operator of {_COST_US:g} us, {scope.most} workers",
            ),
            over(smallest, rings[Reorder.CLAIM, _RINGS[0]]),
        ),
        (
            Claim(
                "Section 3.2, target",
                f"On the queries the paper's scheme and ours have the same throughput {AIM}",
                "similar",
                equal(),
                f"throughput of the paper's over ours where they differ most, {apart}",
            ),
            _over_claim(runs, apart),
        ),
    ]
    return all_judged(claims)


def _over_claim(runs: Mapping[Case, list[Ran]], name: str) -> list[float]:
    return over(runs["8", name, WorkQueue.HYBRID, Reorder.RETRY], runs["8", name, WorkQueue.HYBRID, Reorder.CLAIM])
