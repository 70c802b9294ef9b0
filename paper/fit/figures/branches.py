"""Section 6.2.2 and Figure 7: complementary local plans at a split."""

from collections.abc import Sequence

import numpy as np

from adapt.core.table import Column, Kind, Table
from paper import charts
from paper.claims import Claim, Judged
from paper.experiments import Experiment, Results
from paper.fit.figures.shown import PLAIN, exactly, judged
from paper.fit.networks import figure_7
from paper.fit.scope import Scope
from paper.fit.worked import at_inputs, best, figure_7_scores, fits_up_to, takes_up_to
from paper.report import Shown, section

_WHERE = "Figure 7, section 6.2.2"
_RATE = 0.2
_LOCAL, _INPUT = "local plans", "at the input alone"


def wanted(scope: Scope) -> Sequence[Experiment]:  # noqa: ARG001
    """No experiments: results are computed directly."""
    return []


def shown(scope: Scope, results: Results) -> Shown:  # noqa: ARG001
    """Score by input rate, by where tuples are dropped."""
    rates = [float(rate) for rate in np.linspace(0, 0.5, 51)]
    rows = [
        (name, rate, score)
        for rate, *scores in figure_7_scores(rates)
        for name, score in zip((_LOCAL, _INPUT), scores, strict=True)
    ]
    columns = [
        Column("drops"),
        Column("rate", Kind.NUMBER, "tuples/s", "of the input"),
        Column("score", Kind.NUMBER, "tuples/s", "at both outputs"),
    ]
    table = Table.from_rows("Figure 7: score by rate", columns, rows)
    chart = charts.lines(
        "Score by rate, with local plans and with drops at the input",
        "The root costs 1, the branches 2 and 5. Up to 1/8 nothing needs to be dropped. From there on local plans "
        "drop from the lower branch, which gets nothing at 1/3; any excess is dropped at the input.",
        table,
        "rate",
        "score",
        "drops",
        order=(_LOCAL, _INPUT),
        spots=False,
    )
    return section("Figure 7: local plans", [], [chart], [table], _claims())


def _claims() -> list[Judged]:
    network = figure_7()
    local, whole = best(network, [_RATE]), at_inputs(network, [_RATE])
    claims = [
        (
            "At a rate of 0.2, 60 % of the lower branch is shed",
            "60 %",
            0.6,
            "share dropped by the linear program",
            1 - local.keeps["root -> bottom"],
        ),
        (
            "At a rate of 0.2, local plans give a throughput of 0.28",
            "0.28",
            0.28,
            "tuples/s by the linear program",
            local.score,
        ),
        (
            "At a rate of 0.2, shedding at the input alone takes 37.5 %",
            "37.5 %",
            0.375,
            "share dropped, equal for all inputs",
            1 - whole.keeps["in -> root"],
        ),
        (
            "At a rate of 0.2, shedding at the input alone gives 0.25",
            "0.25",
            0.25,
            "tuples/s, with an equal share dropped of every input",
            whole.score,
        ),
        (
            "Up to a rate of 1/8 nothing needs to be dropped",
            "1/8",
            1 / 8,
            "tuples/s at which the server is full",
            fits_up_to(network),
        ),
        (
            "With local plans, the node appears to process a rate of 1/3",
            "1/3",
            1 / 3,
            "tuples/s, the highest rate in its feasible input table",
            takes_up_to(network),
        ),
    ]
    return [
        judged(Claim(_WHERE, text, reported, exactly(number), measure, certainty=PLAIN), [value])
        for text, reported, number, measure, value in claims
    ]
