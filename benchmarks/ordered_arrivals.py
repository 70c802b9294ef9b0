"""CPU of arrivals and clocks in ordered replays on threads.

Claim: at 1 us of work per row, rows that are taken in as they arrive and are timed cost at most 1.03 times the CPU of
rows that are all there at the start and are not timed. They arrive faster than the workers can process them, so that
workers are never idle. At 0.9 of the capacity, idle workers also poll for the next row; that is printed without a
claim. Runs of both kinds alternate; a ratio is the median over all pairs."""

import sys
from collections.abc import Callable
from statistics import median
from time import process_time

import numpy as np
import pyarrow as pa

from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.columns import Words
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.functions.work import measured_pace
from adapt.core.ordered.replay.arrivals import Arrivals

MOST = 1.03
ROWS, PAIRS, TIMED = 200_000, 15, 10_000
LOADS = 100.0, 0.9


def main() -> int:
    """Measure each load with 1 and 2 workers; 0 if met."""
    chain, pace, is_met = chain_of(1.0), measured_pace(), True
    for workers in (1, 2):
        plain = RunSettings(workers=workers)
        timed = RunSettings(workers=workers, mark_every=ROWS // TIMED)
        capacity = ROWS / min(run_by_workers(chain, plain, pace).elapsed_s for _ in range(3))
        for load in LOADS:
            arrivals = Arrivals(offered=load).paced(chain, capacity, None, 0).arrivals_ns

            def at_once(plain: RunSettings = plain) -> None:
                run_by_workers(chain, plain, pace)

            def arriving(timed: RunSettings = timed, arrivals: Words = arrivals) -> None:
                run_by_workers(chain, timed, pace, arrivals_ns=arrivals)

            pairs = [(cpu_s(at_once), cpu_s(arriving)) for _ in range(PAIRS)]
            ratios = sorted(after / before for before, after in pairs)
            ratio = median(ratios)
            is_met = is_met and (ratio <= MOST or load < 1)
            ns = [1e9 * median(each) / ROWS for each in zip(*pairs, strict=True)]
            claim = f", claimed at most {MOST:g}x" if load > 1 else ""
            print(
                f"{workers} workers at {load:g} of their capacity: {ns[0]:,.0f} and {ns[1]:,.0f} ns of CPU a row, "
                f"{ratio:.3f}x ({ratios[PAIRS // 4]:.3f} to {ratios[-1 - PAIRS // 4]:.3f}){claim}"
            )
    print("met" if is_met else "NOT MET")
    return 0 if is_met else 1


def chain_of(cost_us: float) -> BoundChain:
    """One stateless operator."""
    operator = Operator("work", OperatorKind.STATELESS, cost=cost_us)
    return bind(Chain((operator,)), {"ts": pa.array(np.arange(ROWS))})


def cpu_s(run: Callable[[], None]) -> float:
    """CPU seconds of a run."""
    start_s = process_time()
    run()
    return process_time() - start_s


if __name__ == "__main__":
    sys.exit(main())
