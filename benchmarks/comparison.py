"""A comparison of a thousand scenarios: mechanisms at several loads, each with several seeds.

Claim: on two cores, 1,000 scenarios (20 mechanisms, 5 loads, 10 seeds) on ten million rows within ten minutes; measured
on a tenth of the rows unless ROWS is given, and scaled to 1,000 scenarios and ten million rows. Most scenarios are
dropped from races before they have all seeds. Beside it, one scenario alone; and CPU seconds over cores, the least time
on a machine that other programs share, with races and, by the CPU seconds of all mechanisms once, without.

Usage: python benchmarks/comparison.py [ROWS]
"""

import os
import resource
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa
from references import from_tests

from adapt.core.mechanisms.cost_model import Wanted
from adapt.core.mechanisms.scenarios import SCENARIOS, Scenario, Static, chosen
from adapt.core.mechanisms.sweep import Sweep
from adapt.core.stage.conditions.service_times import UNKNOWN
from adapt.core.stage.conditions.settings import Costs
from adapt.core.stage.input.speed import Speed
from adapt.traces.replay.compare import Comparison
from adapt.traces.replay.replay import replay
from adapt.traces.store.trace import ROW_GROUP_ROWS, Trace

ROWS, KEYS, EXPONENT = 1_000_000, 100_000, 1.1
LOADS, SEEDS = (0.5, 0.8, 1.0, 1.2, 1.5), 10
FULL_ROWS, FULL_SCENARIOS, MOST_S, CORES = 10_000_000, 1_000, 600.0, 2
WANTED = Wanted(8, costs=Costs(1e-3, 0.0, spread=UNKNOWN))

write_trace = from_tests("traces/small_traces.py").write_trace


def main() -> int:
    """Measure a sweep and single scenarios; 0 if the claim is met."""
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else ROWS
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])
    twentieth = Scenario("consistent-shed", Static.CONSISTENT, sheds=True)
    scenarios = chosen([*(each.name for each in SCENARIOS), twentieth.name], [twentieth])
    with tempfile.TemporaryDirectory() as folder:
        trace = trace_of(Path(folder) / "x.trace", rows)
        once(trace, scenarios[:1])  # compiles
        alone_s = once(trace, scenarios[:1])
        before = cpu_s()
        first_s = once(trace, scenarios)
        first_cpu_s = cpu_s() - before
        start, before = perf_counter(), cpu_s()
        sweep = Sweep(tuple(Speed(offered=load) for load in LOADS), (8,), (WANTED.hash,), SEEDS)
        wanted = replace(WANTED, speed=Speed(offered=max(LOADS)))
        run = replay(trace, Comparison(wanted, scenarios, (), sweep))
        swept_s, swept_cpu_s = perf_counter() - start, cpu_s() - before
    asked = len(scenarios) * len(LOADS) * SEEDS
    runs = sum(int(row["runs"]) for row in run.tables()["points"].records())
    scale = FULL_ROWS / rows * FULL_SCENARIOS / asked
    scaled_s = swept_s * scale
    met = scaled_s <= MOST_S
    print(f"{rows:,} rows; one scenario alone {alone_s:.2f} s; {len(scenarios)} scenarios once {first_s:.1f} s")
    print(f"{asked:,} scenarios in {swept_s:.1f} s on {CORES} cores, {swept_cpu_s:.1f} CPU s: {runs:,} needed")
    print(
        f"scaled to {FULL_SCENARIOS:,} scenarios on {FULL_ROWS:,} rows: {scaled_s:.0f} s, claimed at most {MOST_S:.0f}:"
        f" {'met' if met else 'NOT MET'}"
    )
    raced_s, all_s = swept_cpu_s * scale / CORES, first_cpu_s * asked / len(scenarios) * scale / CORES
    print(f"CPU seconds over cores, scaled likewise: {raced_s:.0f} s, and {all_s:.0f} s without races")
    return 0 if met else 1


def cpu_s() -> float:
    """CPU seconds of this process and of those that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def once(trace: Trace, scenarios: tuple[Scenario, ...]) -> float:
    """Seconds of a comparison without a sweep."""
    start = perf_counter()
    replay(trace, Comparison(WANTED, scenarios, jobs=1 if len(scenarios) == 1 else None))
    return perf_counter() - start


def trace_of(folder: Path, rows: int) -> Trace:
    """Zipf keys, and times with exponential gaps."""
    chance = np.random.default_rng(1)
    shares = 1 / np.arange(1, KEYS + 1) ** EXPONENT
    keys = np.searchsorted(np.cumsum(shares / shares.sum()), chance.random(rows)).astype(str)
    times = np.cumsum(chance.exponential(1e3, rows)).astype(np.int64)
    table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC")), "key": pa.array(keys)})
    return write_trace(folder, table, parts=1, row_group=ROW_GROUP_ROWS)


if __name__ == "__main__":
    sys.exit(main())
