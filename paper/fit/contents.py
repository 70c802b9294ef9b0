"""FIT: its parts in the order of the page."""

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
    """The paper, to be measured as far as a scope says."""
    return Paper(
        name="FIT",
        title="Tatbul, Cetintemel, Zdonik: Staying FIT, load shedding for distributed stream processing",
        scope=scope,
        parts=[Part.of(figures) for figures in _FIGURES],
        made={
            "seeds": scope.seeds,
            "points": scope.points,
            "highest rates": f"{MOST_RATE:g} tuples/s of each of two inputs; of more inputs, more in proportion",
            "times": "of one thread, index included; the shortest of up to 20, for each seed",
        },
        runs=ONE_RUN,
        preface=[
            "Figures are lost from the text, and sections 5.2, 6.1 and 6.2.1 in part, so that most settings are not"
            " known. A mark says how sure each claim is: T, told in the text, by numbers that are all known or do not"
            " matter for it; C, computed from what is told; R, a reconstruction stands for settings that are lost."
            " Claims without a mark are ours. Where costs can be read in two ways, both are measured.",
            "Times are those of this program, in which a linear program takes microseconds: what is compared with the"
            " paper is their order, not their size.",
        ],
    )
