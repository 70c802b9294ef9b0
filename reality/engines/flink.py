"""Flink's standalone cluster as an engine."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from adapt.core.costs.profile import CostSource
from adapt.core.errors import BadInput
from adapt.traces.calibrate.flink import calibrate_flink
from reality import service
from reality.engines.flink_cluster import MISSING, Cluster, compiled_jar, flink_jar, running
from reality.rows import Processed, latencies, profile, rescaled, rows_per_worker, throughput
from reality.scenarios import Engine, Kind, Placement, Scenario
from reality.workload import WORKERS, Workload

ROOT = Path(__file__).parent.parent.parent
SOURCES = (
    "reality/java/ReplayTrace.java",
    "core/engines/any_language/PlanReader.java",
    "core/engines/flink/FlinkGroups.java",
    "core/engines/flink/PlacedKey.java",
)
CHECKPOINT_S = 1.0
"""Checkpoints of the scenarios with a rescale, which restores one."""

_LOGGED = np.dtype(
    [("number", ">i4"), ("worker", ">i4"), *((name, ">i8") for name in ("due", "sent", "taken", "done", "count"))]
)
_LIMIT_S = 180


class Flink:
    """Flink, from the jar that ADAPT_FLINK_JAR names."""

    def missing(self) -> str:
        """A sentence on what is missing; empty if it can run."""
        return "" if flink_jar() else MISSING

    @contextmanager
    def started(self, workload: Workload, folder: Path) -> Iterator["Running"]:
        """Start a cluster, and run the job once so that it is compiled."""
        jar = flink_jar()
        assert jar is not None
        folder.mkdir(parents=True, exist_ok=True)
        job = compiled_jar(jar, [ROOT / source for source in SOURCES], folder)
        rows = zip(workload.arrivals_s, workload.costs_s, workload.keys, strict=True)
        (folder / "rows.tsv").write_text("".join(f"{at:.6f}\t{cost:.9f}\t{key}\n" for at, cost, key in rows))
        with ExitStack() as stack:
            port = stack.enter_context(service.running())
            ports = free_port(), free_port(), free_port(), free_port()
            cluster = stack.enter_context(running(jar, job, folder, ports, WORKERS))
            started = Running(workload, folder, cluster, port, count(time.time_ns()))
            started.run(Scenario(Engine.FLINK, Kind.SATURATED, Placement.PLAN), 0)
            yield started


@dataclass(frozen=True, slots=True)
class Running:
    """A started cluster."""

    workload: Workload
    folder: Path
    cluster: Cluster
    port: int
    numbers: Iterator[int]

    def run(self, scenario: Scenario, rate: float) -> dict[str, Any]:
        """Run a scenario as a job."""
        out = self.folder / f"run-{next(self.numbers)}"
        out.mkdir()
        speedup = self.workload.speedup(rate) if rate else 0
        is_rescale = scenario.kind is Kind.RESCALE
        arguments = [str(self.folder / "rows.tsv"), str(out), str(scenario.workers), str(self.port), repr(speedup), "0"]
        arguments += [str(round(CHECKPOINT_S * 1e3)) if is_rescale else "0"]
        if scenario.placement is Placement.PLAN:
            arguments.append(str(self.workload.export("flink")))
        job = self.cluster.run("ReplayTrace", arguments)
        asked_s, by_rest_s = np.inf, None
        if is_rescale:
            asked_s, by_rest_s = self._rescale(job, out, scenario.after, len(self.workload.keys) / rate)
        self.cluster.wait(job, ended=True, limit_s=_LIMIT_S)
        return self._measured(scenario, Processed.of(_logged(out)), asked_s, by_rest_s)

    def _rescale(self, job: str, out: Path, workers: int, lasts_s: float) -> tuple[float, float | None]:
        """Change the parallelism in the middle of the trace.

        Returns:
            When, and the mean service time that `adapt calibrate flink` finds just before.
        """
        self.cluster.wait(job, ended=False, limit_s=_LIMIT_S)
        while not (out / "first").exists():
            time.sleep(0.01)
        middle_s = int((out / "first").read_text()) / 1e9 + lasts_s / 2
        for at_s in (middle_s - 1, middle_s):  # an answer shows the metrics that an earlier request asked for
            time.sleep(max(0.0, at_s - time.monotonic()))
            calibrated = self._calibrated(job)
        required = self.cluster.get(f"/jobs/{job}/resource-requirements")
        (found,) = [
            one["id"] for one in self.cluster.get(f"/jobs/{job}")["vertices"] if one["name"].startswith("process")
        ]
        required[found]["parallelism"]["upperBound"] = workers
        asked_s = time.monotonic()
        self.cluster.send("PUT", f"/jobs/{job}/resource-requirements", required)
        return asked_s, calibrated

    def _calibrated(self, job: str) -> float | None:
        """Mean service time by REST; None before the first answer with rows."""
        with suppress(BadInput):
            return calibrate_flink(self.cluster.url, job, "process", self.cluster.prometheus).profile.service.mean_s
        return None

    def _measured(
        self, scenario: Scenario, every: Processed, asked_s: float, by_rest_s: float | None
    ) -> dict[str, Any]:
        rows = every.last()
        assert len(rows.number) == len(self.workload.keys), f"{len(rows.number)} of all rows were processed"
        if scenario.kind is not Kind.RESCALE:
            metrics = rows_per_worker(rows.worker, scenario.workers)
            return {"metrics": metrics | (latencies(rows) if scenario.share else throughput(rows)), "costs": {}}
        metrics = rescaled(rows, asked_s)
        costs: dict[str, Any] = {"profile": profile(CostSource.FLINK, rows, self.workload.costs_s, asked_s)}
        costs |= {"restart_s": metrics["downtime"], "repeated": len(every.number) - len(rows.number)}
        early = rows.done_s < asked_s
        costs["service_s"] = float((rows.done_s - rows.taken_s)[early].mean())
        if by_rest_s is not None:
            costs["by_rest_s"] = by_rest_s
        return {"metrics": metrics, "costs": costs}


def _logged(out: Path) -> Any:
    """Rows that the subtasks have written."""
    logged = np.concatenate([np.fromfile(file, _LOGGED) for file in sorted(out.glob("*.rows"))])
    records = np.zeros(
        len(logged), [(name, np.int64 if name in ("number", "worker") else np.float64) for name in Processed.__slots__]
    )
    for name in ("number", "worker"):
        records[name] = logged[name]
    for name in ("due", "sent", "taken", "done"):
        records[f"{name}_s"] = logged[name] / 1e9
    records["shown_s"] = records["done_s"]
    return records


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
