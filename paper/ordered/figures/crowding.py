"""Sensitivity of Figure 8 to kappa, the contention between workers."""

from collections.abc import Mapping, Sequence

from adapt.core.ordered.chain.names import Heuristic
from adapt.core.ordered.engine.settings import Contention
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, above
from paper.experiments import Experiment, Results
from paper.ordered.figures.shown import (
    AIM,
    HEURISTICS,
    LABELS,
    QUERY,
    all_judged,
    each,
    latency,
    lines,
    means,
    over,
    over_most,
    said,
)
from paper.ordered.measured import Ran, Simulated
from paper.ordered.scope import JITTER, PIPELINED, Scope, ran
from paper.report import Shown, averaged, section

_KAPPA = Column("kappa", Kind.NUMBER, "us", "time added per tuple by each other worker on its operator; assumed")
_OTHERS = tuple(heuristic for heuristic in HEURISTICS if heuristic is not Heuristic.CT)
_RATIOS = [Column(f"CT over {LABELS[other]}", Kind.RATIO, about="throughput") for other in _OTHERS]
_LATENCIES = [Column(f"latency of {LABELS[heuristic]}", Kind.NUMBER, "ms") for heuristic in HEURISTICS]

Key = tuple[str, float, Heuristic]
"""Query, kappa and heuristic."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs by query, heuristic and kappa."""
    return [run for runs in _runs(scope).values() for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Throughput of CT relative to the others, and latencies."""
    runs = {key: ran(results, of) for key, of in _runs(scope).items()}
    table = Table.from_rows(
        "Figure 8 by kappa",
        [QUERY, _KAPPA, *averaged([*_RATIOS, *_LATENCIES])],
        [
            (
                name,
                kappa_us,
                *means(
                    *(over(runs[name, kappa_us, Heuristic.CT], runs[name, kappa_us, other]) for other in _OTHERS),
                    *(each(runs[name, kappa_us, heuristic], latency) for heuristic in HEURISTICS),
                ),
            )
            for name in scope.queries
            for kappa_us in scope.kappas_us
        ],
    )
    constants = said(Contention(JITTER))
    charts = [
        lines(
            f"Throughput of CT over that of {LABELS[other]}",
            f"{scope.most} workers. Dashed: equal. Model: {constants}, except kappa. Bands: 95 %.",
            table,
            _KAPPA.name,
            column.name,
            QUERY.name,
            mark=1.0,
        )
        for other, column in zip(_OTHERS, _RATIOS, strict=True)
    ]
    told = (
        f"Without contention all heuristics have about the same throughput. Their order depends on the contention "
        f"between workers on one operator, an assumption of the model ({constants}, except kappa, which is varied "
        f"here; {scope.most} workers)."
    )
    return section("Figure 8 by kappa", [told], charts, [table], _claims(scope, runs))


def _runs(scope: Scope) -> dict[Key, list[Simulated]]:
    return {
        (name, kappa_us, heuristic): scope.query_runs(name, scope.most, kappa_us, heuristic)
        for name in scope.queries
        for kappa_us in scope.kappas_us
        for heuristic in HEURISTICS
    }


def _claims(scope: Scope, runs: Mapping[Key, list[Ran]]) -> list[Judged]:
    claims: list[tuple[Claim, Sequence[float]]] = []
    crowded = [kappa_us for kappa_us in scope.kappas_us if kappa_us > 0]
    for name in (query for query in scope.queries if query in PIPELINED):
        gains = {
            kappa_us: over_most(runs[name, kappa_us, Heuristic.CT], [runs[name, kappa_us, other] for other in _OTHERS])
            for kappa_us in crowded
        }
        worst = min(crowded, key=lambda kappa_us: sum(gains[kappa_us]))
        claims.append(
            (
                Claim(
                    "Figure 8a, target",
                    f"CT has the best throughput on {name} with every kappa above 0 {AIM}",
                    "best",
                    above(1),
                    f"throughput over that of the best other heuristic at the worst kappa, {worst:g}",
                    "this little contention costs almost nothing",
                ),
                gains[worst],
            )
        )
    return all_judged(claims)
