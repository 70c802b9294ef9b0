"""Latency of the ordered engine at a load, threads beside the model.

    python -m benchmarks.ordered_latency

Measures the costs of the engine and the stalls of this machine. Then, for 1 and 2 workers: the sustainable rate, and
the latency from arrival to output at 0.5, 0.7 and 0.9 of the rate that threads sustain, medians of eleven runs of half
the rows with other arrivals (lowest to highest). The model runs at the same rates and arrivals, without stalls and with
those that the system has between the runs of threads at each load: loops read the clock for 0.2 s after each run. Rare
stalls, which less than half of these spans have, are printed and left out, since a median over runs leaves them out
too. A cache line takes as long between cores as between these runs. Both sides claim tuples one by one, or with
--chunk 0 in chunks that adapt to their cost, which is the default of `adapt replay ordered`.

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
from numpy.typing import NDArray

from adapt.core.ordered.calibrate.calibration import calibrate_engine
from adapt.core.ordered.calibrate.line import line_ns, middle_ns
from adapt.core.ordered.calibrate.machine import Machine
from adapt.core.ordered.calibrate.stalls import SPAN_S, measured_stalls, stalls_of, watched
from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.names import Backend, OperatorKind
from adapt.core.ordered.engine.contention import Stalls
from adapt.core.ordered.engine.costs import EngineProfile
from adapt.core.ordered.replay.arrivals import Arrivals
from adapt.core.ordered.replay.outcome import Latency
from adapt.core.ordered.replay.replay import Ordered, replay_ordered
from adapt.core.ordered.replay.sustainable import LatencyTarget

MOST, LOADS, RUNS, TARGET_S = 0.15, (0.5, 0.7, 0.9), 11, 0.01


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

    def at_line(self, beside_ns: float | None) -> "Side":
        """The model where a cache line takes this long to another core."""
        return replace(self, profile=None if self.profile is None else self.profile.at_line(beside_ns))

    def sustainable(self, workers: int) -> float:
        """Highest rate that workers sustain."""
        how = self.ordered(workers, Arrivals(sustained=LOADS[0]), 0)
        paced = replay_ordered(self.chain, how, clock=perf_counter, cpu_clock=process_time).outcomes[0].paced
        assert paced is not None
        assert paced.sustained is not None
        return paced.sustained.low

    def latency(self, workers: int, rate: float, seed: int) -> Latency:
        """Latency from end to end of a run of half the rows."""
        how, half = self.ordered(workers, Arrivals(rate=rate), seed), self.chain.part(0, self.chain.rows // 2)
        latency = replay_ordered(half, how, clock=perf_counter, cpu_clock=process_time).outcomes[0].end_to_end
        assert latency is not None
        return latency


def of_threads(threads: Side, workers: int, rate: float) -> tuple[list[Latency], Stalls, float | None]:
    """Latencies of threads, and between the runs the stalls of the system and the time of a cache line."""
    found, spans, lines = list[Latency](), list[NDArray[np.int64]](), list[float | None]()
    for seed in range(RUNS):
        found.append(threads.latency(workers, rate, seed))
        spans.append(watched(workers, SPAN_S))
        lines.append(line_ns())
    return found, stalls_of(workers, spans, SPAN_S, np.zeros(1, np.int64)), middle_ns(lines)


def main() -> int:
    """Measure and print; 0 if the claim is met."""
    parser = ArgumentParser("benchmarks.ordered_latency", description="Latency at a load, threads beside the model.")
    parser.add_argument("--rows", type=int, default=20_000, help="rows of a run of the search (default: 20,000)")
    parser.add_argument("--chunk", type=int, default=1, help="tuples of a chunk, 0 for auto (default: 1)")
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
        beside = middle_ns(line_ns() for _ in range(RUNS))
        rates = {side.name: side.at_line(beside).sustainable(workers) for side in sides}
        print(f"{workers} workers sustain, rows/s: " + ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items()))
        compare(f"{workers} workers, sustainable rate", rates)
        for load in LOADS:
            rate = load * rates[threads.name]
            ran, now, beside = of_threads(threads, workers, rate)
            calibrated = profile.costs_at(workers=workers).stalls
            assert calibrated is not None
            now = replace(now, late_us=calibrated.late_us)
            found = {threads.name: ran}
            for side, stalls in zip(sides[1:], ((), (now,)), strict=True):
                model = replace(side, profile=replace(profile, stalls=stalls)).at_line(beside)
                found[side.name] = [model.latency(workers, rate, seed) for seed in range(RUNS)]
            for percentile in ("p50", "p99"):
                us = {name: [1e6 * getattr(one, percentile) for one in each] for name, each in found.items()}
                print(f"  load {load:g}, {percentile}, us: " + ", ".join(f"{name} {spread(us[name])}" for name in us))
                compare(f"{workers} workers at {load:g}, {percentile}", {name: median(us[name]) for name in us})
            rare = (
                f"; {len(now.rare_us)} of {RUNS} spans had one of up to {now.rare_us[-1]:,.0f}" if now.rare_us else ""
            )
            longest = max(now.us, default=0.0)
            print(f"    the system took {now.lost:.1%} of a thread's time, at most {longest:,.0f} us at once{rare}")
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
