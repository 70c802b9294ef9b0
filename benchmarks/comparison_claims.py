"""What a comparison claims of its recommendation, checked on seeds that it has not seen.

Key columns of the real traces under ADAPT_DATA and fifteen generated streams, the first rows of each, eight workers at
load 1.2. A comparison names a scenario, the seeds in which it wins or is level with the best, and a lower bound of
that share at 95 % confidence. On fresh seeds all scenarios that drop no rows run, and none is dropped early. Claims:
in at least 90 % of traces the share of fresh seeds reaches the lower bound, and in at least 90 % the mean ratio to
static-uniform lies in the interval, widened by the fresh seeds' own error. With `--keep FILE`, streams of an earlier
run are taken from the file.
"""

import json
import math
import os
import sys
import tempfile
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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
GENERATED_SEEDS = (0, 1, 2)
RIGHT = 0.9
WANTED = Wanted(8, costs=Costs(1e-3, 0.0, spread=UNKNOWN))
LOSSLESS = [each.name for each in chosen([]) if not each.sheds and each.drops is None]
HEADER = "| trace | recommended | claimed | at least | fresh | p99 over static-uniform | fresh | right |"

write_trace = from_tests("traces/small_traces.py").write_trace


def main() -> int:
    """Print a line per trace; 0 if the claims are met."""
    parser = ArgumentParser("comparison_claims")
    parser.add_argument("streams", nargs="*", help="names of streams, or starts of names; none for all")
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--fresh", type=int, default=20, help="fresh seeds")
    parser.add_argument("--generated", action="store_true", help="leave out the real traces")
    parser.add_argument("--jobs", type=int, help="processes; one per core if not given")
    parser.add_argument("--keep", type=Path, help="file of finished streams")
    options = parser.parse_args()
    if not DATA.exists():
        print(f"claims of comparisons: {DATA} is not there; set ADAPT_DATA")
        return 0
    print(f"the first {options.rows:,} rows of each trace, {options.fresh} fresh seeds\n{HEADER}")
    print("|---" * HEADER.count(" | ") + "|---|")
    found, kept = [], _kept(options.keep)
    with (
        tempfile.TemporaryDirectory() as folder,
        runner_of_scenarios(RunnerName.IN_PROCESS, options.jobs, None) as run_all,
    ):
        for at, (name, batch) in enumerate(streams(GENERATED_SEEDS, real=not options.generated)):
            if options.streams and not name.startswith(tuple(options.streams)):
                continue
            if name not in kept:
                trace = write_trace(Path(folder) / f"{at}.trace", pa.Table.from_batches([batch.slice(0, options.rows)]))
                kept[name] = checked(name, trace, options.fresh, run_all, options.jobs)
                if options.keep:
                    with options.keep.open("a") as file:
                        file.write(json.dumps(kept[name]) + "\n")
            found.append(kept[name])
            print(line(kept[name]), flush=True)
    wins, margins = (sum(each[part] for each in found) for part in ("wins_right", "margin_right"))
    print(f"{len(found)} streams: wins right in {wins}, margins in {margins}, claimed at least {RIGHT:.0%}")
    return 0 if min(wins, margins) >= RIGHT * len(found) else 1


def _kept(path: Path | None) -> dict[str, dict[str, Any]]:
    lines = path.read_text().splitlines() if path and path.exists() else []
    return {each["name"]: each for each in map(json.loads, lines)}


def checked(name: str, trace: Trace, fresh: int, run_all: RunAll, jobs: int | None) -> dict[str, Any]:
    """What a comparison claims of a trace, and what fresh seeds show."""
    sweep = Sweep(seeds=10)
    said = compare_on_trace(trace, None, ComparingOptions(WANTED, chosen(LOSSLESS), sweep=sweep, jobs=jobs)).findings[0]
    seen = finding_on_fresh_seeds(trace, said, fresh, run_all)
    claimed, met = said.margin(BASELINE, "p99"), seen.margin(BASELINE, "p99")
    low, high = (each or 0.0 for each in (claimed.low, claimed.high))
    error = 0.0 if met.low is None else math.log(met.ratio / met.low)
    return {
        "name": name,
        "scenario": said.scenario,
        "claimed": [said.wins, said.level, said.seeds],
        "least": said.least,
        "fresh": [seen.wins, seen.level, seen.seeds],
        "margin": [claimed.ratio, low, high],
        "met": met.ratio,
        "wins_right": (seen.wins + seen.level) / seen.seeds >= said.least,
        "margin_right": low * math.exp(-error) <= met.ratio <= high * math.exp(error),
        "picks": {"claimed": said.race.picks(), "fresh": seen.race.picks()},
    }


def line(found: dict[str, Any]) -> str:
    """A row of the table."""
    right = ", ".join("yes" if found[part] else "NO" for part in ("wins_right", "margin_right"))
    ratio, low, high = found["margin"]
    return (
        f"| {found['name']} | {found['scenario']} | {_counts(found['claimed'])} | {found['least']:.0%} |"
        f" {_counts(found['fresh'])} | {ratio:.3f} ({low:.3f} to {high:.3f}) | {found['met']:.3f} | {right} |"
    )


def _counts(counts: Sequence[int]) -> str:
    wins, level, seeds = counts
    return f"{wins} + {level} of {seeds}"


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
