"""Contents of the part on ordered streams."""

from paper.ordered.figures import (
    balance,
    choices,
    crowding,
    heuristics,
    latency,
    light,
    queues,
    reordering,
    retail,
    schemes,
    selective,
    slices,
)
from paper.ordered.figures.shown import PAPER_RUNS
from paper.ordered.scope import JITTER, Scope
from paper.report import Paper, Part

_FIGURES = (
    heuristics,
    crowding,
    choices,
    slices,
    balance,
    latency,
    queues,
    light,
    selective,
    reordering,
    schemes,
    retail,
)


def ordered(scope: Scope) -> Paper[Scope]:
    """The paper with the experiments of a scope."""
    return Paper(
        name="Ordered streams",
        title="Prasaad, Ramalingam, Rajan: Scaling ordered stream processing on shared-memory multicores",
        scope=scope,
        parts=[Part.of(figures) for figures in _FIGURES],
        made={
            "seeds": scope.seeds,
            "engine": "sim; threads by slice",
            "tuples": f"{scope.rows} into a query, {scope.few_rows} into one operator",
            "constants": "printed with each result; assumed, never tuned to a figure",
        },
        runs=PAPER_RUNS,
        preface=[
            "All sections but that on slices are simulated (engine: sim) by the model of the engine, with its serial "
            "numbers, ring buffers, work queues and heuristics, and with random costs. The numbers in the paper's "
            "figures are missing from its text, so its prose is judged: which result is higher, and the shape of a "
            "curve. Claims that end in (a target of ours) are not the paper's.",
            "Non-blocking reordering is the paper's own (Figure 4), unless a table says otherwise. With partitioned "
            "queues, where it could hang, the ring buffer is as large as the work queue.",
            "Contention between workers is assumed, and printed with each result: kappa, time added to a tuple by "
            "each other"
            " worker on its operator; d and e, time to send a batch and an output, one worker at a time; h, time from "
            "a lock's"
            f" release until the next worker holds it; the random share of a cost, {JITTER:g} everywhere. None was "
            f"fitted to a"
            " figure; if a claim depends on one, a table varies it.",
        ],
    )
