"""Cost profile from a Spark event log or Structured Streaming progress."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.costs.calibration import Calibration
from adapt.core.costs.profile import CostSource, Pause, Profile, Restart, Service, Transport, quantiles_of
from adapt.core.errors import BadInput, UsageError
from adapt.traces.sources.formats.spark_log import GIVE, Faults, events

_OF_BATCH = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "commitOffsets", "commitBatch")
"""Parts of a micro-batch in which no task runs."""

MOST_START_S = 86_400.0
"""Longest start of an executor after its application that is taken for that of a restart."""

SPREAD = "a task's time is a sum over its rows, so the spread of single rows is unknown"


@dataclass(slots=True)
class _Tasks:
    """Sums over the tasks of a stage that read rows."""

    count: int = 0
    rows: int = 0
    run_s: float = 0.0
    service_s: float = 0.0
    transport_s: float = 0.0

    def add(self, of: Mapping[str, Any], rows: int) -> None:
        """Add the metrics of a task."""
        read, write = of.get("Shuffle Read Metrics", {}), of.get("Shuffle Write Metrics", {})
        run_s = int(of["Executor Run Time"]) / 1e3
        transport_s = int(read.get("Fetch Wait Time", 0)) / 1e3 + int(write.get("Shuffle Write Time", 0)) / 1e9
        self.count, self.rows, self.run_s = self.count + 1, self.rows + rows, self.run_s + run_s
        self.transport_s += transport_s
        self.service_s += max(0.0, run_s - transport_s - int(of.get("JVM GC Time", 0)) / 1e3)

    def merge(self, other: "_Tasks") -> None:
        """Add the sums of another stage."""
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))


@dataclass(slots=True)
class _Log:
    """What matters of an event log, in sums by stage and executor."""

    # start of the application and of its first executor, where known
    began_ms: dict[str, int] = field(default_factory=dict)
    ended_ms: list[int] = field(default_factory=list)  # times between which tasks ran
    names: dict[int, str] = field(default_factory=dict)  # name of each stage
    # tasks of each stage, by whether they read a shuffle or input
    stages: dict[tuple[int, str], _Tasks] = field(default_factory=dict)
    # garbage collections of each executor: number and seconds
    collections: dict[str, tuple[float, float]] = field(default_factory=dict)
    progress: list[Mapping[str, Any]] = field(default_factory=list)  # micro-batches of streaming queries that had rows

    def add(self, event: Mapping[str, Any]) -> None:
        """Keep what matters of an event."""
        match str(event.get("Event", "")).rpartition(".")[2].rpartition("$")[2]:
            case ("SparkListenerApplicationStart" | "SparkListenerExecutorAdded") as name:
                self.began_ms.setdefault(name, int(event["Timestamp"]))
            case "SparkListenerStageSubmitted":
                self.names[int(event["Stage Info"]["Stage ID"])] = str(event["Stage Info"]["Stage Name"])
            case "SparkListenerTaskEnd" if event.get("Task Metrics") and not event["Task Info"]["Failed"]:
                self._add_task(event)
            case "QueryProgressEvent":
                self._add_progress(event["progress"])
            case "" if "durationMs" in event:
                self._add_progress(event)

    def _add_task(self, event: Mapping[str, Any]) -> None:
        of, info = event["Task Metrics"], event["Task Info"]
        shuffled = int(of.get("Shuffle Read Metrics", {}).get("Total Records Read", 0))
        rows = shuffled + int(of.get("Input Metrics", {}).get("Records Read", 0))
        if rows:
            reads = "shuffle" if shuffled else "input"
            self.stages.setdefault((int(event["Stage ID"]), reads), _Tasks()).add(of, rows)
        times = (*self.ended_ms, int(info["Launch Time"]), int(info["Finish Time"]))
        self.ended_ms = [min(times), max(times)]
        counted = event.get("Task Executor Metrics") or {}
        count, total_ms = (
            sum(float(counted.get(f"{kind}GC{what}", 0)) for kind in ("Minor", "Major")) for what in ("Count", "Time")
        )
        executor = str(info["Executor ID"])
        self.collections[executor] = max(self.collections.get(executor, (0.0, 0.0)), (count, total_ms / 1e3))

    def _add_progress(self, of: Mapping[str, Any]) -> None:
        rows = of.get("numInputRows")  # an event log has it by source alone
        rows = sum(int(one.get("numInputRows", 0)) for one in of.get("sources", ())) if rows is None else int(rows)
        if rows > 0:
            self.progress.append({"timestamp": of["timestamp"], "rows": rows, "durationMs": of["durationMs"]})


def calibrate_spark(path: Path, workers: int | None = None, stage: int | None = None) -> Calibration:
    """Derive a cost profile from what Spark has recorded.

    Tasks give service time and transport, by default those of the stages with the most run time. Progress of a
    streaming query gives the fixed time of a micro-batch as a pause, and the service time where there are no tasks.

    Args:
        path: An event log, plain or compressed, its folder, or progress as JSON lines or a list.
        workers: Tasks that run at once; for progress without tasks.
        stage: The stage whose tasks count; None, those with the most run time, by name.
    """
    log, faults = _Log(), Faults()
    try:
        for event in events(path, faults):
            log.add(event)
    except (KeyError, TypeError) as error:
        raise BadInput(f"{path}: an event is not as Spark writes it: {error}; {GIVE}") from error
    tasks, of_stage = _chosen(log, stage)
    batches, fixed_s = log.progress, 0.0
    service, transport = Service(), Transport()
    if tasks.rows:
        service = Service(tasks.rows, mean_s=tasks.service_s / tasks.rows or None)
        transport = Transport(row_s=tasks.transport_s / tasks.rows)
        said = f"{path.name}: {tasks.count:,} tasks of {of_stage}, {tasks.rows:,} rows"
    elif batches:
        if workers is None:
            raise UsageError("progress of a streaming query does not say how many tasks run at once; give --workers N")
        service, fixed_s = _of_batches(batches, workers)
        said = f"{path.name}: {len(batches):,} micro-batches, {service.rows:,} rows, {workers} tasks at once"
    else:
        raise BadInput(f"{path} has no task and no micro-batch with rows; {GIVE}")
    pauses = [pause for pause in (_collections(log), _between(batches, fixed_s)) if pause is not None]
    began = log.began_ms
    started_s = (began.get("SparkListenerExecutorAdded", 0) - began.get("SparkListenerApplicationStart", np.inf)) / 1e3
    restart = Restart(start_s=started_s if 0 < started_s < MOST_START_S else None)
    doubted = (
        [
            f"the first executor starts {started_s / 86_400:,.0f} d after its application: times were changed, and the"
            " time of a restart is not known"
        ]
        if MOST_START_S <= started_s < np.inf
        else []
    )
    return Calibration(
        Profile(CostSource.SPARK, said, service, transport=transport, restart=restart, pauses=tuple(pauses)),
        (SPREAD, *doubted, *faults.sentences()),
    )


def _chosen(log: _Log, stage: int | None) -> tuple[_Tasks, str]:
    """Tasks of a stage, or of the stages with the most run time, and their name."""
    groups: dict[str, _Tasks] = {}
    for (number, reads), tasks in log.stages.items():
        if stage in (None, number):
            name = f"stage {number}" if stage is not None else f"{log.names.get(number, number)!r}, which read {reads}"
            groups.setdefault(name, _Tasks()).merge(tasks)
    if stage is not None and not groups:
        known = ", ".join(str(one) for one in sorted({number for number, _ in log.stages}))
        raise UsageError(f"--stage {stage} has no tasks with rows; stages: {known or 'none'}")
    name = max(groups, key=lambda each: groups[each].run_s, default="")
    return groups.get(name, _Tasks()), name


def _of_batches(batches: Sequence[Mapping[str, Any]], workers: int) -> tuple[Service, float]:
    """Service time, and the seconds of a batch that do not depend on its rows."""
    rows = np.array([float(one["rows"]) for one in batches])
    added_s = np.array([float(one["durationMs"].get("addBatch", 0)) / 1e3 for one in batches])
    row_s, fixed_s = line_through(rows, added_s)
    return Service(int(rows.sum()), mean_s=row_s * workers or None), fixed_s


def line_through(stated: Floats, measured: Floats) -> tuple[float, float]:
    """Slope and intercept of measured over stated, both at least 0.

    Least squares through the means of twenty classes of equally many rows, so that a few long rows do not decide.
    """
    order = np.argsort(stated, kind="stable")
    parts = np.array_split(order, min(20, len(order)))
    x, y = (np.array([values[part].mean() for part in parts]) for values in (stated, measured))
    spread = ((x - x.mean()) ** 2).sum()
    slope = float(((x - x.mean()) * (y - y.mean())).sum() / spread) if spread > 1e-9 * (x.mean() ** 2) else np.inf
    through_0 = float(measured.mean() / stated.mean())
    if not 0 <= slope <= through_0:
        return through_0, 0.0
    return slope, float(measured.mean() - slope * stated.mean())


def _between(batches: Sequence[Mapping[str, Any]], fixed_s: float) -> Pause | None:
    """What each micro-batch takes in which no row is processed."""
    if len(batches) < 2:
        return None
    begins = [datetime.fromisoformat(one["timestamp"]).timestamp() for one in batches]
    own = [sum(float(one["durationMs"].get(name, 0)) for name in _OF_BATCH) / 1e3 for one in batches]
    lasts = np.array(own) + fixed_s
    gap_s = float(np.diff(begins).mean() - lasts.mean())
    return Pause("micro-batch", gap_s, quantiles_of(lasts), together=True) if gap_s > 0 and lasts.max() > 0 else None


def _collections(log: _Log) -> Pause | None:
    """Garbage collections by the counters of executors: mean length, and how often."""
    count, total_s = (sum(column) for column in zip((0.0, 0.0), *log.collections.values(), strict=True))
    if count == 0 or total_s == 0:
        return None
    lasted_s = (log.ended_ms[1] - log.ended_ms[0]) / 1e3 * len(log.collections)
    gap_s = (lasted_s - total_s) / count
    return Pause("gc", gap_s, (total_s / count,)) if gap_s > 0 else None
