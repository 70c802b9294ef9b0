"""Discrete-event model of the ordered backend, for any number of workers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain, BoundOperator
from adapt.core.ordered.chain.chain import LONGEST_COST_US, MOST_OUTPUTS
from adapt.core.ordered.chain.columns import Words
from adapt.core.ordered.chain.names import CostSource, FunctionName, Reorder
from adapt.core.ordered.chain.own import OwnFunction
from adapt.core.ordered.engine.kernel.layout import FAULTY, FINISHED
from adapt.core.ordered.engine.memory import Memory, runs_functions
from adapt.core.ordered.engine.reference import OperatorTally, WorkersRun
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.model.simulate import simulate
from adapt.core.ordered.model.slices import MODEL_WORKER, NEVER


def _model_memory(
    memory: Memory, chain: BoundChain, costs_us: Sequence[float | None], selectivities: Sequence[float], of: Contention
) -> None:
    """Write what only the model reads."""
    settings, header = memory.settings, memory.header
    if settings.reorder is Reorder.RETRY:  # a batch must have room in the ring buffer
        header["chunk"] = min(header["chunk"], settings.ring_buffer)
    header["jitter"], header["send_ns"] = int(of.jitter * 2**20), round(of.send_us * 1000)
    header["lock_handover_ns"] = round(of.lock_handover_us * 1000)
    # Section 6: the longer the slice, the "lower the contention for querying the scheduler".
    alone = 1000 * (of.query_us + len(memory.operators) * of.query_operator_us)
    contended = 1000 * of.query_contention_us
    header["query_ps"], header["contended_query_ps"] = round(1000 * alone), round(1000 * contended)
    workers, dues = memory.storage.records(settings.workers, MODEL_WORKER), memory.storage.zeros(settings.workers)
    dues[:] = round(alone + (settings.workers - 1) * contended)  # the first queries
    workers["due_at"] = dues.ctypes.data + 8 * np.arange(settings.workers)
    header["dues_at"], header["model_workers_at"] = dues.ctypes.data, workers.ctypes.data
    for bound, cost_us, selectivity in zip(chain.operators, costs_us, selectivities, strict=True):
        record, whole = memory.operators[bound.number], int(selectivity)
        share = min(int((selectivity - whole) * 2**64), 2**64 - 1)
        record["cost_at"], record["cost_ns"] = -1, round((cost_us or 0.0) * 1000)
        if cost_us is None:  # in tuples as the model passes them
            at = bound.cost_at
            record["cost_at"] = at if runs_functions(chain) else chain.fields.index(bound.fields[at])
        record["whole"], record["share"] = whole, np.uint64(share).view(np.int64)
        record["crowd_ps"] = round(1e6 * of.contention_us)
        record["output_ps"] = round(1e6 * of.output_us)
        record["lock_queue_at"] = memory.storage.zeros(settings.workers).ctypes.data


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
    memory = Memory(chain, settings, 1, 0, given, arrivals_ns=arrivals_ns)
    _model_memory(memory, chain, costs, given, contention)
    memory.header["seed"] = seed = int(random.integers(2**62))
    simulate(memory.address, NEVER)
    memory.release()
    if memory.ended == FAULTY:
        raise memory.failure()
    if memory.ended != FINISHED:
        raise RuntimeError(
            f"the model stalled; tuples that arrived, were claimed, were sent, by operator: {memory.stuck()}; seed"
            f" {seed}"
        )
    run = memory.run(int(memory.header["now_ns"]) / 1e9)
    return ModelRun(run, contention, int(memory.header["events"]))


def _costs_us(chain: BoundChain) -> tuple[float | None, ...]:
    """Costs given by the chain; None where each tuple has its own."""
    costs = (bound.operator.cost for bound in chain.operators)
    return tuple(None if isinstance(cost, str) else cost for cost in costs)


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
