"""Costs and selectivities of operators, given or measured."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from adapt.core.ordered.chain.bound import BoundChain, BoundOperator
from adapt.core.ordered.chain.chain import MOST_OUTPUTS
from adapt.core.ordered.chain.names import CostSource, FunctionName
from adapt.core.ordered.chain.own import OwnFunction
from adapt.core.ordered.engine.contention import Contention
from adapt.core.ordered.engine.outcome import OperatorTally

RUNS = 5
"""Runs of which the one with the least CPU time gives an operator's cost."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs and selectivities by operator."""

    us: tuple[float | None, ...]  # microseconds per tuple; None where each tuple has its own cost
    selectivities: tuple[float, ...]  # outputs per tuple (s in the paper; the cost is c)
    sources: tuple[CostSource, ...]
    highest_us: tuple[float | None, ...] = ()  # by the slowest run; empty or None if not measured


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


def measured_costs(
    chain: BoundChain,
    run: Callable[[], Sequence[OperatorTally]],
    contention: Contention,
    cpu_clock: Callable[[], float],
    min_time_s: float,
) -> Costs:
    """Costs by CPU time of operators without given ones.

    The chain runs with one worker until `min_time_s` of CPU have passed, `RUNS` times. The CPU time of a run is
    divided over the operators by the time that the worker spent on each, and the run in which an operator took least
    gives its cost: what else the machine does only adds time. What the model adds itself, the time to send, is
    subtracted.

    Args:
        run: Runs the chain once with one worker, which no tuple is timed in.
        cpu_clock: CPU seconds of this process.

    Source: ordered streams, section 6: c is time over inputs, and s outputs over inputs.
    """
    by_run: list[list[float]] = []
    tallies: Sequence[OperatorTally] = ()
    for _ in range(RUNS):
        passes, start_s, busy_ns = 0, cpu_clock(), [0] * len(chain.operators)
        while not passes or cpu_clock() - start_s < min_time_s:
            tallies = run()
            passes += 1
            busy_ns = [sum(pair) for pair in zip(busy_ns, (each.busy_ns for each in tallies), strict=True)]
        cpu_us, all_ns = 1e6 * (cpu_clock() - start_s) / passes, sum(busy_ns) or 1
        by_run.append([cpu_us * busy / all_ns for busy in busy_ns])
    costs = [
        sorted(max(us - _sending_us(tally, contention), 0.0) / tally.inputs if tally.inputs else 0.0 for us in of_each)
        for tally, of_each in zip(tallies, zip(*by_run, strict=True), strict=True)
    ]
    said = [_says_cost(bound) for bound in chain.operators]
    of_each = list(zip(chain.operators, said, costs, strict=True))
    return Costs(
        tuple(_given_us(bound) if says else least for bound, says, (least, *_) in of_each),
        tuple(min(tally.outputs / tally.inputs, MOST_OUTPUTS - 1.0) if tally.inputs else 0.0 for tally in tallies),
        tuple(CostSource.CHAIN if says else CostSource.THREADS for says in said),
        tuple(None if says else most for _, says, (*_, most) in of_each),
    )


def _sending_us(tally: OperatorTally, contention: Contention) -> float:
    return contention.send_us * int(tally.in_use.sum()) + contention.output_us * tally.outputs


def _says_cost(bound: BoundOperator) -> bool:
    """A cost of 0 means that the chain gives none; what payloads and states take is measured."""
    operator = bound.operator
    may = operator.function is FunctionName.WORK or isinstance(operator.function, OwnFunction)
    sized = operator.tuple_bytes or operator.state_bytes
    return may and not sized and (isinstance(operator.cost, str) or operator.cost > 0)


def _given_us(bound: BoundOperator) -> float | None:
    return None if isinstance(bound.operator.cost, str) else bound.operator.cost
