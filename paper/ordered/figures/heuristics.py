"""Figure 8: throughput and latency of the heuristics over the queries."""

from collections.abc import Mapping, Sequence

from adapt.core.charts.chart import Chart
from adapt.core.ordered.chain.names import Heuristic
from adapt.core.ordered.engine.settings import Contention
from adapt.core.table import Table
from paper.claims import Claim, Judged, above, below, similar
from paper.experiments import Experiment, Results
from paper.ordered.figures.shown import (
    AIM,
    HEURISTIC,
    HEURISTICS,
    LABELS,
    LATENCY,
    QUERY,
    RATE,
    SPEED_UP,
    WORKERS,
    all_judged,
    dots,
    each,
    latency,
    lines,
    means,
    over,
    over_least,
    over_most,
    rate,
    said,
)
from paper.ordered.measured import Ran, Simulated
from paper.ordered.pipelines import CATEGORIES
from paper.ordered.scope import JITTER, KAPPA_US, PIPELINED, Scope, ran
from paper.report import Shown, averaged, section

_LINEAR = {"Q1": 16, "Q2": 8, "Q3": 8, "Q4": 8, "Q15": 12}
"""Number of cores up to which CT scales almost linearly."""

_LEVEL = ("Q1", "Q15")
"""Queries on which LP is as good as CT."""

_CROWDED = (
    "kappa is an assumption; the time it adds grows with the number of workers on the operator: see the next part"
)

Key = tuple[str, Heuristic, int]
"""Query, heuristic and workers."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs by query, heuristic and number of workers.

    One worker with CT only.
    """
    return [run for runs in _runs(scope).values() for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Speed-up by workers, and latency with the most workers."""
    runs = {key: ran(results, of) for key, of in _runs(scope).items()}
    table = Table.from_rows(
        "Figure 8: heuristics",
        [QUERY, HEURISTIC, WORKERS, *averaged([RATE, SPEED_UP, LATENCY])],
        [
            (
                name,
                LABELS[heuristic],
                workers,
                *means(each(seeds, rate), over(seeds, runs[name, Heuristic.CT, 1]), each(seeds, latency)),
            )
            for (name, heuristic, workers), seeds in runs.items()
        ],
    )
    constants = said(Contention(JITTER, KAPPA_US))
    told = (
        f"The model uses assumed constants ({constants}; the next part varies kappa). Costs of operators are"
        " 1 to 4 us and their selectivities follow from what the queries do, since the paper gives neither. Work queues"
        " are long, the hybrid queue has 100 partitions, Q15 has its 10 categories. Speed-ups are over one worker."
    )
    return section(
        "Figure 8: scheduling heuristics", [told], _charts(scope, table, constants), [table], _claims(scope, runs)
    )


def _runs(scope: Scope) -> dict[Key, list[Simulated]]:
    return {
        (name, heuristic, workers): scope.query_runs(name, workers, heuristic=heuristic)
        for name in scope.queries
        for heuristic in HEURISTICS
        for workers in scope.workers
        if workers > 1 or heuristic is Heuristic.CT
    }


def _charts(scope: Scope, table: Table, constants: str) -> list[Chart]:
    by_query = [
        lines(
            f"Figure 8a: {name}",
            f"Speed-up over one worker. Model: {constants}. Bands: 95 %.",
            Table.from_rows(f"Figure 8: {name}", table.columns, [row for row in table.rows if row[0] == name]),
            WORKERS.name,
            SPEED_UP.name,
            HEURISTIC.name,
        )
        for name in scope.queries
    ]
    most = Table.from_rows(
        f"Figure 8b: {scope.most} workers", table.columns, [row for row in table.rows if row[2] == scope.most]
    )
    return [
        *by_query,
        dots(
            "Figure 8b: latency",
            f"Processing latency with {scope.most} workers. Model: {constants}. Bars: 95 %.",
            most,
            QUERY.name,
            LATENCY.name,
            HEURISTIC.name,
            log_y=True,
        ),
    ]


def _claims(scope: Scope, runs: Mapping[Key, list[Ran]]) -> list[Judged]:
    claims: list[tuple[Claim, Sequence[float]]] = []
    for name in scope.queries:
        by = {heuristic: runs[name, heuristic, scope.most] for heuristic in HEURISTICS}
        claims += [_linear(scope, runs, name), *_throughput(scope, name, by), *_latency(scope, name, by)]
    return all_judged(claims)


def _linear(scope: Scope, runs: Mapping[Key, list[Ran]], name: str) -> tuple[Claim, Sequence[float]]:
    cores = max(workers for workers in scope.workers if workers <= _LINEAR[name])
    return (
        Claim(
            "Figure 8a",
            f"CT scales almost linearly up to {_LINEAR[name]} cores for {name}",
            "almost linearly",
            similar(),
            f"speed-up over workers, with {cores}",
            _CROWDED,
        ),
        [gain / cores for gain in over(runs[name, Heuristic.CT, cores], runs[name, Heuristic.CT, 1])],
    )


def _throughput(scope: Scope, name: str, by: Mapping[Heuristic, list[Ran]]) -> list[tuple[Claim, Sequence[float]]]:
    others = [by[heuristic] for heuristic in HEURISTICS if heuristic is not Heuristic.CT]
    of_lp = over(by[Heuristic.LP], by[Heuristic.CT])
    worse = [
        max(rate(et), rate(qst)) / min(rate(ct), rate(lp))
        for et, qst, ct, lp in zip(
            *(by[one] for one in (Heuristic.ET, Heuristic.QST, Heuristic.CT, Heuristic.LP)), strict=True
        )
    ]
    workers = f"with {scope.most} workers"
    bounded = f"its {CATEGORIES} partitions limit all heuristics" if name == "Q15" else ""
    return [
        (
            Claim(
                "Figure 8a",
                f"CT has the best throughput on {name}",
                "best",
                above(1),
                f"throughput over that of the best other heuristic, {workers}",
                bounded,
            ),
            over_most(by[Heuristic.CT], others),
        ),
        (
            Claim(
                "Figure 8a",
                f"LP performs as well as CT on {name}" if name in _LEVEL else f"LP performs below CT on {name}",
                "as well" if name in _LEVEL else "suboptimal",
                similar() if name in _LEVEL else below(1),
                f"throughput of LP over that of CT, {workers}",
                bounded,
            ),
            of_lp,
        ),
        (
            Claim(
                "Figure 8a",
                f"ET and QST do not perform as well as CT or LP on {name}",
                "not as well",
                below(1),
                f"throughput of the better of ET and QST over that of the worse of CT and LP, {workers}",
                bounded or "LP crowds the last operators; whether that costs more than ET and QST depends on kappa",
            ),
            worse,
        ),
    ]


def _latency(scope: Scope, name: str, by: Mapping[Heuristic, list[Ran]]) -> list[tuple[Claim, Sequence[float]]]:
    others = [by[heuristic] for heuristic in HEURISTICS if heuristic is not Heuristic.LP]
    workers = f"with {scope.most} workers"
    few = "LP assigns as many workers as possible to an operator that can use 10" if name == "Q15" else ""
    claims: list[tuple[Claim, Sequence[float]]] = [
        (
            Claim(
                "Figure 8b",
                f"LP has the lowest latency on {name}",
                "lowest",
                below(1),
                f"latency of LP over the lowest of the others, {workers}",
                few,
            ),
            over_least(by[Heuristic.LP], others, latency),
        ),
        (
            Claim(
                "Figure 8b",
                f"The latency of QST is far above that of CT on {name}",
                "quite high",
                above(1),
                f"latency of QST over that of CT, {workers}",
                "it depends on the queues that C allows; the paper suspects that its C is too high, and does not give "
                "it",
            ),
            over(by[Heuristic.QST], by[Heuristic.CT], latency),
        ),
    ]
    if name in PIPELINED:
        claims.append(
            (
                Claim(
                    "Figure 8b, target",
                    f"The latency of ET is at least 10 times that of CT on {name} {AIM}",
                    "quite high",
                    above(10, departs=1),
                    f"latency of ET over that of CT, {workers}",
                ),
                over(by[Heuristic.ET], by[Heuristic.CT], latency),
            )
        )
    return claims
