"""Latency of the ordered engine at a load, threads beside the model.

    python -m benchmarks.ordered_latency

Measures the costs of the engine and the stalls of this machine. Then, for 1 and 2 workers: the sustainable rate, and
the latency from arrival to output at 0.5, 0.7 and 0.9 of the rate that threads sustain, medians of five runs with other
arrivals (lowest to highest). The model runs at the same rates and arrivals, without stalls and with them. Before each
load a loop reads the clock, to show how the system stalls threads then. Both sides claim tuples one by one, as the
model does unless it is given a chunk: with --chunk 0, a tuple of threads waits for the others of its chunk.

Claim: sustainable rates, medians and 99th percentiles of the model with stalls are within 15 % of those of threads.
On Linux, `chrt -r 1` (as root) before the command keeps other programs off the cores.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from time import perf_counter, process_time

import numpy as np
import pyarrow as pa

from adapt.core.ordered.calibrate.calibration import calibrate_engine
from adapt.core.ordered.calibrate.machine import Machine
from adapt.core.ordered.calibrate.stalls import measured_stalls
from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.names import Backend, OperatorKind
from adapt.core.ordered.engine.costs import EngineProfile
from adapt.core.ordered.replay.arrivals import Arrivals
from adapt.core.ordered.replay.outcome import Latency
from adapt.core.ordered.replay.replay import Ordered, replay_ordered
from adapt.core.ordered.replay.sustainable import LatencyTarget

MOST, LOADS, RUNS, TARGET_S = 0.15, (0.5, 0.7, 0.9), 5, 0.01


@dataclass(frozen=True, slots=True)
class Side:
    """Threads, or the model with the costs of a profile."""

    name: str
    chain: BoundChain
    chunk: int
    profile: EngineProfile | None = None

    def ordered(self, workers: int, arrivals: Arrivals, seed: int) -> Ordered:
        """Options of a run."""
        backend = Backend.THREADS if self.profile is None else Backend.SIM
        timed = replace(Ordered((workers,)).settings, mark_every=2, chunk=self.chunk)
        how = Ordered((workers,), backend, timed, seed=seed, check=0, arrivals=(arrivals,), engine=self.profile)
        return replace(how, target=LatencyTarget(TARGET_S))

    def sustainable(self, workers: int) -> float:
        """Highest rate that workers sustain."""
        how = self.ordered(workers, Arrivals(sustained=LOADS[0]), 0)
        paced = replay_ordered(self.chain, how, clock=perf_counter, cpu_clock=process_time).outcomes[0].paced
        assert paced is not None
        assert paced.sustained is not None
        return paced.sustained.low

    def latencies(self, workers: int, rate: float) -> list[Latency]:
        """Latency from end to end of each run."""
        found: list[Latency] = []
        for seed in range(RUNS):
            how = self.ordered(workers, Arrivals(rate=rate), seed)
            run = replay_ordered(self.chain, how, clock=perf_counter, cpu_clock=process_time)
            latency = run.outcomes[0].end_to_end
            assert latency is not None
            found.append(latency)
        return found


def main() -> int:
    """Measure and print; 0 if the claim is met."""
    parser = ArgumentParser("benchmarks.ordered_latency", description="Latency at a load, threads beside the model.")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of a run (default: 20,000)")
    parser.add_argument("--chunk", type=int, default=1, help="tuples of a chunk, 0 for auto in threads (default: 1)")
    options = parser.parse_args()
    calibration = calibrate_engine(Machine(300_000, process_time), 300_000, 2, 3, stalls=measured_stalls)
    profile, chain = calibration.profile, chain_of(options.rows)
    print("\n".join(calibration.notes))
    run = chain, options.chunk
    threads, stalled = Side("threads", *run), Side("model with stalls", *run, profile)
    sides = threads, Side("model", *run, replace(profile, stalls=())), stalled
    misses: list[str] = []

    def compare(what: str, values: dict[str, float]) -> None:
        error = values[stalled.name] / values[threads.name] - 1
        if abs(error) > MOST:
            misses.append(f"{what}: {error:+.0%}")

    for workers in (1, 2):
        rates = {side.name: side.sustainable(workers) for side in sides}
        print(f"{workers} workers sustain, rows/s: " + ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items()))
        compare(f"{workers} workers, sustainable rate", rates)
        for load in LOADS:
            now = measured_stalls(workers, 0.3)
            found = {side.name: side.latencies(workers, load * rates[threads.name]) for side in sides}
            for percentile in ("p50", "p99"):
                us = {name: [1e6 * getattr(one, percentile) for one in each] for name, each in found.items()}
                print(f"  load {load:g}, {percentile}, us: " + ", ".join(f"{name} {spread(us[name])}" for name in us))
                compare(f"{workers} workers at {load:g}, {percentile}", {name: median(us[name]) for name in us})
            longest = max(now.us, default=0.0)
            print(f"    the system took {now.lost:.1%} of a thread's time before, at most {longest:,.0f} us at once")
    print("met" if not misses else "NOT MET: " + "; ".join(misses))
    return 1 if misses else 0


def spread(values: Sequence[float]) -> str:
    """The median, the lowest and the highest."""
    return f"{median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})"


def chain_of(rows: int) -> BoundChain:
    """A stateless operator of 5 us and a partitioned one of 15."""
    operators = (
        Operator("parse", OperatorKind.STATELESS, cost=5.0),
        Operator("by key", OperatorKind.PARTITIONED, key="key", partitions=64, cost=15.0),
    )
    keys = np.random.default_rng(0).integers(0, 1000, rows)
    return bind(Chain(operators), {"key": pa.array(keys), "ts": pa.array(np.arange(rows))})


if __name__ == "__main__":
    sys.exit(main())
