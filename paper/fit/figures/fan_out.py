"""Figure 13: growing number of branches after one operator."""

from collections.abc import Mapping, Sequence

from adapt.core.table import Column, Kind, Table
from paper.claims import Claim, Judged, above
from paper.estimates import Estimate
from paper.experiments import Data, Experiment, Results
from paper.fit.figures.shown import (
    LABELS,
    PLANNER,
    PLANS,
    REBUILT,
    SECONDS,
    WITHOUT,
    WORST,
    judged,
    lines,
    percent,
    ratios,
)
from paper.fit.measured import Described, Planned
from paper.fit.networks import BRANCHES_MS, SHARED_MS
from paper.fit.scope import C_FIT, EXACT, SOLVER, Scope, found
from paper.report import Shown, averaged, cells, section

_WHERE = "Figure 13, section 8.2.3"
_EPSILON = 0.01
_BRANCHES = Column("branches", Kind.COUNT)
_COMPARED = "safe"

_Key = tuple[int, str]


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs by planner and number of branches."""
    return [run for runs in _planned(scope).values() for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Planning time by number of branches."""
    measured = {key: found(results, runs) for key, runs in _planned(scope).items()}
    table = Table.from_rows(
        f"Figure 13: plans at {percent(_EPSILON)}",
        [_BRANCHES, PLANNER, *averaged([SECONDS]), PLANS, *averaged([WORST, WITHOUT])],
        [
            (
                branches,
                LABELS[planner],
                *cells(Estimate.of(run["seconds"] for run in runs)),
                Estimate.of(run["plans"] for run in runs).mean,
                *cells(
                    *(
                        Estimate.of(run[name] for run in runs) if name in runs[0] else None
                        for name in ("worst", "without")
                    )
                ),
            )
            for (branches, planner), runs in measured.items()
        ],
    )
    chart = lines(
        "Planning time by number of branches",
        f"One server, one input; error of {percent(_EPSILON)}.",
        table,
        "branches",
        "time",
        log_x=True,
        log_y=True,
    )
    said = (
        f"The paper does not give the costs. Here the shared operator costs {SHARED_MS:g} ms and all branches "
        f"together {BRANCHES_MS:g} ms, rising linearly from the first to the last; equal branches would need a single "
        f"plan. C-FIT is judged with the safe cut, which has a plan for every point."
    )
    return section("Figure 13: fan-out", [said], [chart], [table], _claims(scope, measured))


def _planned(scope: Scope) -> dict[_Key, list[Planned]]:
    return {
        (branches, planner): scope.planned(Described.of("fan_out", branches=branches), planner, _EPSILON)
        for branches in scope.branches
        for planner in (SOLVER, *C_FIT.values(), EXACT)
    }


def _claims(scope: Scope, measured: Mapping[_Key, list[Data]]) -> list[Judged]:
    solver, c_fit = (
        {branches: [run["seconds"] for run in measured[branches, planner]] for branches in scope.branches}
        for planner in (SOLVER, C_FIT[_COMPARED])
    )
    few, many = scope.branches[0], scope.branches[-1]
    growth = {name: ratios(of[many], of[few]) for name, of in (("Solver", solver), ("C-FIT", c_fit))}
    claims: list[tuple[Claim, Sequence[float]]] = [
        (
            Claim(
                _WHERE,
                f"{name} spends more time on plans as the degree of sharing increases",
                "more",
                above(1),
                f"time with {many} branches over that with {few}",
                certainty=REBUILT,
            ),
            grown,
        )
        for name, grown in growth.items()
    ]
    claims += [
        (
            Claim(
                _WHERE,
                "At a fan-out of 2, Solver generates plans slightly faster than C-FIT",
                "slightly faster",
                above(1),
                "time of C-FIT over that of Solver",
                "Both tables have about as many plans here, and a row of C-FIT's takes no linear program.",
                certainty=REBUILT,
            ),
            ratios(c_fit[few], solver[few]),
        ),
        (
            Claim(
                _WHERE,
                "At higher fan-outs C-FIT outperforms Solver",
                "outperforms",
                above(1),
                f"time of Solver over that of C-FIT, with {many} branches",
                certainty=REBUILT,
            ),
            ratios(solver[many], c_fit[many]),
        ),
        (
            Claim(
                _WHERE,
                "C-FIT scales better with fan-out",
                "better",
                above(1),
                f"growth of Solver's time from {few} to {many} branches over that of C-FIT's",
                "The number of C-FIT's rows hardly changes, and closing a branch changes no ratio but the root's; what "
                "grows is the size of each row.",
                certainty=REBUILT,
            ),
            ratios(growth["Solver"], growth["C-FIT"]),
        ),
    ]
    return [judged(claim, values) for claim, values in claims]
