"""What a comparison claims of its recommendation, checked on seeds that it has not seen.

Key columns of the real traces under ADAPT_DATA and twelve generated traces, the first rows of each, eight workers at
load 1.2. A comparison names a scenario, the seeds in which it wins or is level with the best, and a lower bound of
that share at 95 % confidence. On fresh seeds all scenarios that drop no rows run, and none is dropped early. Claims:
in at least 90 % of traces the share of fresh seeds reaches the lower bound, and in at least 90 % the mean ratio to
static-uniform lies in the interval, widened by the fresh seeds' own error.

Usage: python benchmarks/comparison_claims.py [ROWS] [FRESH SEEDS] [TRACES TO LEAVE OUT AT THE START]
"""

import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
from loop import streams
from references import from_tests

from adapt.core.mechanisms.cost_model import Wanted
from adapt.core.mechanisms.recommendation import Advice
from adapt.core.mechanisms.scenarios import BASELINE, chosen
from adapt.core.mechanisms.sweep.finding import Finding
from adapt.core.mechanisms.sweep.grid import Sweep
from adapt.core.stage.conditions.service_times import UNKNOWN
from adapt.core.stage.conditions.settings import Costs
from adapt.core.stage.input.offered_load import Demand
from adapt.traces.replay.compare import ComparingOptions, compare_on_trace, reading_of
from adapt.traces.replay.comparing.parallel import RunAll, runner_of_scenarios
from adapt.traces.replay.comparing.sweeping import Swept, run_case
from adapt.traces.replay.flux import rows_of
from adapt.traces.spark.names import RunnerName
from adapt.traces.store.trace import Trace

DATA = Path(os.environ.get("ADAPT_DATA", "../shared/data"))
ROWS, FRESH, SKIPPED, GENERATED_SEEDS, GENERATED = 20_000, 20, 0, (0, 1, 2), 12
RIGHT = 0.9
WANTED = Wanted(8, costs=Costs(1e-3, 0.0, spread=UNKNOWN))
LOSSLESS = [each.name for each in chosen([]) if not each.sheds and each.drops is None]

write_trace = from_tests("traces/small_traces.py").write_trace


def main() -> int:
    """Print a line per trace; 0 if the claims are met."""
    if not DATA.exists():
        print(f"claims of comparisons: {DATA} is not there; set ADAPT_DATA")
        return 0
    usual = (ROWS, FRESH, SKIPPED)
    rows, fresh, skipped = (int(each) for each in (*sys.argv[1:], *usual[len(sys.argv) - 1 :]))
    print(f"the first {rows:,} rows of each trace, {fresh} fresh seeds")
    print("| trace | recommended | claimed | at least | fresh | p99 over static-uniform | fresh | right |")
    print("|---|---|---|---|---|---|---|---|")
    right = []
    with (
        tempfile.TemporaryDirectory() as folder,
        runner_of_scenarios(RunnerName.IN_PROCESS, None, None) as run_all,
    ):
        for at, (name, batch) in enumerate(islice(traces(), skipped, None)):
            trace = write_trace(Path(folder) / f"{at}.trace", pa.Table.from_batches([batch.slice(0, rows)]))
            held = checked(name, trace, fresh, run_all)
            right.append(held)
    wins, margins = (sum(each) / len(right) for each in zip(*right, strict=True))
    print(f"{len(right)} traces: wins right in {wins:.0%}, margins in {margins:.0%}, claimed at least {RIGHT:.0%}")
    return 0 if min(wins, margins) >= RIGHT else 1


def traces() -> Iterator[tuple[str, pa.RecordBatch]]:
    """Every real key column, and generated streams."""
    yield from streams((), real=True)
    yield from islice(streams(GENERATED_SEEDS, real=False), GENERATED)


def checked(name: str, trace: Trace, fresh: int, run_all: RunAll) -> tuple[bool, bool]:
    """Whether the claims on wins and on the margin hold for a trace."""
    options = ComparingOptions(WANTED, chosen(LOSSLESS), sweep=Sweep((WANTED.speed,), (8,), (WANTED.hash,), 10))
    said = compare_on_trace(trace, None, options).findings[0]
    seen = finding_on_fresh_seeds(trace, said, fresh, run_all)
    least = said.least
    right = (seen.wins + seen.level) / seen.seeds >= least
    claimed, met = said.margin(BASELINE, "p99"), seen.margin(BASELINE, "p99")
    low, high = (each or 0.0 for each in (claimed.low, claimed.high))
    error = 0.0 if met.low is None else math.log(met.ratio / met.low)
    covered = low * math.exp(-error) <= met.ratio <= high * math.exp(error)
    print(
        f"| {name} | {said.scenario} | {said.wins} + {said.level} of {said.seeds} | {least:.0%} |"
        f" {seen.wins} + {seen.level} of {seen.seeds} | {claimed.ratio:.3f} ({low:.3f} to {high:.3f}) |"
        f" {met.ratio:.3f} | {'yes' if right else 'NO'}, {'yes' if covered else 'NO'} |",
        flush=True,
    )
    return right, covered


def finding_on_fresh_seeds(trace: Trace, said: Finding, fresh: int, run_all: RunAll) -> Finding:
    """The recommended scenario among all that drop no rows, on seeds that the comparison has not had."""
    demand = Demand.from_chunks(rows_of(trace, reading_of(WANTED)).chunks(), WANTED.uniform)
    start = Swept(trace, chosen(LOSSLESS), WANTED, demand, WANTED.terms(demand), said.frame, "")
    race = start.race_at(start.base, fresh)
    cases = [start.case(start.base, name, 1000 + at) for name in race.entrants for at in range(fresh)]
    outcomes = dict(json.loads(text) for text in run_all(run_case, cases))
    for case in cases:
        race.add(case.scenario.name, outcomes[case.key])
    return Finding(said.point, said.frame, race, Advice(said.scenario, ""))


if __name__ == "__main__":
    sys.exit(main())
