"""Ordered engine on a machine with many cores; opt-in.

    python -m benchmarks.ordered_cores --out build/ordered-16-cores.json

It needs such a machine to itself for minutes. Real threads run the cases of Figures 8, 9, 11, 12 and 14 with 1 worker
up to one per core, and report throughput, cores used, latency, and whether the output equals that of one worker. Each
case is compared with the model without contention; the difference is the contention. The results are written as JSON
with a description of the machine. There is no claim: it shows what two cores cannot."""

import json
import os
import platform
import sys
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.names import Heuristic, Reorder, WorkQueue
from adapt.core.ordered.engine.reference import Egress, WorkersRun
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.functions.work import measured_pace
from adapt.core.ordered.model.model import run_model

FORMAT = "adapt.ordered-cores/1"
HOW = "python -m benchmarks.ordered_cores --out FILE"
_LONG_QUEUE = 1 << 16
_MARKS = 2000


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """A case: a chain and its settings.

    Attributes:
        figure: Figure of the paper.
        what: Description of the chain.
        chain: The chain with its input.
        settings: Settings, except the number of workers.
    """

    figure: str
    what: str
    chain: BoundChain
    settings: RunSettings


def main() -> int:
    """Run every case, or print how to run it."""
    if len(sys.argv) == 1:
        print(f"the ordered engine on many cores: skipped, it needs a machine to itself; run {HOW}")
        return 0
    options = _parsed()
    pace = measured_pace()
    runs = [
        run
        for case in cases(options.workers[-1], options.tuples)
        for run in measured(case, options.workers, options.repeats, pace)
    ]
    archive = {"format": FORMAT, "machine": machine(pace), "workers": options.workers, "runs": runs}
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(archive, indent=1))
    print(f"wrote {len(runs)} runs to {options.out}")
    return 0 if all(run["ordered"] for run in runs) else 1


def cases(most: int, tuples: int) -> Iterator[Case]:
    """Cases of the figures that real threads can run.

    `most` is the number of partitions of the partitioned work queue.
    """
    from paper.ordered.pipelines import QUERIES, one_partitioned, one_stateless, query

    for name in QUERIES:
        chain = query(name, tuples, 0, threads=True)
        for heuristic in (Heuristic.CT, Heuristic.LP, Heuristic.ET, Heuristic.QST):
            yield Case("8", name, chain, RunSettings(heuristic=heuristic, queue_capacity=_LONG_QUEUE))
        yield Case("14", name, chain, RunSettings(reorder=Reorder.LOCK, queue_capacity=_LONG_QUEUE))
        owned = query(name, tuples, 0, partitions=most, threads=True)
        yield Case("11", name, owned, RunSettings(work_queue=WorkQueue.PARTITIONED, queue_capacity=_LONG_QUEUE))
    for sigma in (0.1, 0.3, 1.0, 3.0):
        for work_queue, partitions in ((WorkQueue.HYBRID, 100), (WorkQueue.PARTITIONED, most)):
            chain = one_partitioned(tuples, 0, 10.0, partitions, sigma)
            yield Case("9", f"sigma {sigma:g}", chain, RunSettings(work_queue=work_queue))
    for cost_us in (0.1, 1.0, 10.0):
        chain = one_stateless(tuples, 0, cost_us)
        for reorder in (Reorder.CLAIM, Reorder.LOCK):
            yield Case("12", f"{cost_us:g} us", chain, RunSettings(reorder=reorder))


def measured(case: Case, workers: Sequence[int], repeats: int, pace: int) -> Iterator[dict[str, Any]]:
    """The best run of a case by number of workers.

    All must have the output of the first.
    """
    expected: Egress | None = None
    for count in workers:
        settings = replace(case.settings, workers=count, mark_every=max(len(case.chain.tuples) // _MARKS, 1))
        runs = [_timed(case.chain, settings, pace) for _ in range(repeats)]
        expected = expected or runs[0][0].egress
        is_ordered = all(run.egress == expected for run, _ in runs)
        best, cores = min(runs, key=lambda timed: timed[0].elapsed_s)
        modeled = run_model(case.chain, settings, Contention(), np.random.default_rng(0)).run
        latency_ms = 1e3 * best.marks.processing_s()
        told = {
            "figure": case.figure,
            "case": case.what,
            "workers": count,
            "heuristic": settings.heuristic,
            "work_queue": settings.work_queue,
            "reorder": settings.reorder,
            "tuples_per_s": len(case.chain.tuples) / best.elapsed_s,
            "model_tuples_per_s": len(case.chain.tuples) / modeled.elapsed_s,
            "cores": cores,
            "latency_ms": {
                "mean": float(latency_ms.mean()),
                **{f"p{share}": float(np.percentile(latency_ms, share)) for share in (50, 95, 99)},
            },
            "busy_s": {tally.name: tally.busy_ns / 1e9 for tally in best.operators},
            "ordered": is_ordered,
        }
        print(f"figure {case.figure}, {case.what}, {count} workers: {told['tuples_per_s']:,.0f} tuples/s", flush=True)
        yield told


def _timed(chain: BoundChain, settings: RunSettings, pace: int) -> tuple[WorkersRun, float]:
    """Run a case; returns the result and the cores it used."""
    start, cpu = perf_counter(), process_time()
    run = run_by_workers(chain, settings, pace)
    return run, (process_time() - cpu) / (perf_counter() - start)


def machine(pace: int) -> dict[str, Any]:
    """Description of the machine and the libraries."""
    return {
        "cores": os.cpu_count(),
        "usable_cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "processor": _processor(),
        "system": platform.platform(),
        "python": platform.python_version(),
        **{library: version(library) for library in ("numba", "llvmlite", "numpy")},
        "adapt": version("adapt-streams"),
        "pace": pace,
    }


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    if described.exists():
        for line in described.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _parsed() -> Namespace:
    parser = ArgumentParser("benchmarks.ordered_cores", description="The ordered engine on a machine with many cores.")
    parser.add_argument("--out", type=Path, required=True, help="file for the results, as JSON")
    parser.add_argument(
        "--workers",
        type=_workers,
        default=_powers(),
        help="numbers of workers, such as 1,2,4,8,16; default: up to the number of cores",
    )
    parser.add_argument("--tuples", type=int, default=300_000, help="tuples that enter a chain")
    parser.add_argument("--repeats", type=int, default=3, help="repeats of each run; the best counts")
    return parser.parse_args()


def _workers(text: str) -> list[int]:
    counts = text.split(",")
    if not all(count.isdecimal() and int(count) for count in counts):
        raise ArgumentTypeError(f"must be a list of integers from 1 up (got {text!r})")
    return sorted({int(count) for count in counts})


def _powers() -> list[int]:
    """1, 2, 4 and so on up to the number of cores, inclusive."""
    cores = os.cpu_count() or 1
    return sorted({cores, *(1 << power for power in range(cores.bit_length()))})


if __name__ == "__main__":
    sys.exit(main())
