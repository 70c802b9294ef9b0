"""Cost profile from a Spark event log or Structured Streaming progress."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from adapt.core.costs.calibration import Calibration
from adapt.core.costs.profile import CostSource, Pause, Profile, Restart, Service, Transport, quantiles_of
from adapt.core.costs.samples import line_through
from adapt.core.errors import BadInput, UsageError
from adapt.traces.read_errors import readable

_PROGRESS = "QueryProgressEvent"
_OF_BATCH = ("latestOffset", "getBatch", "queryPlanning", "walCommit", "commitOffsets", "commitBatch")
"""Parts of a micro-batch in which no task runs."""

SPREAD = "a task's time is a sum over its rows, so the spread of single rows is unknown"


@dataclass(slots=True)
class _Log:
    """What matters of an event log.

    Attributes:
        began_ms: Start of the application, and of its first executor.
        stages: Name of each stage.
        tasks: Events of successful tasks.
        progress: Progress of streaming queries.
    """

    began_ms: list[int] = field(default_factory=list)
    stages: dict[int, str] = field(default_factory=dict)
    tasks: list[Mapping[str, Any]] = field(default_factory=list)
    progress: list[Mapping[str, Any]] = field(default_factory=list)

    def add(self, event: Mapping[str, Any]) -> None:
        """Keep an event that matters."""
        match str(event.get("Event", "")).rpartition(".")[2].rpartition("$")[2]:
            case "SparkListenerApplicationStart":
                self.began_ms[:0] = [int(event["Timestamp"])]
            case "SparkListenerExecutorAdded":
                self.began_ms.append(int(event["Timestamp"]))
            case "SparkListenerStageSubmitted":
                of = event["Stage Info"]
                self.stages[int(of["Stage ID"])] = str(of["Stage Name"])
            case "SparkListenerTaskEnd" if event.get("Task Metrics") and not event["Task Info"]["Failed"]:
                kept = ("Stage ID", "Task Info", "Task Metrics", "Task Executor Metrics")
                info = {name: event["Task Info"][name] for name in ("Launch Time", "Finish Time", "Executor ID")}
                self.tasks.append({**{name: event.get(name) for name in kept}, "Task Info": info})
            case name if name == _PROGRESS:
                self.progress.append(event["progress"])
            case "" if "durationMs" in event:
                self.progress.append(event)


@dataclass(frozen=True, slots=True)
class _Task:
    """A task: its rows, and seconds of service and of transport."""

    rows: int
    service_s: float
    transport_s: float
    run_s: float

    @classmethod
    def of(cls, event: Mapping[str, Any]) -> "_Task":
        """The task of an event."""
        of = event["Task Metrics"]
        read, write = of.get("Shuffle Read Metrics", {}), of.get("Shuffle Write Metrics", {})
        rows = int(read.get("Total Records Read", 0)) + int(of.get("Input Metrics", {}).get("Records Read", 0))
        run_s = int(of["Executor Run Time"]) / 1e3
        transport_s = int(read.get("Fetch Wait Time", 0)) / 1e3 + int(write.get("Shuffle Write Time", 0)) / 1e9
        service_s = max(0.0, run_s - transport_s - int(of.get("JVM GC Time", 0)) / 1e3)
        return cls(rows, service_s, transport_s, run_s)


def calibrate_spark(path: Path, workers: int | None = None, stage: int | None = None) -> Calibration:
    """Derive a cost profile from what Spark has recorded.

    Tasks give service time and transport, by default those of the stages with the most run time. Progress of a
    streaming query gives the fixed time of a micro-batch as a pause, and the service time where there are no tasks.

    Args:
        path: An event log, plain or with zstd, its folder, or progress as JSON lines or a list.
        workers: Tasks that run at once; for progress without tasks.
        stage: The stage whose tasks count; None, those with the most run time, by name.

    Raises:
        BadInput: The file is neither, or has no task with rows and no micro-batch with rows.
        UsageError: `workers` is missing, or the stage does not exist.
    """
    log = _Log()
    for event in _events(path):
        log.add(event)
    tasks, of_stage = _chosen(log, stage)
    batches = [one for one in log.progress if int(one.get("numInputRows", 0)) > 0]
    notes = [SPREAD]
    fixed_s: list[float] = []
    service, transport = Service(), Transport()
    if tasks:
        rows = sum(one.rows for one in tasks)
        mean_s = sum(one.service_s for one in tasks) / rows
        service = Service(rows, mean_s=mean_s or None)
        transport = Transport(row_s=sum(one.transport_s for one in tasks) / rows)
        said = f"{path.name}: {len(tasks):,} tasks of {of_stage}, {rows:,} rows"
    elif batches:
        if workers is None:
            raise UsageError("progress of a streaming query does not say how many tasks run at once; give --workers N")
        service, fixed_s = _of_batches(batches, workers)
        said = f"{path.name}: {len(batches):,} micro-batches, {service.rows:,} rows, {workers} tasks at once"
    else:
        raise BadInput(f"{path} has no task and no micro-batch with rows; give a Spark event log or streaming progress")
    pauses = [pause for pause in (_collections(log), _between(batches, fixed_s)) if pause is not None]
    started = (log.began_ms[1] - log.began_ms[0]) / 1e3 if len(log.began_ms) > 1 else None
    restart = Restart(start_s=started if started is not None and started >= 0 else None)
    return Calibration(
        Profile(CostSource.SPARK, said, service, transport=transport, restart=restart, pauses=tuple(pauses)),
        tuple(notes),
    )


def _events(path: Path) -> Iterator[Mapping[str, Any]]:
    """JSON objects of a log, its folder of parts, or a list."""
    with readable(path):
        parts = sorted(path.glob("events_*"), key=_part_number) if path.is_dir() else [path]
    if not parts:
        raise BadInput(f"{path} is a folder without events_*; give a Spark event log or streaming progress")
    for part in parts:
        text = _text(part)
        try:
            if text.lstrip()[:1] == "[":
                yield from json.loads(text)
                continue
            for number, line in enumerate(text.splitlines(), 1):
                if line.strip():
                    event = json.loads(line)
                    if not isinstance(event, dict):
                        raise ValueError("not an object")
                    yield event
        except ValueError as error:
            where = "" if text.lstrip()[:1] == "[" else f" line {number}"
            raise BadInput(
                f"{part}{where} is not JSON: {error}; give a Spark event log or streaming progress"
            ) from None


def _text(part: Path) -> str:
    """Text of a part; Spark compresses with zstd by default."""
    with readable(part):
        data = part.read_bytes()
    try:
        if data[:4] == b"\x28\xb5\x2f\xfd":
            data = pa.CompressedInputStream(pa.BufferReader(data), "zstd").read()
        return data.decode()
    except (UnicodeDecodeError, OSError) as error:
        raise BadInput(
            f"{part} is neither text nor zstd; write it with spark.eventLog.compression.codec=zstd"
        ) from error


def _part_number(part: Path) -> int:
    number = part.name.split("_")[1]
    return int(number) if number.isdecimal() else 0


def _chosen(log: _Log, stage: int | None) -> tuple[list[_Task], str]:
    """Tasks with rows of a stage, or of the stages with the most run time, and their name."""
    groups: dict[str, list[_Task]] = {}
    for event in log.tasks:
        number, task = int(event["Stage ID"]), _Task.of(event)
        reads = (
            "shuffle" if event["Task Metrics"].get("Shuffle Read Metrics", {}).get("Total Records Read") else "input"
        )
        name = f"stage {number}" if stage is not None else f"{log.stages.get(number, f'stage {number}')!r} ({reads})"
        if task.rows > 0 and stage in (None, number):
            groups.setdefault(name, []).append(task)
    if stage is not None and not groups:
        known = sorted({int(event["Stage ID"]) for event in log.tasks})
        raise UsageError(f"--stage {stage} has no tasks with rows; stages: {', '.join(map(str, known)) or 'none'}")
    name = max(groups, key=lambda each: sum(one.run_s for one in groups[each]), default="")
    return groups.get(name, []), name


def _of_batches(batches: Sequence[Mapping[str, Any]], workers: int) -> tuple[Service, list[float]]:
    """Service time, and the part of each batch that does not depend on its rows."""
    rows = np.array([float(one["numInputRows"]) for one in batches])
    added_s = np.array([float(one["durationMs"].get("addBatch", 0)) / 1e3 for one in batches])
    row_s, fixed_s = line_through(rows, added_s)
    return Service(int(rows.sum()), mean_s=row_s * workers or None), [fixed_s] * len(batches)


def _between(batches: Sequence[Mapping[str, Any]], fixed_s: Sequence[float]) -> Pause | None:
    """What each micro-batch takes in which no row is processed."""
    if len(batches) < 2:
        return None
    begins = [datetime.fromisoformat(one["timestamp"]).timestamp() for one in batches]
    own = [sum(float(one["durationMs"].get(name, 0)) for name in _OF_BATCH) / 1e3 for one in batches]
    lasts = np.array(own) + (np.array(fixed_s) if fixed_s else 0.0)
    gap_s = float(np.diff(begins).mean() - lasts.mean())
    return Pause("micro-batch", gap_s, quantiles_of(lasts), together=True) if gap_s > 0 and lasts.max() > 0 else None


def _collections(log: _Log) -> Pause | None:
    """Garbage collections, by the counters of executors: their mean length, and how often."""
    most: dict[str, tuple[float, float]] = {}
    for event in log.tasks:
        of = event.get("Task Executor Metrics") or {}
        found = tuple(
            sum(float(of.get(f"{kind}GC{what}", 0)) for kind in ("Minor", "Major")) for what in ("Count", "Time")
        )
        executor = str(event["Task Info"]["Executor ID"])
        most[executor] = max(most.get(executor, (0.0, 0.0)), (found[0], found[1] / 1e3))
    count, total_s = (sum(column) for column in zip(*most.values(), strict=True)) if most else (0.0, 0.0)
    if count == 0 or total_s == 0:
        return None
    times = [int(event["Task Info"][name]) / 1e3 for event in log.tasks for name in ("Launch Time", "Finish Time")]
    gap_s = ((max(times) - min(times)) * len(most) - total_s) / count
    return Pause("gc", gap_s, (total_s / count,)) if gap_s > 0 else None
