"""Discrete-event model of the ordered backend, for any number of workers."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain, Words
from adapt.core.ordered.chain.chain import LONGEST_COST_US, MOST_OUTPUTS
from adapt.core.ordered.chain.names import WorkQueue
from adapt.core.ordered.engine.contention import Contention, Modeled
from adapt.core.ordered.engine.kernel.codes import FAULTY, FINISHED
from adapt.core.ordered.engine.outcome import WorkersRun
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.model.events import NEVER
from adapt.core.ordered.model.model_memory import model_memory
from adapt.core.ordered.model.simulate import simulate


@dataclass(frozen=True, slots=True, eq=False)
class ModelRun:
    """Result of a run of the model."""

    # measurements by the clock of the model. The egress is that of the functions in a chain with own ones; else it
    # consists of copies of the input tuples, as many as were drawn, and is the same for all settings
    run: WorkersRun
    contention: Contention  # the contention that was assumed
    events: int


def run_model(
    chain: BoundChain,
    settings: RunSettings,
    contention: Contention,
    random: np.random.Generator,
    costs_us: Sequence[float | None] | None = None,
    selectivities: Sequence[float] | None = None,
    arrivals_ns: Words | None = None,
) -> ModelRun:
    """Run a chain in the model.

    Serial numbers, ring buffers, work queues, partitions of keys, delegation and scheduling heuristics are those of the
    real engine. Costs and numbers of outputs are given, or drawn by operator and serial number, independent of the
    schedule; a chain with own functions runs all its functions on the stream instead of drawing outputs. Caches,
    memory, scheduling overhead and the operating system's scheduler are not modeled.

    Args:
        contention: Time that workers cost each other.
        random: Source of random costs and outputs.
        costs_us: Measured cost of a tuple by operator, or None where each tuple has its own; default: those of the
            chain.
        selectivities: Measured outputs per tuple by operator; default: those of the chain.
        arrivals_ns: When each tuple arrives, ascending, from 0 on; None if all are there at the start.

    Source: ordered streams, sections 3 to 6; the model is ours.
    """
    if settings.work_queue is WorkQueue.SHARED:
        raise UsageError(
            f"the model supports work queue {WorkQueue.HYBRID} and {WorkQueue.PARTITIONED}; {WorkQueue.SHARED} runs on "
            f"threads only"
        )
    chain = chain.by_workers(settings.workers)
    costs = tuple(_costs_us(chain) if costs_us is None else costs_us)
    if len(costs) != len(chain.operators) or not all(
        bound.cost_at >= 0 if cost is None else 0 <= cost <= LONGEST_COST_US
        for bound, cost in zip(chain.operators, costs, strict=True)
    ):
        raise UsageError(
            f"costs_us must give each of {len(chain.operators)} operators a cost from 0 to {LONGEST_COST_US:g} (got "
            f"{costs})"
        )
    given = tuple(bound.operator.selectivity for bound in chain.operators) if selectivities is None else selectivities
    if len(given) != len(chain.operators) or not all(0 <= selectivity < MOST_OUTPUTS for selectivity in given):
        raise UsageError(
            f"selectivities must give each of {len(chain.operators)} operators a number from 0 to below {MOST_OUTPUTS} "
            f"(got {tuple(given)})"
        )
    modeled = Modeled(costs, tuple(given), contention, int(random.integers(2**62)))
    memory = model_memory(chain, settings, modeled, arrivals_ns)
    simulate(memory.address, NEVER)
    memory.release()
    if memory.ended == FAULTY:
        raise memory.failure()
    if memory.ended != FINISHED:
        raise RuntimeError(
            f"the model stalled; tuples that arrived, were claimed, were sent, by operator: {memory.stuck()}"
        )
    run = memory.run(int(memory.header["now_ns"]) / 1e9)
    return ModelRun(run, contention, int(memory.header["events"]))


def _costs_us(chain: BoundChain) -> tuple[float | None, ...]:
    """Costs given by the chain; None where each tuple has its own."""
    costs = (bound.operator.cost for bound in chain.operators)
    return tuple(None if isinstance(cost, str) else cost for cost in costs)
