"""Ordered model against SimPy on one operator.

Claim: the model is at least 10 times as fast, and both end at the same simulated time within 1 %. The SimPy program is
what its users would write: a process per worker, a counter for the next tuple, and a set of tuples that wait for their
turn to leave. Costs are drawn from the same distribution with separate random streams.
"""

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from ratio import cpu_measured, holds

from adapt.core.ordered.chain.bound import bind
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.model.model import run_model

LEAST_RATIO, WITHIN = 10, 0.01
TUPLES, WORKERS, REPEATS = 200_000, 16, 5
COST_US, JITTER = 10.0, 0.3


def main() -> int:
    """Time both in turns; 0 if the claims are met."""
    operator = Operator("operator", OperatorKind.STATELESS, cost=COST_US)
    chain = bind(Chain((operator,)), {"row": pa.array(np.arange(TUPLES))})

    def ours() -> float:
        return run_model(chain, RunSettings(WORKERS), Contention(JITTER), np.random.default_rng(1)).run.elapsed_s

    theirs = simpy_operator(np.random.default_rng(2))
    apart = abs(ours() / (theirs() * 1e-6) - 1)
    print(f"the ends of both runs of {TUPLES:,} tuples are {apart:.2%} apart, claimed at most {WITHIN:.0%}")
    ratio = cpu_measured(ours, theirs, REPEATS)
    return (
        0
        if holds("the model of a stateless operator against SimPy, by CPU time", ratio, LEAST_RATIO)
        and (apart <= WITHIN)
        else 1
    )


def simpy_operator(chance: np.random.Generator) -> Callable[[], float]:
    """Run the same operator in SimPy; returns the simulated end in microseconds."""
    import simpy

    drawn = (COST_US * (1 - JITTER + JITTER * chance.standard_exponential(TUPLES))).tolist()

    def run() -> float:
        world = simpy.Environment()
        head, out, waiting = 0, 0, set[int]()

        def work() -> Any:
            nonlocal head, out
            while head < TUPLES:
                serial = head
                head += 1
                yield world.timeout(drawn[serial])
                waiting.add(serial)
                while out in waiting:
                    waiting.remove(out)
                    out += 1

        for _ in range(WORKERS):
            world.process(work())
        world.run()
        if out != TUPLES:
            raise RuntimeError(f"{TUPLES - out} tuples never left")
        return float(world.now)

    return run


if __name__ == "__main__":
    sys.exit(main())
