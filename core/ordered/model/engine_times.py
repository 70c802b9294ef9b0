"""What the engine adds to a tuple in the model, by operator."""

from collections.abc import Sequence
from dataclasses import dataclass

from adapt.core.ordered.chain.bound import BoundChain, BoundOperator
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.engine.contention import Contention
from adapt.core.ordered.engine.costs import Cost, EngineCosts, Term
from adapt.core.ordered.engine.kernel.codes import MOST_CHUNK
from adapt.core.ordered.engine.memory import lanes_of
from adapt.core.ordered.engine.outcome import OperatorTally
from adapt.core.ordered.engine.settings import SLICE_US, RunSettings
from adapt.core.ordered.own.function import inner_of


@dataclass(frozen=True, slots=True)
class OperatorTimes:
    """Times of an operator in the model, in nanoseconds.

    Attributes:
        added: To a tuple's cost.
        crowd: To a tuple's cost by each other worker on the operator.
        sent: To send a tuple; one worker at a time.
        output: To send one of its outputs.
    """

    added: float
    crowd: float
    sent: float
    output: float


def assumed_times(contention: Contention) -> OperatorTimes:
    """The same for all operators, without measured costs."""
    return OperatorTimes(0.0, 1000 * contention.contention_us, 0.0, 1000 * contention.output_us)


def measured_times(
    bound: BoundOperator, settings: RunSettings, us: float, selectivity: float, costs: EngineCosts
) -> OperatorTimes:
    """Costs of a chunk, shared by its tuples.

    The model itself moves single tuples, whatever the chunk.

    Args:
        us: Mean cost of its function per tuple.
        selectivity: Its outputs per tuple.
    """
    kind, tuples = bound.operator.kind, chunk_at(settings, us + costs.of(Cost.TUPLE, bound.operator.kind) / 1000)
    lanes = lanes_met(bound, settings, tuples)
    added = costs.of(Cost.TUPLE, kind) + costs.of(Cost.CLAIM, kind) / tuples
    added += lanes * costs.of(Cost.HANDOVER, kind) / tuples
    if selectivity != 1:
        added += costs.of(Cost.UNEVEN)
    if bound.number == 0:
        added += costs.of(Cost.FEED)
    crowd = costs.of(Cost.CONTENDED_TUPLE, kind) + costs.of(Cost.CONTENDED_CLAIM, kind) / tuples
    return OperatorTimes(added, crowd, costs.of(Cost.SEND) / tuples, costs.of(Cost.OUTPUT))


def query_times(
    operators: int, settings: RunSettings, contention: Contention, engine: EngineCosts | None
) -> tuple[float, float]:
    """Nanoseconds of a query, and what each other worker adds.

    Source: ordered streams, section 6: the longer the slice, the "lower the contention for querying the scheduler and
    better amortization of scheduling overheads".
    """
    if engine is None:
        alone = contention.query_us + operators * contention.query_operator_us
        return 1000 * alone, 1000 * contention.query_contention_us
    how = settings.heuristic
    alone = engine.of(Cost.QUERY, heuristic=how) + operators * engine.of(Cost.QUERY_OPERATOR, heuristic=how)
    return alone, engine.of(Cost.CONTENDED_QUERY)


def chunk_at(settings: RunSettings, us: float) -> float:
    """Tuples that a worker claims at once from a full work queue."""
    share = settings.queue_capacity / (2 * settings.workers)
    if settings.chunk:
        return min(settings.chunk, max(share, 1.0))
    return max(min((settings.slice_us or SLICE_US) / max(us, 1e-3), MOST_CHUNK, share), 1.0)


def lanes_met(bound: BoundOperator, settings: RunSettings, tuples: float) -> float:
    """Mean lanes among a chunk's tuples.

    All are taken as equally frequent; 0 without, or where a single lane needs no split.
    """
    lanes = lanes_of(bound, settings, is_model=False) if bound.operator.kind is OperatorKind.PARTITIONED else 1
    return 0.0 if lanes == 1 else float(lanes * (1 - (1 - 1 / lanes) ** tuples))


def counts_of(bound: BoundOperator, settings: RunSettings, tally: OperatorTally) -> dict[Term, float]:
    """How often an operator had each cost in a run of threads."""
    kind, chunks = bound.operator.kind, float(tally.in_use.sum())
    counts = {
        Term(Cost.FEED): float(tally.inputs if bound.number == 0 else 0),
        Term(Cost.SEND): chunks,
        Term(Cost.OUTPUT): float(tally.outputs),
        Term(Cost.UNEVEN): float(tally.inputs if tally.outputs != tally.inputs else 0),
        Term(Cost.TUPLE, kind): float(tally.inputs),
        Term(Cost.CLAIM, kind): chunks,
    }
    if kind is OperatorKind.PARTITIONED and chunks and (met := lanes_met(bound, settings, tally.inputs / chunks)):
        counts[Term(Cost.HANDOVER, kind)] = chunks * met
    if kind is not OperatorKind.STATEFUL:
        others = min(settings.workers, bound.partitions if kind is OperatorKind.PARTITIONED else settings.workers) - 1
        counts[Term(Cost.CONTENDED_TUPLE, kind)] = float(others * tally.inputs)
        counts[Term(Cost.CONTENDED_CLAIM, kind)] = others * chunks
    return counts


def queries_of(settings: RunSettings, tallies: Sequence[OperatorTally]) -> dict[Term, float]:
    """How often a run of threads had each cost of queries."""
    queries, how = float(sum(tally.slices for tally in tallies)), settings.heuristic
    counts = {
        Term(Cost.QUERY, heuristic=how): queries,
        Term(Cost.QUERY_OPERATOR, heuristic=how): queries * len(tallies),
        Term(Cost.CONTENDED_QUERY): queries * (settings.workers - 1),
    }
    return {term: count for term, count in counts.items() if count}


def mean_costs_us(chain: BoundChain, costs_us: Sequence[float | None]) -> list[float]:
    """Mean cost of each operator's function, in microseconds."""
    means = [us or 0.0 for us in costs_us]
    for bound, us in zip(chain.operators, costs_us, strict=True):
        if us is None:
            own = inner_of(bound)
            costs = chain.column(own.fields[own.cost_at])
            means[bound.number] = float(costs.mean()) / 1000 if len(costs) else 0.0
    return means
