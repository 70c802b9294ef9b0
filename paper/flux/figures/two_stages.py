"""Beyond the paper: two stages in sequence that share their workers' CPUs."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, above, below
from paper.experiments import Experiment, Results
from paper.flux.figures.shown import POLICY, estimate, judged, lines, mean
from paper.flux.scope import Scope
from paper.report import Shown, averaged, cells, section

_KINDS: Mapping[str, tuple[str, FluxPolicy] | tuple[str, FluxPolicy, float]] = {
    "static": ("none", FluxPolicy.NONE),
    "a controller for each": ("each", FluxPolicy.LOAD),
    "for each, at 0.5 s": ("each", FluxPolicy.LOAD, 0.5),
    "a joint controller": ("joint", FluxPolicy.LOAD),
    "several moves, for each": ("each", FluxPolicy.LOAD_SEVERAL),
    "several moves, joint": ("joint", FluxPolicy.LOAD_SEVERAL),
}
"""Controllers by name; the minimum collection time is 150 ms by default."""

_MOVING = tuple(_KINDS)[1:]

_OTHERS = "each counts waiting for the CPU as work, and reverts the moves of the other"
_UNSETTLED: Mapping[str, str] = {
    "a controller for each": _OTHERS,
    "several moves, for each": _OTHERS,
}
"""Reasons why moves do not end."""

_RATE = Column("rate", Kind.NUMBER, "tuples/s", "tuples of the source, through both stages")
_OF_BOUND = Column("of bound", Kind.RATIO, about="rate over that of all CPUs together")
_MOVES = Column("moves", Kind.NUMBER, about="moves of both stages")
_LATE = Column("late moves per minute", Kind.NUMBER, about="in the second half of the run")
_SECOND = Column("second", Kind.NUMBER)

Both = Mapping[str, list[dict[str, Any]]]
"""Results of two stages by controller, one per seed."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs of both stages by controller."""
    return [run for kind in _KINDS.values() for run in scope.tandems(*kind)]


def shown(scope: Scope, results: Results) -> Shown:
    """Rate over time, compared with the bound."""
    runs = {name: [results[run] for run in scope.tandems(*kind)] for name, kind in _KINDS.items()}
    table = Table.from_rows(
        "Two stages in sequence",
        [POLICY, *averaged([_RATE, _OF_BOUND, _MOVES, _LATE])],
        [
            (
                name,
                *cells(
                    estimate(run["rate"] for run in seeds),
                    estimate(of_bound(seeds)),
                    estimate(float(run["moves"]) for run in seeds),
                    estimate(run["late_moves_a_minute"] for run in seeds),
                ),
            )
            for name, seeds in runs.items()
        ],
        note="Rates are those of the second half of the run.",
    )
    seconds = Table.from_rows(
        "Two stages in sequence: second by second",
        [POLICY, _SECOND, *averaged([_RATE])],
        [
            (name, float(at + 1), *cells(estimate(rates)))
            for name, seeds in runs.items()
            for at, rates in enumerate(zip(*(run["rates"] for run in seeds), strict=True))
        ],
    )
    chart = lines(
        "Rate through two stages",
        "Tuples of the source per second. Dashed: the rate of all CPUs together. Bands: 95 %.",
        seconds,
        "second",
        "rate",
        mark=mean([run["bound"] for run in runs["static"]]),
        order=tuple(_KINDS),
        spots=False,
    )
    said = (
        "The paper leaves open how several adaptive operators on the same machines interact."
        f" {scope.tandem_workers} workers run a consumer of each stage, and every fourth is loaded from 1 s on; each "
        f"tuple"
        " of the first stage produces one of the second. Controllers use the paper's policy or several moves per round,"
        " either one per stage without knowledge of the other, or one that sees the CPUs and their use by the "
        "partitions"
        " of both."
    )
    return section("Beyond the paper: two stages", [said], [chart], [table, seconds], _claims(runs))


def of_bound(seeds: Sequence[Mapping[str, Any]]) -> list[float]:
    """Rates over the bound on them."""
    return [run["rate"] / run["bound"] for run in seeds]


def _claims(runs: Both) -> list[Judged]:
    claims: list[tuple[Claim, Sequence[float]]] = [
        *(
            (
                Claim(
                    "Section 8, beyond the paper",
                    f"Two stages, {name}, reach 85 % of the bottleneck bound (an aim of ours)",
                    "> 0.85",
                    above(0.85, departs=mean(of_bound(runs["static"]))),
                    "end-to-end rate over that of all CPUs together, in the second half of the run",
                    "utilizations that differ by less than 1.2 cause no move",
                ),
                of_bound(runs[name]),
            )
            for name in _MOVING
        ),
        *(
            (
                Claim(
                    "Section 8, beyond the paper",
                    f"Two stages, {name}, settle (an aim of ours)",
                    "< 1",
                    below(1.0),
                    "moves per minute in the second half of the run",
                    _UNSETTLED.get(name, "a pair that differs by almost 1.2 seems to exceed it at times"),
                ),
                [run["late_moves_a_minute"] for run in runs[name]],
            )
            for name in _MOVING
        ),
    ]
    return [judged(claim, values) for claim, values in claims]
