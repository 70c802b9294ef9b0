"""CPU time per tuple of two workers against one.

Claim: a tuple of 10 us takes at most 1.1 times the CPU time with two workers. CPU time makes the claim independent of
other processes; the speed-up and the cores used are printed, but not claimed, since two idle cores are rare.
"""

import sys
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa
from ratio import Ratio, holds

from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.functions.work import measured_pace

MOST_RATIO = 1.1
COST_US, TUPLES, REPEATS = 10.0, 50_000, 9


def main() -> int:
    """Run one and two workers in turns; 0 if met."""
    operator = Operator("operator", OperatorKind.STATELESS, cost=COST_US)
    chain = bind(Chain((operator,)), {"row": pa.array(np.arange(TUPLES))})
    pace = measured_pace()
    timed(chain, 1, pace)
    pairs = [(timed(chain, 1, pace), timed(chain, 2, pace)) for _ in range(REPEATS)]
    speed_up, cores = max((one[0] / two[0], two[1] / two[0]) for one, two in pairs)
    print(f"two workers were at best {speed_up:.2f} times as fast as one, on {cores:.2f} cores")
    best = min(two[1] for _, two in pairs), min(one[1] for one, _ in pairs)
    ratio = Ratio(tuple(one[1] / two[1] for one, two in pairs), *best)
    return 0 if holds(f"CPU time per tuple of {COST_US:g} us, one worker over two", ratio, 1 / MOST_RATIO) else 1


def timed(chain: BoundChain, workers: int, pace: int) -> tuple[float, float]:
    """Wall seconds and CPU seconds of a run."""
    start, cpu = perf_counter(), process_time()
    run_by_workers(chain, RunSettings(workers), pace)
    return perf_counter() - start, process_time() - cpu


if __name__ == "__main__":
    sys.exit(main())
