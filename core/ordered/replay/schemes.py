"""What an ordered replay says of its parallelization scheme."""

from collections.abc import Sequence

from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.names import Parallelism
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.replay.outcome import WorkersOutcome
from adapt.core.phrases import counted
from adapt.core.table import Cell, Column, Kind, Table

PARALLELISM = Column("parallelism", about="which workers enter which operator, and when")


def scheme_sentence(settings: RunSettings, outcomes: Sequence[WorkersOutcome]) -> str:
    """How the workers shared the operators; empty for dynamic scheduling."""
    most = max(outcomes, key=lambda one: one.workers)
    match settings.parallelism:
        case Parallelism.DYNAMIC:
            return ""
        case Parallelism.MICRO_BATCH:
            return f"Batches of at most {counted(settings.batch, 'row')} pass one operator at a time."
        case Parallelism.PIPELINE:
            said = "Each operator has one worker"
        case Parallelism.REPLICATED:
            said = "Tuples are split statically over the replicas of an operator, each with its own worker"
    if most.used < most.workers:
        said += f", so {most.used:,} of {counted(most.workers, 'worker')} are used"
    return f"{said}."


def served_table(chain: BoundChain, outcomes: Sequence[WorkersOutcome]) -> Table:
    """Tuples by worker and operator."""
    columns = (
        Column("workers", Kind.COUNT),
        Column("worker", Kind.COUNT, about="its number, from 1 on"),
        Column("operator"),
        Column("tuples", Kind.COUNT, about="tuples that it processed"),
        Column("share", Kind.SHARE, about="share of the operator's tuples"),
    )
    rows: list[list[Cell]] = []
    for one in outcomes:
        totals = one.run.served.sum(axis=0)
        for worker, number in zip(*(places.tolist() for places in one.run.served.nonzero()), strict=True):
            name, tuples = chain.operators[number].operator.name, int(one.run.served[worker, number])
            rows.append([one.workers, worker + 1, name, tuples, tuples / int(totals[number])])
    return Table.from_rows("Tuples by worker", columns, rows)
