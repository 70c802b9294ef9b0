"""A billion rows generated, ingested from Parquet, counted and compared, on a standalone Spark of two workers.

Claim: no process needs more memory for 10^9 rows than 1.2 times what it needs for 10^8, or 100 MiB more; but executors,
whose Java uses the heap that it is given before it collects, stay within their 1 GiB. No step of the largest size takes
more than 1.15 times the CPU seconds a row that a local Spark takes for the smallest, where both give the same content.
Memory is the peak (VmHWM) of every process that takes part, by its role; `adapt` is the driver, printed with what
`adapt -v` says that it holds.

    python benchmarks/billion_rows.py [FOLDER [ROWS...]]

Steps that FOLDER/steps.json has are not done again, so that an interrupted run goes on. Give the sizes in rising order
(default: 10^8, 10^9); the largest needs about 60 bytes of disk a row. Traces are removed once they are not needed."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Container, Iterator
from contextlib import ExitStack
from pathlib import Path
from time import perf_counter
from typing import Any

from memory import command_of, cpu_s, descendants, watched
from references import from_tests

from adapt.traces.store.manifest import read_manifest

SIZES = (100_000_000, 1_000_000_000)
KEYS = 1_000_000
STEPS = {
    "ingest": "ingest {source} --source-format parquet --key key --time ts --force -o {trace}",
    "count": "partition count {trace} --epsilon 0.0001 --force -o {trace}.freq",
    "compare": "partition compare {trace} --channels 8",
}
ROLES = {
    "deploy.master": "master",
    "deploy.worker": "worker",
    "CoarseGrained": "executor",
    "SparkSubmit": "driver's Java",
    "pyspark.daemon": "Python worker",
    "adapt": "adapt",
}
SERVERS = ("master", "worker")
"""Roles of processes that outlive a step."""

MOST_TIMES, MOST_MORE, MOST_CPU = 1.2, 100, 1.15
HEAP = {"executor": 1024}
"""Heap in MiB of Java processes that a task may fill."""


def main() -> int:
    """Do all sizes, and compare them; 0 if the claim is met."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp())
    sizes = [int(rows) for rows in sys.argv[2:]] or list(SIZES)
    for mode in ("local", "cluster"):  # apart, as counts kept beside a trace serve all that have its content
        (folder / mode).mkdir(parents=True, exist_ok=True)
    kept = folder / "steps.json"
    steps: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    with ExitStack() as cluster:
        master = ""
        for rows in sizes:
            source = folder / f"{rows}.trace"
            for name, place, line in lines_of(folder, rows, local=rows == sizes[0]):
                if name in steps:
                    continue
                if place != "local[2]" and not master:
                    master = cluster.enter_context(from_tests("journeys/processes.py").standalone(folder))
                steps[name] = run(line, place or master)
                out = folder / name.split()[-1] / f"{rows}.trace"
                if "ingest" in name:
                    steps[name]["content"] = read_manifest(out).content_hash
                if "compare" in name:
                    shutil.rmtree(out)
                kept.write_text(json.dumps(steps, indent=1))
                told = ", ".join(f"{role} {peak:,.0f}" for role, peak in sorted(steps[name]["peaks_mib"].items()))
                print(f"{name}: {steps[name]['cpu_s'] / rows * 1e6:.2f} CPU s a million rows; MiB: {told}", flush=True)
            shutil.rmtree(source, ignore_errors=True)
    return 1 if [*grown(steps, sizes), *dearer(steps, sizes)] else 0


def lines_of(folder: Path, rows: int, *, local: bool) -> Iterator[tuple[str, str, str]]:
    """Name, master (empty: the cluster) and command of each step on that many rows, on a local Spark too if asked."""
    source = folder / f"{rows}.trace"
    size = f"--rows {rows} --keys {KEYS} --key-type int64"
    yield f"{rows} generate cluster", "", f"generate zipf {size} --force -o {source}"
    for mode, master in (("local", "local[2]"), ("cluster", ""))[0 if local else 1 :]:
        for step, words in STEPS.items():
            line = words.format(source=source, trace=folder / mode / f"{rows}.trace")
            yield f"{rows} {step} {mode}", master, line


def run(words: str, master: str) -> dict[str, Any]:
    """Time and peak memory in MiB by role of a command."""
    started, spent = perf_counter(), dict[int, float]()
    line = [sys.executable, "-c", "from adapt.cli.main import main; main()", "-v", *words.split(), "--master", master]
    ending = set(descendants(os.getpid()))  # executors of the step before may be among them
    with watched(lambda: by_role(spent, ending)) as peaks:
        done = subprocess.run(line, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    holds = [each for each in done.stderr.splitlines() if "holds" in each]
    return {
        "peaks_mib": peaks,
        "cpu_s": sum(spent.values()),
        "seconds": perf_counter() - started,
        "holds": holds,
    }


def by_role(spent: dict[int, float], ending: Container[int]) -> Iterator[tuple[str, int]]:
    """All processes under this one that have a role; `spent` gets their CPU seconds."""
    for process in descendants(os.getpid()):
        role = role_of(process)
        if role is None or (process in ending and role not in SERVERS):
            continue
        if role not in SERVERS:
            spent[process] = max(spent.get(process, 0.0), cpu_s(process))
        yield role, process


def role_of(process: int) -> str | None:
    """The role of a process by its command line; None if it has ended or is another."""
    line = command_of(process).lower()
    return next((role for mark, role in ROLES.items() if mark.lower() in line), None)


def grown(steps: dict[str, Any], sizes: list[int]) -> list[str]:
    """Processes that need more memory for the largest size than for that before it."""
    found = []
    for step in ("generate", *STEPS) if len(sizes) > 1 else ():
        small, large = (steps[f"{rows} {step} cluster"]["peaks_mib"] for rows in sizes[-2:])
        for role, peak in large.items():
            before = small.get(role, 0.0)
            if peak > max(MOST_TIMES * before, before + MOST_MORE, HEAP.get(role, 0)):
                found.append(f"{step}, {role}: {before:,.0f} to {peak:,.0f} MiB")
    print(f"memory of every process flat to {sizes[-1]:,} rows: {'NOT MET' if found else 'met'} {found}")
    for rows in sizes:
        for step in STEPS:
            one = steps[f"{rows} {step} cluster"]
            print(f"{rows:,} rows, {step}: driver {one['peaks_mib']['adapt']:,.0f} MiB; said: {one['holds']}")
    return found


def dearer(steps: dict[str, Any], sizes: list[int]) -> list[str]:
    """Steps that take more CPU time a row on the cluster than locally, or give another content."""
    found = []
    for step in STEPS:
        local = steps[f"{sizes[0]} {step} local"]
        if local.get("content") != steps[f"{sizes[0]} {step} cluster"].get("content"):
            found.append(f"{step}: content")
        for rows in sizes:
            times = steps[f"{rows} {step} cluster"]["cpu_s"] / rows / (local["cpu_s"] / sizes[0])
            print(f"{rows:,} rows, {step}: {times:.2f} times the CPU seconds a row of a local Spark")
            if rows == sizes[-1] and times > MOST_CPU:  # executors start once, whatever the size
                found.append(f"{rows:,} rows, {step}: {times:.2f}")
    print(f"CPU seconds within {MOST_CPU} times, same content: {'NOT MET' if found else 'met'} {found}")
    return found


if __name__ == "__main__":
    sys.exit(main())
