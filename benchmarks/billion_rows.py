"""A billion rows generated, counted and compared on a standalone Spark of two workers.

Claim: no process needs more memory for 10^9 rows than 1.2 times what it needs for 10^8, or 100 MiB more; but executors,
whose Java uses the heap that it is given before it collects, stay within their 1 GiB. Memory is the peak (VmHWM) of
every process that takes part, by its role. ADAPT_BENCH_ROWS sets the rows (a billion)."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter

from memory import command_of, descendants, watched
from references import from_tests

ROWS = int(os.environ.get("ADAPT_BENCH_ROWS", 1_000_000_000))
KEYS = 1_000_000
ROLES = {
    "deploy.master": "master",
    "deploy.worker": "worker",
    "CoarseGrained": "executor",
    "SparkSubmit": "driver's Java",
    "pyspark.daemon": "Python worker",
    "adapt": "adapt",
}
MOST_TIMES, MOST_MORE = 1.2, 100
HEAP = {"executor": 1024}
"""Heap in MiB of Java processes that a task may fill."""


def main() -> int:
    """Do both sizes, and compare their peaks; 0 if the claim is met."""
    standalone = from_tests("journeys/processes.py").standalone
    with tempfile.TemporaryDirectory() as place, standalone(Path(place)) as master:
        small, large = (peaks_of(Path(place), rows, master) for rows in (ROWS // 10, ROWS))
    grown = {
        role: (small.get(role, 0.0), peak)
        for role, peak in large.items()
        if peak > max(MOST_TIMES * small.get(role, 0.0), small.get(role, 0.0) + MOST_MORE, HEAP.get(role, 0))
    }
    print(f"memory of every process flat from {ROWS // 10:,} to {ROWS:,} rows: {'NOT MET' if grown else 'met'} {grown}")
    return 1 if grown else 0


def peaks_of(folder: Path, rows: int, master: str) -> dict[str, float]:
    """Peak memory in MiB by role, of three commands on a trace of that many rows."""
    trace = folder / f"{rows}.trace"
    steps = (
        f"generate zipf --rows {rows} --keys {KEYS} --key-type int64 --force -o {trace}",
        f"partition count {trace} --epsilon 0.0001",
        f"partition compare {trace} --channels 8",
    )
    found: dict[str, float] = {}
    for step in steps:
        started = perf_counter()
        with watched(by_role) as peaks:
            line = [sys.executable, "-c", "from adapt.cli.main import main; main()", "-q", *step.split()]
            subprocess.run([*line, "--master", master], check=True, stdout=subprocess.DEVNULL)
        told = ", ".join(f"{role} {peak:,.0f}" for role, peak in sorted(peaks.items()))
        print(f"{rows:,} rows, {' '.join(step.split()[:2])}: {perf_counter() - started:.0f} s; peaks in MiB: {told}")
        sys.stdout.flush()
        for role, peak in peaks.items():
            found[role] = max(found.get(role, 0.0), peak)
    return found


def by_role() -> Iterator[tuple[str, int]]:
    """All processes under this one that have a role."""
    for process in descendants(os.getpid()):
        role = role_of(process)
        if role is not None:
            yield role, process


def role_of(process: int) -> str | None:
    """The role of a process by its command line; None if it has ended or is another."""
    line = command_of(process).lower()
    return next((role for mark, role in ROLES.items() if mark.lower() in line), None)


if __name__ == "__main__":
    sys.exit(main())
