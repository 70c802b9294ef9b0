"""Past the paper: two stages in a row that share their workers' CPUs."""

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
"""What moves partitions, by its name; collecting for 150 ms at least where nothing else is said."""

_MOVING = tuple(_KINDS)[1:]

_OTHERS = "each takes waiting for the CPU for work, and sets right what the other has done"
_UNSETTLED: Mapping[str, str] = {
    "a controller for each": _OTHERS,
    "several moves, for each": _OTHERS,
}
"""Why moves do not end."""

_RATE = Column("rate", Kind.NUMBER, "tuples/s", "of the source, through both stages")
_OF_BOUND = Column("of bound", Kind.RATIO, about="rate over what all CPU together could do")
_MOVES = Column("moves", Kind.NUMBER, about="of both stages")
_LATE = Column("late moves a minute", Kind.NUMBER, about="in the second half of the run")
_SECOND = Column("second", Kind.NUMBER)

Both = Mapping[str, list[dict[str, Any]]]
"""What two stages did, by what moved their partitions; a seed after the other."""


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Both stages, each way."""
    return [run for kind in _KINDS.values() for run in scope.tandems(*kind)]


def shown(scope: Scope, results: Results) -> Shown:
    """Rate over time, against the bound."""
    runs = {name: [results[run] for run in scope.tandems(*kind)] for name, kind in _KINDS.items()}
    table = Table.from_rows(
        "Two stages in a row",
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
        "Two stages in a row: second by second",
        [POLICY, _SECOND, *averaged([_RATE])],
        [
            (name, float(at + 1), *cells(estimate(rates)))
            for name, seeds in runs.items()
            for at, rates in enumerate(zip(*(run["rates"] for run in seeds), strict=True))
        ],
    )
    chart = lines(
        "Rate through two stages",
        "Tuples of the source a second. Dashed: what all CPU together could do. Bands: 95 %.",
        seconds,
        "second",
        "rate",
        mark=mean([run["bound"] for run in runs["static"]]),
        order=tuple(_KINDS),
        spots=False,
    )
    said = (
        "The paper leaves open how several operators that adapt on the same machines get on."
        f" {scope.tandem_workers} workers have a consumer of each stage, and every fourth is loaded from 1 s on; each"
        f" tuple of the first stage makes one of the second. Controllers follow the paper's policy or several moves a"
        f" round, one for each stage that knows nothing of the other, or one that sees the CPUs and what partitions of"
        f" both take of them."
    )
    return section("Past the paper: two stages", [said], [chart], [table, seconds], _claims(runs))


def of_bound(seeds: Sequence[Mapping[str, Any]]) -> list[float]:
    """Rates over the bound on them."""
    return [run["rate"] / run["bound"] for run in seeds]


def _claims(runs: Both) -> list[Judged]:
    claims: list[tuple[Claim, Sequence[float]]] = [
        *(
            (
                Claim(
                    "Section 8, past the paper",
                    f"Two stages, {name}, reach 85 % of the bottleneck bound (an aim of ours)",
                    "> 0.85",
                    above(0.85, departs=mean(of_bound(runs["static"]))),
                    "rate from end to end over what all CPU together could do, in the second half of the run",
                    "utilizations that are less than 1.2 apart rest",
                ),
                of_bound(runs[name]),
            )
            for name in _MOVING
        ),
        *(
            (
                Claim(
                    "Section 8, past the paper",
                    f"Two stages, {name}, settle (an aim of ours)",
                    "< 1",
                    below(1.0),
                    "moves a minute in the second half of the run",
                    _UNSETTLED.get(name, "a pair that is nearly 1.2 apart seems so by chance now and then"),
                ),
                [run["late_moves_a_minute"] for run in runs[name]],
            )
            for name in _MOVING
        ),
    ]
    return [judged(claim, values) for claim, values in claims]
