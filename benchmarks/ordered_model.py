"""Accuracy of the ordered model on unmeasured chains.

Claim: from operator costs measured in two chains, the model predicts the time of one worker on three other chains of
the same operators within a quarter. Times are CPU times, the lowest of several runs."""

import sys
from collections.abc import Mapping, Sequence
from time import process_time

import numpy as np
import pyarrow as pa

from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.names import FunctionName, OperatorKind
from adapt.core.ordered.engine.reference import WorkersRun
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.functions.work import measured_pace
from adapt.core.ordered.model.model import run_model

MOST_APART = 0.25
TUPLES, KEYS, REPEATS = 60_000, 10_000, 9

OPERATORS = {
    operator.name: operator
    for operator in (
        Operator("parse", OperatorKind.STATELESS, cost=1.0),
        Operator("filter", OperatorKind.STATELESS, cost=0.3, selectivity=0.5),
        Operator("pairs", OperatorKind.STATELESS, cost=2.0, selectivity=3.0),
        Operator("sessions", OperatorKind.PARTITIONED, "key", 64, cost=1.0),
        Operator("count", OperatorKind.PARTITIONED, "key", 64, function=FunctionName.COUNT),
        Operator("top", OperatorKind.STATEFUL, cost=0.5, selectivity=0.2),
    )
}

MEASURED = (("parse", "filter", "sessions"), ("pairs", "count", "top"))
ASKED = (
    ("filter", "pairs", "sessions", "top"),
    ("sessions", "parse", "count"),
    ("parse", "sessions", "filter", "count", "top"),
)


def main() -> int:
    """Measure costs, predict and run chains; 0 if the claim is met."""
    pace = measured_pace()
    costs_us: dict[str, float] = {}
    for names in MEASURED:
        costs_us |= measured_us(names, pace)
    print("costs, us:", ", ".join(f"{name} {cost:.3f}" for name, cost in costs_us.items()))
    met = [agrees(names, costs_us, pace) for names in ASKED]
    return 0 if all(met) else 1


def chain_of(names: Sequence[str]) -> BoundChain:
    """A chain of the named operators over uniform keys."""
    keys = np.random.default_rng(1).integers(0, KEYS, TUPLES)
    return bind(Chain(tuple(OPERATORS[name] for name in names)), {"key": pa.array(keys)})


def measured_us(names: Sequence[str], pace: int) -> dict[str, float]:
    """Cost per tuple of each operator of a chain, by name.

    The lowest CPU time of a run is divided over the operators like the wall time of all runs, which also counts time
    while other processes have the core."""
    chain = chain_of(names)
    runs = [timed(chain, pace) for _ in range(REPEATS)]
    least_us = 1e6 * min(cpu_s for cpu_s, _ in runs)
    busy = np.array([[tally.busy_ns for tally in run.operators] for _, run in runs]).sum(axis=0)
    inputs = [tally.inputs for tally in runs[0][1].operators]
    return {name: least_us * share / count for name, share, count in zip(names, busy / busy.sum(), inputs, strict=True)}


def agrees(names: Sequence[str], costs_us: Mapping[str, float], pace: int) -> bool:
    """Predict a chain with the model, and run it with the engine."""
    chain = chain_of(names)
    own = [costs_us[name] for name in names]
    model_s = run_model(chain, RunSettings(), Contention(), np.random.default_rng(2), own).run.elapsed_s
    engine_s = min(timed(chain, pace)[0] for _ in range(REPEATS))
    ratio = model_s / engine_s
    met = abs(ratio - 1) <= MOST_APART
    print(
        f"{' -> '.join(names)}: model {model_s:.4f} s, engine {engine_s:.4f} s of CPU, "
        f"ratio {ratio:.2f}, claimed within {MOST_APART:.0%}: {'met' if met else 'NOT MET'}"
    )
    return met


def timed(chain: BoundChain, pace: int) -> tuple[float, WorkersRun]:
    """Run with one worker; returns the result and its CPU seconds."""
    start = process_time()
    run = run_by_workers(chain, RunSettings(), pace)
    return process_time() - start, run


if __name__ == "__main__":
    sys.exit(main())
