"""`python -m reality`: run scenarios on real engines, and write the page of predicted against measured."""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

from adapt.core.errors import AdaptError
from reality.page import write_page
from reality.runs import Kept, measure, of_engine
from reality.scenarios import Engine, scenarios
from reality.values import values_of
from reality.workload import Workload

ROOT = Path(__file__).parent.parent
RUNS = 5
MEASURED_BY = {
    Engine.STAGE: (*("engines/stage.py", "predictions.py", "processes/*.py"),),
    Engine.FLINK: ("engines/flink*.py", "java/*.java"),
    Engine.SPARK: ("engines/spark*.py",),
    Engine.STREAMING: ("engines/spark*.py",),
}
ALL_BY = ("engines/running.py", "workload.py", "scenarios.py", "rows.py", "runs.py", "service.py")
"""Files that determine what a run measures: those of its engine, and of all."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is missing and write the page; returns the exit code."""
    options = _parsed(arguments)
    workload = Workload(options.out / f"workload-{hash_of(('workload.py',))}")
    kept = {engine: Kept(options.out / hash_of((*MEASURED_BY[engine], *ALL_BY)) / "runs") for engine in Engine}
    skipped, values = {}, []
    try:
        for engine in Engine:
            missing = of_engine(engine).missing()
            if missing:
                skipped[engine] = missing
                _tell(f"{engine} is left out: {missing}")
            elif not options.only or engine in options.only:
                wanted = scenarios(engine, quick=options.quick)
                measure(of_engine(engine), wanted, options.runs, workload, kept[engine], _tell)
        for engine in Engine:
            values += values_of(engine, workload, kept[engine], quick=options.quick)
        print(write_page(options.out, values, kept, skipped))
    except AdaptError as error:
        print(f"reality: {error}", file=sys.stderr)
        return error.exit_code
    return 0


def hash_of(patterns: Sequence[str]) -> str:
    """Hash of files; runs by other versions of them stay aside."""
    digest = sha256()
    for pattern in patterns:
        for path in sorted(Path(__file__).parent.glob(pattern)):
            digest.update(f"{path.name}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def _parsed(arguments: Sequence[str] | None) -> Namespace:
    parser = ArgumentParser("reality", description="Hold the simulator's predictions against real engines.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "reality", help="folder of kept runs")
    parser.add_argument("--only", type=Engine, choices=Engine, action="append", help="run only this engine; repeatable")
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each scenario")
    parser.add_argument("--quick", action="store_true", help="a rehearsal: fewer loads and rescales")
    options = parser.parse_args(arguments)
    if options.runs < 1:
        parser.error(f"--runs must be at least 1 (got {options.runs})")
    options.out = options.out.absolute()
    return options


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
