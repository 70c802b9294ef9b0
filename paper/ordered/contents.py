"""Ordered streams: its parts in the order of the page."""

from paper.ordered.figures import (
    balance,
    choices,
    crowding,
    heuristics,
    latency,
    light,
    queues,
    reordering,
    selective,
)
from paper.ordered.figures.shown import PAPER_RUNS
from paper.ordered.scope import JITTER, Scope
from paper.report import Paper, Part

_FIGURES = (heuristics, crowding, choices, balance, latency, queues, light, selective, reordering)


def ordered(scope: Scope) -> Paper[Scope]:
    """The paper, to be simulated as far as a scope says."""
    return Paper(
        name="Ordered streams",
        title="Prasaad, Ramalingam, Rajan: Scaling ordered stream processing on shared-memory multicores",
        scope=scope,
        parts=[Part.of(figures) for figures in _FIGURES],
        made={
            "seeds": scope.seeds,
            "engine": "sim",
            "tuples": f"{scope.rows} into a query, {scope.few_rows} into one operator",
            "constants": "printed with each result; assumed, never tuned to a figure",
        },
        runs=PAPER_RUNS,
        preface=[
            "Everything here is simulated (engine: sim): by the model of the engine, with its serial numbers, rings,"
            " queues and heuristics, and with costs that are drawn. The numbers of the paper's figures are lost from"
            " its text, so that its prose is judged: what is above what, and how a figure is shaped. Claims that end in"
            " (a target of ours) are not the paper's.",
            "What workers cost each other is assumed, and printed with each result: kappa, added to a tuple by each"
            " other worker on its operator; d and e, of a batch and of an output in the section in which only one"
            f" worker sends; h, from a lock's release to the next worker; the share of a cost that is drawn, {JITTER:g}"
            " everywhere. None was fitted to a figure; where a claim hangs on one, a table varies it.",
        ],
    )
