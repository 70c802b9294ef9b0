"""`python -m reality.rekeyed`: the same job three times on each engine, and the page."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType

from adapt.core.errors import AdaptError
from reality.__main__ import ALL_BY, MEASURED_BY, ROOT, RUNS, hash_of
from reality.noise import beside
from reality.rekeyed import flink, spark
from reality.rekeyed.page import write_page
from reality.rekeyed.run import Kept
from reality.rekeyed.values import jobs_of
from reality.rekeyed.workload import Skewed
from reality.scenarios import Engine

ENGINES: dict[Engine, ModuleType] = {Engine.FLINK: flink, Engine.SPARK: spark}
OWN = ("AggregateTrace.java", "flink.py", "spark.py", "run.py", "workload.py")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing and write the page; returns the exit code."""
    options = _parsed(arguments)
    folder = options.out / f"rekeyed-{measured_by()}"
    workload, kept = Skewed(folder / "workload"), Kept(folder / "runs")
    skipped = {}
    try:
        for engine, module in ENGINES.items():
            if module.missing():
                skipped[engine] = module.missing()
                print(f"{engine} is left out: {skipped[engine]}", file=sys.stderr)
            elif not options.only or engine in options.only:
                measure(engine, workload, kept, options.runs)
        jobs = [job for engine in ENGINES for job in jobs_of(engine, workload, kept)]
        print(write_page(options.out, jobs, skipped))
    except AdaptError as error:
        print(f"reality: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def measure(engine: Engine, workload: Skewed, kept: Kept, runs: int) -> None:
    """Run what is missing; the engine starts only if something is."""
    missing = kept.missing(engine, runs)
    if not missing:
        return
    with ENGINES[engine].started(workload, kept.folder.parent / "work" / engine) as running:
        for number, keys in missing:
            noise: dict[str, float] = {}
            with beside(noise):
                run = running.run(keys)
            kept.keep(engine, keys, number, replace(run, noise=noise))
            shown = f"{run.wall_s:.3g} s, rows per worker {run.rows}, {run.messages} merge messages"
            print(f"{engine}, {keys}, run {number + 1} of {runs}: {shown}", file=sys.stderr, flush=True)


def measured_by() -> str:
    """Hash of the files that determine what a run measures; runs of other versions stay aside."""
    shared = (pattern for engine in ENGINES for pattern in MEASURED_BY[engine])
    return hash_of((*shared, *ALL_BY, *(f"rekeyed/{name}" for name in OWN)))


def _parsed(arguments: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser("reality.rekeyed", description="Run the same job by natural, pinned and split keys.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "reality", help="folder of kept runs")
    parser.add_argument(
        "--only", type=Engine, choices=ENGINES, action="append", help="run only this engine; repeatable"
    )
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each job")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error(f"--runs must be at least 1 (got {options.runs})")
    options.out = options.out.absolute()
    return options


if __name__ == "__main__":
    sys.exit(main())
