"""What the engine adds to a tuple in the model, by operator."""

from collections.abc import Sequence
from dataclasses import dataclass

from adapt.core.ordered.chain.bound import BoundChain, BoundOperator
from adapt.core.ordered.chain.names import FunctionName, OperatorKind
from adapt.core.ordered.engine.contention import Contention
from adapt.core.ordered.engine.costs import Cost, EngineCosts, Term
from adapt.core.ordered.engine.kernel.claiming import SHARED_SLICE
from adapt.core.ordered.engine.kernel.codes import MOST_CHUNK
from adapt.core.ordered.engine.kernel.estimates import LEAST_ADAPTED_NS
from adapt.core.ordered.engine.memory import lanes_of
from adapt.core.ordered.engine.outcome import OperatorTally
from adapt.core.ordered.engine.settings import SLICE_US, RunSettings
from adapt.core.ordered.own.function import inner_of

_ROUNDS = 10
"""Rounds in which the size of a chunk and the cost of its tuples agree."""


@dataclass(frozen=True, slots=True)
class Added:
    """Times in nanoseconds.

    Attributes:
        tuple: For each tuple.
        claim: For each chunk.
        lane: For each lane of a chunk.
    """

    tuple: float = 0.0
    claim: float = 0.0
    lane: float = 0.0

    def per_tuple(self, tuples: float, lanes: float) -> float:
        """For a tuple in a chunk, by its tuples and lanes."""
        return self.tuple + (self.claim + lanes * self.lane) / tuples


@dataclass(frozen=True, slots=True)
class OperatorTimes:
    """Times of an operator in the model.

    Attributes:
        added: To the cost of tuples.
        crowd: The same, by each other worker on the operator.
        passed: The same, while other workers are on other operators.
        sent: To send a tuple, in nanoseconds; one worker at a time.
        output: To send one of its outputs.
        chunk: Tuples of a full chunk.
    """

    added: Added
    crowd: Added
    passed: Added
    sent: float
    output: float
    chunk: float = 1.0


def assumed_times(contention: Contention) -> OperatorTimes:
    """The same for all operators, without measured costs."""
    return OperatorTimes(Added(), Added(1000 * contention.contention_us), Added(), 0.0, 1000 * contention.output_us)


def measured_times(
    bound: BoundOperator, settings: RunSettings, us: float, selectivity: float, costs: EngineCosts, operators: int = 1
) -> OperatorTimes:
    """Costs of tuples and chunks.

    A chunk that adapts to the cost of tuples also adapts to what other workers add to it, so its size is a fixed point.

    Args:
        us: Mean cost of its function per tuple.
        selectivity: Its outputs per tuple.
        operators: Operators of the chain.
    """
    kind = bound.operator.kind
    uneven = Uneven.at(selectivity)
    tuple_ns = costs.of(Cost.TUPLE, kind)
    tuple_ns += uneven.several * costs.of(Cost.SEVERAL) + uneven.spread * costs.of(Cost.SPREAD)
    if bound.number == 0:
        tuple_ns += costs.of(Cost.FEED)
    if works(bound):
        tuple_ns -= min(costs.of(Cost.HIDDEN), 1000 * us)
    added = Added(tuple_ns, costs.of(Cost.CLAIM, kind), costs.of(Cost.HANDOVER, kind))
    contended = Cost.CONTENDED_TUPLE, Cost.CONTENDED_CLAIM, Cost.CONTENDED_HANDOVER
    crowd = Added(*(costs.of(cost, kind) for cost in contended))
    passed_ns = costs.of(Cost.PASSED_TUPLE, kind) + uneven.apart * costs.of(Cost.PASSED_APART)
    passed = Added(passed_ns, costs.of(Cost.PASSED_CLAIM, kind))
    others = settings.workers - 1
    tuples = 1.0
    for _ in range(_ROUNDS):
        lanes = lanes_met(bound, settings, tuples)
        each_ns = added.per_tuple(tuples, lanes)
        if others:
            each_ns += passed.per_tuple(tuples, lanes) if operators > 1 else others * crowd.per_tuple(tuples, lanes)
        tuples = chunk_at(settings, us + max(each_ns, 0.0) / 1000)
    return OperatorTimes(added, crowd, passed, costs.of(Cost.SEND) / tuples, costs.of(Cost.OUTPUT), tuples)


def works(bound: BoundOperator) -> bool:
    """Whether its function is work whose time the chain gives."""
    return bound.operator.function is FunctionName.WORK and bool(bound.operator.cost)


@dataclass(frozen=True, slots=True)
class Uneven:
    """Numbers of outputs of tuples, independent from tuple to tuple.

    Attributes:
        apart: Share of the tuples without exactly one.
        several: Share of those with more.
        spread: Standard deviation.
    """

    apart: float
    several: float
    spread: float

    @staticmethod
    def at(selectivity: float) -> "Uneven":
        """They are taken as the two integers next to the selectivity."""
        whole = int(selectivity)
        share = selectivity - whole
        single = share if whole == 0 else 1 - share if whole == 1 else 0.0
        several = 0.0 if whole == 0 else share if whole == 1 else 1.0
        return Uneven(1 - single, several, (share * (1 - share)) ** 0.5)


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
    return alone, engine.of(Cost.CONTENDED_QUERY) + operators * engine.of(Cost.CONTENDED_QUERY_OPERATOR)


def chunk_at(settings: RunSettings, us: float) -> float:
    """Tuples that a worker claims at once from a full work queue."""
    share = settings.queue_capacity / (2 * settings.workers)
    if settings.chunk:
        return min(settings.chunk, max(share, 1.0))
    quota = max(settings.slice_us or SLICE_US, LEAST_ADAPTED_NS / 1000) / max(us, 1e-3)
    return max(min(quota, MOST_CHUNK, max(share, quota / SHARED_SLICE)), 1.0)


def lanes_split(bound: BoundOperator, settings: RunSettings) -> int:
    """Lanes by which the engine splits chunks; 0 where it does not."""
    lanes = lanes_of(bound, settings) if bound.operator.kind is OperatorKind.PARTITIONED else 1
    return 0 if lanes == 1 else lanes


def lanes_met(bound: BoundOperator, settings: RunSettings, tuples: float) -> float:
    """Mean lanes among a chunk's tuples.

    All are taken as equally frequent; 0 without, or where a single lane needs no split.
    """
    lanes = lanes_split(bound, settings)
    return float(lanes * (1 - (1 - 1 / lanes) ** tuples)) if lanes else 0.0


def counts_of(
    bound: BoundOperator, settings: RunSettings, tally: OperatorTally, operators: int = 1
) -> dict[Term, float]:
    """How often an operator had each cost in a run of threads.

    Where it is the only one, the others are always on it or look for its work.

    Args:
        operators: Operators of the chain.
    """
    kind, chunks = bound.operator.kind, float(tally.in_use.sum())
    uneven = Uneven.at(tally.outputs / tally.inputs if tally.inputs else 1.0)
    counts = {
        Term(Cost.FEED): float(tally.inputs if bound.number == 0 else 0),
        Term(Cost.SEND): chunks,
        Term(Cost.OUTPUT): float(tally.outputs),
        Term(Cost.SEVERAL): uneven.several * tally.inputs,
        Term(Cost.SPREAD): uneven.spread * tally.inputs,
        Term(Cost.HIDDEN): float(tally.inputs if works(bound) else 0),
        Term(Cost.TUPLE, kind): float(tally.inputs),
        Term(Cost.CLAIM, kind): chunks,
    }
    if kind is OperatorKind.PARTITIONED and chunks and (met := lanes_met(bound, settings, tally.inputs / chunks)):
        counts[Term(Cost.HANDOVER, kind)] = chunks * met
    most = min(settings.workers, bound.partitions if kind is OperatorKind.PARTITIONED else settings.workers)
    others = tally.crowded / chunks if operators > 1 and chunks else most - 1.0
    counts[Term(Cost.PASSED_TUPLE, kind)] = (passed := min(max(settings.workers - 1 - others, 0.0), 1.0)) * tally.inputs
    counts[Term(Cost.PASSED_CLAIM, kind)] = passed * chunks
    counts[Term(Cost.PASSED_APART)] = passed * uneven.apart * tally.inputs
    if kind is not OperatorKind.STATEFUL:
        counts[Term(Cost.CONTENDED_TUPLE, kind)] = others * tally.inputs
        counts[Term(Cost.CONTENDED_CLAIM, kind)] = others * chunks
        if handovers := counts.get(Term(Cost.HANDOVER, kind)):
            counts[Term(Cost.CONTENDED_HANDOVER, kind)] = others * handovers
    return counts


def queries_of(settings: RunSettings, tallies: Sequence[OperatorTally]) -> dict[Term, float]:
    """How often a run of threads had each cost of queries."""
    queries, how = float(sum(tally.slices for tally in tallies)), settings.heuristic
    counts = {
        Term(Cost.QUERY, heuristic=how): queries,
        Term(Cost.QUERY_OPERATOR, heuristic=how): queries * len(tallies),
        Term(Cost.CONTENDED_QUERY): queries * (settings.workers - 1),
        Term(Cost.CONTENDED_QUERY_OPERATOR): queries * (settings.workers - 1) * len(tallies),
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
