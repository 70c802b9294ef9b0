"""Figure 14: reorder buffers under the queries."""

from collections.abc import Mapping, Sequence

from adapt.core.ordered.chain.names import Reorder
from adapt.core.ordered.engine.settings import Contention
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, above, similar
from paper.experiments import Experiment, Results
from paper.ordered.figures.shown import (
    CONSTANTS,
    LATENCY,
    QUERY,
    RATE,
    SCHEME,
    SCHEMES,
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
from paper.ordered.scope import JITTER, Scope, ran
from paper.report import Shown, averaged, section

_JUDGED = Contention(JITTER, contention_us=0.1, send_us=0.1, output_us=0.05, lock_handover_us=0.3)
_CONSTANTS = (
    Contention(JITTER, contention_us=0.1, send_us=0.05, lock_handover_us=0.15),
    _JUDGED,
    Contention(JITTER, contention_us=0.1, send_us=0.2, output_us=0.1, lock_handover_us=0.5),
)
_PEAK = Column("peak workers", Kind.COUNT, about="number of workers with the highest mean throughput")
_OVER_LOCK = Column("over lock", Kind.RATIO, about="peak throughput of non-blocking over lock-based")
_LATENCIES = Column("latency over lock", Kind.RATIO, about="latency of non-blocking over lock-based, at the peaks")

Key = tuple[Contention, str, Reorder, int]
"""Constants, query, reorder buffer and workers."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs by scheme, query, constants and number of workers."""
    return [run for runs in _runs(scope).values() for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Peak throughput by reorder buffer."""
    best = peaks({key: ran(results, of) for key, of in _runs(scope).items()})
    table = Table.from_rows(
        "Figure 14: peak throughput by reordering",
        [CONSTANTS, QUERY, SCHEME, _PEAK, *averaged([RATE, LATENCY])],
        [
            (said(constants), name, SCHEMES[scheme], workers, *means(each(seeds, rate), each(seeds, latency)))
            for (constants, name, scheme), (workers, seeds) in best.items()
        ],
    )
    beside = Table.from_rows(
        "Figure 14 by constants",
        [CONSTANTS, QUERY, *averaged([_OVER_LOCK, _LATENCIES])],
        [
            (
                said(constants),
                name,
                *means(over(*_pair(best, constants, name)), over(*_pair(best, constants, name), latency)),
            )
            for constants in _CONSTANTS
            for name in scope.queries
        ],
    )
    judged = Table.from_rows(
        f"Figure 14: {said(_JUDGED)}", table.columns, [row for row in table.rows if row[0] == said(_JUDGED)]
    )
    charts = [
        dots(
            "Figure 14: peak throughput",
            f"By CT, at the peak of each. Model: {said(_JUDGED)}. Bars: 95 %.",
            judged,
            QUERY.name,
            RATE.name,
            SCHEME.name,
        )
    ]
    told = (
        "By CT, with the hybrid queue; only the reorder buffer changes. Claims are judged by the second set of"
        f" constants ({said(_JUDGED)}); the first has sends as short as this engine's."
    )
    return section("Figure 14: reordering under queries", [told], charts, [beside, table], _claims(scope, best))


def _runs(scope: Scope) -> dict[Key, list[Simulated]]:
    return {
        (constants, name, scheme, workers): scope.query_runs(name, workers, reorder=scheme, contention=constants)
        for constants in _CONSTANTS
        for name in scope.queries
        for scheme in SCHEMES
        for workers in scope.workers
        if workers >= scope.most // 2
    }


Best = Mapping[tuple[object, ...], tuple[int, list[Ran]]]
"""Runs at the peak, by constants, query and reorder buffer."""


def _pair(best: Best, constants: Contention, name: str) -> tuple[list[Ran], list[Ran]]:
    """Runs with non-blocking and with lock-based reordering."""
    return best[constants, name, Reorder.RETRY][1], best[constants, name, Reorder.LOCK][1]


def _claims(scope: Scope, best: Best) -> list[Judged]:
    claims: list[tuple[Claim, Sequence[float]]] = []
    for name in scope.queries:
        pair = _pair(best, _JUDGED, name)
        claims += [
            (
                Claim(
                    "Figure 14",
                    f"Non-blocking reordering has the higher throughput on {name}",
                    "better",
                    above(1),
                    f"peak throughput over that of lock-based; {said(_JUDGED)}",
                ),
                over(*pair),
            ),
            (
                Claim(
                    "Figure 14",
                    f"The latencies of both do not differ much on {name}",
                    "not much",
                    similar(),
                    "latency of non-blocking over that of lock-based, each at its peak",
                    "the queues have different lengths at the two peaks",
                ),
                over(*pair, latency),
            ),
        ]
    return all_judged(claims)
