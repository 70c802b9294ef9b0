"""Contents of the part on ESJ."""

from paper.claims import ONE_RUN
from paper.esj.figures import deployment, scaling, shedding
from paper.esj.measured import CAPACITY, WINDOW_S
from paper.esj.scope import Scope
from paper.report import Paper, Part

_FIGURES = (deployment, shedding, scaling)


def esj(scope: Scope) -> Paper[Scope]:
    """The paper with the experiments of a scope."""
    return Paper(
        name="ESJ",
        title="ESJ: adapting to the varying workload",
        scope=scope,
        parts=[Part.of(figures) for figures in _FIGURES],
        made={
            "seeds": scope.seeds,
            "stage": f"W = {CAPACITY:,} tuples, kept for {WINDOW_S:g} s; tau 0.1, 0.4, 0.8, 0.9; B = 0",
        },
        runs=ONE_RUN,
        preface=[
            "The section reports no measurements: its claims are words and equations, and the bounds that they are held"
            " to are ours."
        ],
    )
