"""Flux: its parts in the order of the page."""

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
    """The paper, to be measured as far as a scope says."""
    return Paper(
        name="Flux",
        title="Shah, Hellerstein, Chandrasekaran, Franklin: Flux, an adaptive partitioning operator",
        scope=scope,
        parts=[Part.of(figures) for figures in _FIGURES],
        made={
            "seeds": scope.seeds,
            "workers": scope.workers,
            "delta_min": f"{1000 * COLLECTION_S:g} ms, where nothing else is said",
            "defaults": "lambda_min 1.2, u_max 0.95, buffer 2048 tuples, connection 24 tuples, 45 +/- 3 us a tuple",
        },
        runs=ONE_RUN,
        preface=[
            "The published text is damaged where numbers stand. A mark says how sure each is: S, plain in the text; D,"
            " decoded from the glyphs that are left; C, computed from what is plain; ?, not to be recovered. Claims"
            " without a mark are aims of ours."
        ],
    )
