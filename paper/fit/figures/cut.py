"""Section 6.2.1: points that the feasibility triangle leaves without a plan."""

from collections.abc import Mapping, Sequence

from adapt.core.fit.planners.program import Program
from adapt.core.table import Column, Kind, Table
from paper.charts import scatter
from paper.claims import Claim, Judged, Range
from paper.estimates import Estimate
from paper.experiments import Data, Experiment, Results
from paper.fit.figures.shown import (
    LABELS,
    MEAN_ERROR,
    PLAIN,
    PLANNER,
    PLANS,
    READING,
    WITHOUT,
    WORST,
    exactly,
    judged,
    percent,
)
from paper.fit.measured import Planned, loads_of
from paper.fit.networks import Reading, figure_1
from paper.fit.scope import C_FIT, Scope, chained, found
from paper.report import Shown, averaged, cells, section

_WHERE = "Section 6.2.1"
_PAIR = (64.0, 32.0)
_KEPT = 1200
_NEAR = 1.6
"""Highest load of the busier server in the drawing of points."""
_MOST_GUARANTEED = 4
_LOST, _OVER, _WITHIN = "no plan", "over epsilon", "within epsilon"
_FATES = (_OVER, _LOST, _WITHIN)

_Key = tuple[Reading, int, str]


def wanted(scope: Scope) -> Sequence[Experiment]:
    """Runs of C-FIT by grid and number of inputs."""
    return [run for runs in planned(scope).values() for run in runs]


def shown(scope: Scope, results: Results) -> Shown:
    """Loss of score by grid, and where it occurs."""
    measured = {key: found(results, runs) for key, runs in planned(scope).items()}
    inputs = Column("inputs", Kind.COUNT)
    epsilon = Column("epsilon", Kind.SHARE)
    table = Table.from_rows(
        "Errors by the grid of C-FIT",
        [READING, inputs, PLANNER, epsilon, PLANS, *averaged([WORST, MEAN_ERROR, WITHOUT])],
        [
            (
                str(reading),
                count,
                LABELS[planner],
                runs[0]["threshold"],
                runs[0]["plans"],
                *cells(*(Estimate.of(run[name] for run in runs) for name in ("worst", "mean", "without"))),
            )
            for (reading, count, planner), runs in measured.items()
        ],
    )
    charts, spots = [], []
    for reading in Reading:
        for planner in C_FIT.values():
            runs = measured[reading, scope.cut_inputs[0], planner]
            where = _points(f"{LABELS[planner]}, {reading}: points", near(reading, runs[0]), runs[0]["threshold"])
            spots.append(where)
            charts.append(
                scatter(
                    f"{LABELS[planner]}, {reading}",
                    f"Overloaded points of two inputs near the boundary. {_told(where, runs[0]['threshold'])}",
                    where,
                    "rate 1",
                    "rate 2",
                    "plan",
                    order=_FATES,
                )
            )
    said = [
        "The paper omits from the table all grid points below the plane through the largest rates of each input alone."
        " This also omits the rows just below the boundary: a point just above it, between grid lines, dominates no"
        " remaining row, and has no plan. The safe cut keeps the points within a cell of the plane; each input still"
        " rounds down by up to epsilon of its largest rate, so with D inputs the loss can be D times epsilon, and "
        "more if"
        " queries differ in score per load. The guaranteed grid is so fine that no point loses more than epsilon; it is"
        " not practical with many inputs."
    ]
    return section(
        "Section 6.2.1: where the cut fails",
        said,
        charts,
        [table, _failing(scope, measured), *spots],
        _claims(measured),
    )


def planned(scope: Scope) -> dict[_Key, list[Planned]]:
    """Runs by reading, inputs and planner.

    The guaranteed grid for few inputs only, and coarser for more than two.
    """
    kinds = [
        (reading, count, planner)
        for reading in Reading
        for count in scope.cut_inputs
        for planner in C_FIT.values()
        if planner != C_FIT["guaranteed"] or count <= _MOST_GUARANTEED
    ]
    return {
        (reading, count, planner): scope.planned(
            chained(reading, _PAIR, count),
            planner,
            _epsilon(scope, count, planner),
            kept=_KEPT if count == scope.cut_inputs[0] else 0,
            points=scope.points if count == scope.cut_inputs[0] else scope.points // 4,
        )
        for reading, count, planner in kinds
    }


def _epsilon(scope: Scope, count: int, planner: str) -> float:
    return 0.2 if planner == C_FIT["guaranteed"] and count > scope.cut_inputs[0] else scope.epsilons[0]


def _points(title: str, points: list[list[float]], epsilon: float) -> Table:
    columns = [
        Column("rate 1", Kind.NUMBER, "tuples/s"),
        Column("rate 2", Kind.NUMBER, "tuples/s"),
        Column("error", Kind.SHARE),
        Column("plan"),
    ]
    rows = [
        (x, y, error, _LOST if lacks else _OVER if error > epsilon + 1e-9 else _WITHIN) for x, y, error, lacks in points
    ]
    return Table.from_rows(title, columns, sorted(rows, key=lambda row: _FATES.index(row[3]), reverse=True))


def _failing(scope: Scope, measured: Mapping[_Key, list[Data]]) -> Table:
    """Points that the paper's cut leaves without a plan, with their distance from the boundary."""
    columns = [
        READING,
        Column("rate 1", Kind.NUMBER, "tuples/s"),
        Column("rate 2", Kind.NUMBER, "tuples/s"),
        Column("load", Kind.RATIO, about="offered load of the busier server"),
        Column("error", Kind.SHARE),
    ]
    rows = [
        (str(reading), x, y, load, error)
        for reading in Reading
        for x, y, load, error in _without(reading, measured[reading, scope.cut_inputs[0], C_FIT["paper"]][0])
    ]
    return Table.from_rows(
        "Failing points of the paper's cut",
        columns,
        rows,
        note="The first random points, up to eight for each reading.",
    )


def _told(points: Table, epsilon: float) -> str:
    """Number of points by outcome, as text."""
    fates = [row[-1] for row in points.rows]
    lost, over = fates.count(_LOST), fates.count(_OVER)
    return (
        f"Of {len(fates)}, {lost} have no plan, and {over} have one that loses more than epsilon, {percent(epsilon)}."
    )


def near(reading: Reading, run: Data) -> list[list[float]]:
    """The stored points of a run near the boundary."""
    loads = loads_of(Program.from_network(chained(reading, _PAIR).network()))
    return [point for point in run["points"] if (loads.T @ point[:2]).max() <= _NEAR]


def _without(reading: Reading, run: Data, most: int = 8) -> list[tuple[float, float, float, float]]:
    """Rates, load and error of the first points without a plan."""
    loads = loads_of(Program.from_network(chained(reading, _PAIR).network()))
    return [(x, y, float((loads.T @ [x, y]).max()), error) for x, y, error, lacks in run["points"] if lacks][:most]


def _claims(measured: Mapping[_Key, list[Data]]) -> list[Judged]:
    corners = 1 / loads_of(Program.from_network(figure_1())).max(axis=1)
    claims: list[tuple[Claim, Sequence[float]]] = [
        (
            Claim(
                _WHERE,
                f"In Figure 1 the largest rate of the {name} input is {told} globally",
                told,
                exactly(number),
                "tuples/s that both servers can process of it alone",
                certainty=PLAIN,
            ),
            [float(corner)],
        )
        for name, told, number, corner in zip(("first", "second"), ("1/3", "1/2"), (1 / 3, 1 / 2), corners, strict=True)
    ]
    for (reading, count, planner), runs in measured.items():
        epsilon = runs[0]["threshold"]
        claims.append(
            (
                Claim(
                    "Sections 6.2.1 and 8.2.4",
                    f"{LABELS[planner]}: no plan loses more than {percent(epsilon)} ({count} inputs, {reading})",
                    f"at most {percent(epsilon)}",
                    Range(high=epsilon + 1e-9),
                    "worst error at the random points of all seeds",
                    {
                        C_FIT["paper"]: f"{_share(runs)} of the random points have no plan at all.",
                        C_FIT["safe"]: "Every point has a plan, but each input rounds down on its own.",
                    }.get(planner, ""),
                    certainty=PLAIN if planner == C_FIT["paper"] else "",
                ),
                [max(run["worst"] for run in runs)],
            )
        )
    return [judged(claim, values) for claim, values in claims]


def _share(runs: list[Data]) -> str:
    return percent(Estimate.of(run["without"] for run in runs).mean)
