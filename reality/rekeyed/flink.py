"""The three jobs on Flink's standalone cluster."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from time import time_ns
from typing import Any

import numpy as np

from adapt.core.costs.profile import CostSource
from reality import service
from reality.engines.flink import ROOT, SOURCES, _logged, free_port
from reality.engines.flink_cluster import MISSING, Cluster, compiled_jar, flink_jar, running
from reality.rekeyed.run import Run
from reality.rekeyed.workload import MERGE_S, WINDOW_ROWS, WORKERS, Keys, Result, Results, Skewed
from reality.rows import Processed, profile
from reality.scenarios import Engine

JOB = (
    *SOURCES,
    "jvm/adapt/Rekey.java",
    "jvm/adapt/flink/RekeyedKey.java",
    "reality/rekeyed/AggregateTrace.java",
)
_LIMIT_S = 180


def missing() -> str:
    """A sentence on what is missing; empty if it can run."""
    return "" if flink_jar() else MISSING


@contextmanager
def started(workload: Skewed, folder: Path) -> Iterator["Running"]:
    """Start a cluster, and run a job once so that it is compiled."""
    jar = flink_jar()
    assert jar is not None
    folder.mkdir(parents=True, exist_ok=True)
    job = compiled_jar(jar, [ROOT / source for source in JOB], folder)
    rows = zip(workload.arrivals_s, workload.costs_s, workload.keys, strict=True)
    (folder / "rows.tsv").write_text("".join(f"{at:.6f}\t{cost:.9f}\t{key}\n" for at, cost, key in rows))
    with ExitStack() as stack:
        port = stack.enter_context(service.running())
        ports = free_port(), free_port(), free_port(), free_port()
        cluster = stack.enter_context(running(jar, job, folder, ports, WORKERS))
        found = Running(workload, folder, cluster, port, count(time_ns()))
        found.run(Keys.SPLIT)
        yield found


@dataclass(frozen=True, slots=True)
class Running:
    """A started cluster."""

    workload: Skewed
    folder: Path
    cluster: Cluster
    port: int
    numbers: Iterator[int]

    def run(self, keys: Keys) -> Run:
        """Run one of the jobs."""
        out = self.folder / f"run-{next(self.numbers)}"
        out.mkdir()
        arguments: list[Any] = [self.folder / "rows.tsv", out, WORKERS, self.port, WINDOW_ROWS]
        if keys is not Keys.NATURAL:
            arguments.append(self.workload.exported(Engine.FLINK, keys) / "rekey.json")
        if keys is Keys.SPLIT:
            arguments.append(MERGE_S)
        job = self.cluster.run("AggregateTrace", list(map(str, arguments)))
        self.cluster.wait(job, ended=True, limit_s=_LIMIT_S)
        rows = Processed.of(_logged(out))
        merged_s = [int(line) / 1e9 for line in _lines(out, "merged")]
        return Run(
            wall_s=max([float(rows.done_s.max()), *merged_s]) - float(rows.sent_s.min()),
            rows=np.bincount(rows.worker, minlength=WORKERS).tolist(),
            messages=len(merged_s),
            results_are_right=_results(out) == self.workload.expected(Engine.FLINK),
            profile=profile(CostSource.FLINK, rows, self.workload.costs_s),
        )


def _results(out: Path) -> Results:
    """Results that the job has written; a key that comes twice in a window is refused."""
    found: Results = {}
    for line in _lines(out, "results"):
        window, key, *aggregates = line.split("\t")
        assert (int(window), key) not in found, f"window {window} has two results of {key}"
        found[int(window), key] = Result(*map(int, aggregates))
    return found


def _lines(out: Path, what: str) -> list[str]:
    return [line for file in sorted(out.glob(f"*.{what}")) for line in file.read_text().splitlines()]
