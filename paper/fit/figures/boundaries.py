"""Figure 9: networks of growing imbalance, by both readings of their costs."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from adapt.core.fit.planners.program import Program
from adapt.core.table import Column, Kind, Table
from paper import charts
from paper.claims import Claim, Judged, above
from paper.experiments import Experiment, Results
from paper.fit.figures.shown import COSTS, PLAIN, READING, costs, exactly, judged
from paper.fit.measured import loads_of
from paper.fit.networks import Reading, two_servers
from paper.fit.scope import Scope
from paper.report import Shown, section

_POINTS = 49
_WHERE = "Figure 9, section 8.2.1"


def wanted(scope: Scope) -> Sequence[Experiment]:  # noqa: ARG001
    """No experiments: results are computed directly."""
    return []


def shown(scope: Scope, results: Results) -> Shown:  # noqa: ARG001
    """The feasibility boundaries."""
    columns = [
        READING,
        COSTS,
        Column("rate 1", Kind.NUMBER, "tuples/s", "rate of the first input"),
        Column(
            "rate 2", Kind.NUMBER, "tuples/s", "highest rate of the second input that both servers can process with it"
        ),
    ]
    tables = {
        reading: Table.from_rows(
            f"Figure 9: feasibility boundaries, {reading}",
            columns,
            [(str(reading), costs(pair), *point) for pair in scope.pairs for point in boundary(reading, pair)],
        )
        for reading in Reading
    }
    about = {
        Reading.PARALLEL: "A chain costs the same on both servers. The boundary is straight.",
        Reading.CROSSED: "An operator that is expensive on one server is cheap on the other. The boundary has a kink.",
    }
    drawn = [
        charts.lines(
            f"Feasibility boundaries, {reading}",
            f"{about[reading]} Rates below a line need no shedding.",
            table,
            "rate 1",
            "rate 2",
            "costs",
            order=[costs(pair) for pair in scope.pairs],
            spots=False,
        )
        for reading, table in tables.items()
    ]
    said = (
        "Two chains over two servers, two delay operators each. Of the five pairs of costs the paper gives only"
        " (64, 32); the others here are reconstructions with the same totals. The paper does not say what the two "
        "numbers"
        " mean: in the parallel reading they are the costs of the two chains on each server, in the crossed one the"
        " costs of a chain on its first and second server. The text and the row counts of Table 3 fit the parallel "
        "reading better; both are"
        " measured wherever these networks occur."
    )
    return section("Figure 9: networks", [said], drawn, list(tables.values()), _claims(scope))


def boundary(reading: Reading, pair: tuple[float, float]) -> list[tuple[float, float]]:
    """Points on the boundary, from the second axis to the first."""
    loads = loads_of(Program.from_network(two_servers(reading, *pair)))
    highest = 1 / loads[0].max()
    firsts = np.linspace(0, highest, _POINTS)
    return [(float(first), float(((1 - first * loads[0]) / loads[1]).min().clip(0))) for first in firsts]


def _claims(scope: Scope) -> list[Judged]:
    totals = [
        float(load)
        for reading in Reading
        for pair in scope.pairs
        for load in loads_of(Program.from_network(two_servers(reading, *pair))).sum(axis=0)
    ]
    imbalances = [heavy - light for heavy, light in scope.pairs]
    claims = [
        (
            Claim(
                _WHERE,
                "The total cost is the same on each server in all networks",
                "the same",
                exactly(0),
                "highest minus lowest total, seconds per tuple of each input",
                certainty=PLAIN,
            ),
            max(totals) - min(totals),
        ),
        (
            Claim(
                _WHERE,
                "Imbalance between the chains increases from network to network",
                "increases",
                above(0),
                "smallest step of the difference of costs, milliseconds",
                certainty=PLAIN,
            ),
            min(after - before for before, after in pairwise(imbalances)),
        ),
    ]
    return [judged(claim, [value]) for claim, value in claims]
