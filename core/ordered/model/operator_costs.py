"""Costs and selectivities of operators, from the chain or measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from adapt.core.ordered.chain.bound import BoundChain, BoundOperator
from adapt.core.ordered.chain.chain import MOST_OUTPUTS
from adapt.core.ordered.chain.names import CostSource, FunctionName
from adapt.core.ordered.chain.own import OwnFunction
from adapt.core.ordered.engine.cache_costs import ASSUMED_CACHES, CacheCosts
from adapt.core.ordered.engine.contention import Contention
from adapt.core.ordered.engine.costs import Cost, EngineCosts
from adapt.core.ordered.engine.outcome import OperatorTally
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.model.cache_times import cache_times
from adapt.core.ordered.model.engine_times import counts_of


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs and selectivities by operator.

    Attributes:
        us: Microseconds per tuple; None where each tuple has its own cost.
        selectivities: Outputs per tuple (s in the paper; the cost is c).
        sources: Where each cost comes from.
    """

    us: tuple[float | None, ...]
    selectivities: tuple[float, ...]
    sources: tuple[CostSource, ...]


def is_given(chain: BoundChain) -> bool:
    """Whether the chain gives the cost of every operator."""
    return all(_says_cost(bound) for bound in chain.operators)


def given_costs(chain: BoundChain) -> Costs:
    """Costs given by the chain."""
    operators = chain.operators
    return Costs(
        tuple(_given_us(bound) for bound in operators),
        tuple(bound.operator.selectivity for bound in operators),
        tuple(CostSource.CHAIN for _ in operators),
    )


def fitted_costs(
    chain: BoundChain,
    tallies: Sequence[OperatorTally],
    contention: Contention,
    settings: RunSettings | None = None,
    engine: EngineCosts | None = None,
) -> Costs:
    """Costs from a run of the real engine with one worker.

    Only for operators without a cost in the chain.

    No tuple was timed in that run. What the model adds is subtracted: the time to send or, with measured costs of the
    engine, all of these.

    Args:
        settings: Settings of that run; needed with `engine`.
        engine: Measured costs of the engine.

    Source: ordered streams, section 6: c is time over inputs, and s outputs over inputs.
    """
    how, caches = settings or RunSettings(), ASSUMED_CACHES if engine is None else engine.caches
    added_ns = [
        (_sending_ns(tally, contention) if engine is None else _engine_ns(bound, how, tally, engine))
        + _payload_ns(chain, bound, tally, caches)
        for bound, tally in zip(chain.operators, tallies, strict=True)
    ]
    measured = [
        max(tally.busy_ns - ns, 0.0) / 1000 / tally.inputs if tally.inputs else 0.0
        for tally, ns in zip(tallies, added_ns, strict=True)
    ]
    given = [tally.outputs / tally.inputs if tally.inputs else 0.0 for tally in tallies]
    return _where_not_said(chain, measured, given, CostSource.THREADS)


def _sending_ns(tally: OperatorTally, contention: Contention) -> float:
    return 1000 * (contention.send_us * int(tally.in_use.sum()) + contention.output_us * tally.outputs)


def _payload_ns(chain: BoundChain, bound: BoundOperator, tally: OperatorTally, caches: CacheCosts) -> float:
    selectivity = tally.outputs / tally.inputs if tally.inputs else 0.0
    times = cache_times(chain, bound, selectivity, caches)
    return times.added * tally.inputs + times.output * tally.outputs


def _engine_ns(bound: BoundOperator, settings: RunSettings, tally: OperatorTally, engine: EngineCosts) -> float:
    counts = counts_of(bound, settings, tally)
    return sum(count * engine.ns.get(term, 0.0) for term, count in counts.items() if term.cost is not Cost.FEED)


def _where_not_said(
    chain: BoundChain, measured_us: Sequence[float], selectivities: Sequence[float], source: CostSource
) -> Costs:
    said = [_says_cost(bound) for bound in chain.operators]
    return Costs(
        tuple(
            _given_us(bound) if says else us for bound, says, us in zip(chain.operators, said, measured_us, strict=True)
        ),
        tuple(min(selectivity, MOST_OUTPUTS - 1.0) for selectivity in selectivities),
        tuple(CostSource.CHAIN if says else source for says in said),
    )


def _says_cost(bound: BoundOperator) -> bool:
    """A cost of 0 means that the chain gives none, unless it gives sizes."""
    operator = bound.operator
    may = operator.function is FunctionName.WORK or isinstance(operator.function, OwnFunction)
    sized = operator.tuple_bytes or operator.state_bytes
    return may and (isinstance(operator.cost, str) or operator.cost > 0 or sized > 0)


def _given_us(bound: BoundOperator) -> float | None:
    return None if isinstance(bound.operator.cost, str) else bound.operator.cost
