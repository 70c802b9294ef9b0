"""The model of the engine: for any number of workers, by events, on the structures and heuristics of the real one."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.chain import LONGEST_COST_US, MOST_OUTPUTS
from adapt.core.ordered.chain.names import Reorder, Worklist
from adapt.core.ordered.engine.contention import Contention, Modelled
from adapt.core.ordered.engine.kernel.codes import FINISHED
from adapt.core.ordered.engine.outcome import WorkersRun
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.model.model_memory import model_memory
from adapt.core.ordered.model.simulate import simulate


@dataclass(frozen=True, slots=True, eq=False)
class ModelRun:
    """A run of the model.

    Attributes:
        run: What it measured, by the clock of the model. The egress is made of copies of the tuples that entered, as
            many as were drawn, and is the same for all settings.
        contention: The constants that were assumed.
        events: How many there were.
    """

    run: WorkersRun
    contention: Contention
    events: int


def run_model(
    chain: BoundChain,
    settings: RunSettings,
    contention: Contention,
    random: np.random.Generator,
    costs_us: Sequence[float | None] | None = None,
    selectivities: Sequence[float] | None = None,
    gap_us: float = 0.0,
) -> ModelRun:
    """Run a chain by the model.

    Real are serial numbers, rings, worklists, partitions of keys, delegation and the choice of operators; costs are
    given or drawn, and so are numbers of outputs, by operator and serial number, whatever the schedule. Caches, memory,
    the time it takes to choose, and the machine's own scheduler are not modelled.

    Args:
        contention: What workers cost each other.
        random: Draws costs and outputs.
        costs_us: Of a tuple, by operator, as measured, or None where tuples bring their own; None, those of the chain.
        selectivities: Outputs a tuple, by operator, as measured; None, those of the chain.
        gap_us: From the arrival of a tuple to that of the next; 0, all are there at the start.

    Raises:
        UsageError: an argument is out of its range, or the model does not know the reordering or worklist.
        RuntimeError: no tuple could move any more; the program is at fault.

    Source: ordered streams, sections 3 to 6; the model is ours.
    """
    if settings.reorder is Reorder.RETRY or settings.worklist is Worklist.SHARED:
        raise UsageError(
            f"the model knows reorder {Reorder.CLAIM} and {Reorder.LOCK}, and worklist {Worklist.HYBRID} and "
            f"{Worklist.PARTITIONED}; {Reorder.RETRY} and {Worklist.SHARED} run on threads only"
        )
    if not 0 <= gap_us <= LONGEST_COST_US:
        raise UsageError(f"tuples come from 0 to {LONGEST_COST_US:g} microseconds after each other, not {gap_us:g}")
    costs = tuple(_costs_us(chain) if costs_us is None else costs_us)
    if len(costs) != len(chain.operators) or not all(
        bound.cost_at >= 0 if cost is None else 0 <= cost <= LONGEST_COST_US
        for bound, cost in zip(chain.operators, costs, strict=True)
    ):
        raise UsageError(
            f"a cost from 0 to {LONGEST_COST_US:g} microseconds is given for each of {len(chain.operators)} operators, "
            f"not {costs}"
        )
    given = tuple(bound.operator.selectivity for bound in chain.operators) if selectivities is None else selectivities
    if len(given) != len(chain.operators) or not all(0 <= selectivity < MOST_OUTPUTS for selectivity in given):
        raise UsageError(
            f"a selectivity from 0 to below {MOST_OUTPUTS} is given for each of {len(chain.operators)} operators, not "
            f"{tuple(given)}"
        )
    modelled = Modelled(costs, tuple(given), contention, gap_us, int(random.integers(2**62)))
    memory = model_memory(chain, settings, modelled)
    simulate(memory.address)
    if memory.ended != FINISHED:
        raise RuntimeError(f"no tuple moves in the model; by operator, came, claimed, sent: {memory.stuck()}")
    run = memory.run(int(memory.header["now_ns"]) / 1e9)
    return ModelRun(run, contention, int(memory.header["events"]))


def _costs_us(chain: BoundChain) -> tuple[float | None, ...]:
    """Those of the chain; None where tuples bring their own."""
    costs = (bound.operator.cost for bound in chain.operators)
    return tuple(None if isinstance(cost, str) else cost for cost in costs)
