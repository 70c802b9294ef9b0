"""Contents of the part on FIT."""

from paper.claims import ONE_RUN
from paper.fit.figures import (
    boundaries,
    branches,
    cut,
    dimensions,
    example,
    fan_out,
    imbalance,
    overhead,
    past,
    provision,
)
from paper.fit.measured import MOST_RATE
from paper.fit.scope import Scope
from paper.report import Paper, Part

_FIGURES = (example, branches, cut, boundaries, imbalance, provision, fan_out, dimensions, overhead, past)


def fit(scope: Scope) -> Paper[Scope]:
    """The paper with the experiments of a scope."""
    return Paper(
        name="FIT",
        title="Tatbul, Cetintemel, Zdonik: Staying FIT, load shedding for distributed stream processing",
        scope=scope,
        parts=[Part.of(figures) for figures in _FIGURES],
        made={
            "seeds": scope.seeds,
            "points": scope.points,
            "highest rates": f"{MOST_RATE:g} tuples/s for each of two inputs; proportionally more for more inputs",
            "times": "of one thread, including the index; the shortest of up to 20, for each seed",
        },
        runs=ONE_RUN,
        preface=[
            "The figures are missing from the text, and sections 5.2, 6.1 and 6.2.1 in part, so most settings are "
            "unknown. A"
            " mark says how certain each claim is: T, stated in the text, with all relevant numbers known; C, "
            "computed from"
            " stated numbers; R, with reconstructed settings. Claims without a mark are ours. Where costs can be read "
            "in"
            " two ways, both are measured.",
            "Times are those of this program, in which a linear program takes microseconds: their order is compared "
            "with the paper, not their size.",
        ],
    )
