"""Contents of the part on Flux."""

from paper.claims import ONE_RUN
from paper.flux.figures import (
    buffers,
    crashes,
    degradation,
    mixed,
    past,
    pressure,
    recovery,
    spilling,
    thrashing,
    two_stages,
)
from paper.flux.measured import COLLECTION_S
from paper.flux.scope import Scope
from paper.report import Paper, Part

_FIGURES = (buffers, recovery, degradation, thrashing, spilling, pressure, mixed, past, two_stages, crashes)


def flux(scope: Scope) -> Paper[Scope]:
    """The paper with the experiments of a scope."""
    return Paper(
        name="Flux",
        title="Shah, Hellerstein, Chandrasekaran, Franklin: Flux, an adaptive partitioning operator",
        scope=scope,
        parts=[Part.of(figures) for figures in _FIGURES],
        made={
            "seeds": scope.seeds,
            "workers": scope.workers,
            "delta_min": f"{1000 * COLLECTION_S:g} ms by default",
            "defaults": "lambda_min 1.2, u_max 0.95, buffer 2048 tuples, connection 24 tuples, 45 +/- 3 us a tuple",
        },
        runs=ONE_RUN,
        preface=[
            "The published text is damaged at its numbers. A mark says how certain each is: S, legible in the text; "
            "D, decoded from the remaining glyphs; C, computed from legible numbers; ?, not recoverable. Claims "
            "without a mark are our own aims."
        ],
    )
