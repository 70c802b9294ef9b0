"""Tasks of Spark's stages, from an event log."""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from adapt.core.errors import BadInput, UsageError
from adapt.core.joins.adaptive import ENABLED
from adapt.core.phrases import listed
from adapt.core.spark_stages.answer import StageRun, StagesAnswer
from adapt.core.spark_stages.plan import METRICS, Node, operator_of
from adapt.core.spark_stages.tasks import Task, TimesOfTasks
from adapt.core.values import visible
from adapt.traces.sources.formats.spark_log import GIVE, Faults, events, parts_of
from adapt.traces.units.samples import Amount, Samples, Unit

_WANTED = (
    *("SparkListenerTaskEnd", "SparkListenerStageSubmitted", "SparkListenerStageCompleted", "SparkListenerLogStart"),
    *("SparkListenerApplicationStart", "SparkListenerEnvironmentUpdate", "SparkListenerExecutorAdded"),
    *("SparkListenerSQLExecutionStart", "SparkListenerSQLAdaptiveExecutionUpdate"),
)


@dataclass(slots=True)
class _Stage:
    number: int
    name: str = ""
    submitted_ms: int = 0
    expected: int = 0  # tasks; 0 if not known
    query: int | None = None
    run_ms: int = 0
    shuffled: bool = False  # whether tasks read a shuffle
    rows: dict[int, float] = field(default_factory=dict)  # by task; the last attempt counts
    tasks: dict[int, Task] = field(default_factory=dict)  # until the stage ends
    accumulators: set[int] = field(default_factory=set)
    run: StageRun | None = None  # once it has ended


class _Application:
    """What an event log says of stages."""

    def __init__(self) -> None:
        self.stages: dict[int, _Stage] = {}
        self.names: dict[str, None] = {}
        self._properties: dict[str, str] = {}
        self._cores: dict[str, int] = {}  # of all executors
        self._slots = 0  # most tasks at once; 0 if not known
        self._plans: dict[int, Node] = {}
        self._queries: dict[int, tuple[str, Mapping[str, str]]] = {}  # call site and settings

    def add(self, event: Mapping[str, Any]) -> None:
        """Keep what matters of an event."""
        match str(event.get("Event", "")).rpartition(".")[2]:
            case "SparkListenerLogStart":
                if re.match(r"[12]\.|3\.[01]\.", str(event.get("Spark Version", ""))):
                    self._properties[ENABLED] = "false"  # the default before 3.2
            case "SparkListenerEnvironmentUpdate":
                self._properties |= event.get("Spark Properties", {})
            case "SparkListenerApplicationStart":
                self.names[str(event.get("App ID", ""))] = None
            case "SparkListenerExecutorAdded":
                self._cores[str(event["Executor ID"])] = int(event["Executor Info"]["Total Cores"])
                each = int(self._properties.get("spark.task.cpus", 1))
                self._slots = sum(self._cores.values()) // max(each, 1)
            case "SparkListenerSQLExecutionStart":
                query, changed = int(event["executionId"]), event.get("modifiedConfigs") or {}
                self._queries[query] = str(event.get("description", "")), changed
                self._plans[query] = Node.of(event["sparkPlanInfo"])
            case "SparkListenerSQLAdaptiveExecutionUpdate":
                self._plans[int(event["executionId"])] = Node.of(event["sparkPlanInfo"])
            case "SparkListenerStageSubmitted":
                info, stage = event["Stage Info"], self._stage(event["Stage Info"])
                of_query = (event.get("Properties") or {}).get("spark.sql.execution.id")
                stage.name, stage.submitted_ms = str(info["Stage Name"]), int(info.get("Submission Time", 0))
                stage.expected = max(stage.expected, int(info.get("Number of Tasks", 0)))
                stage.query = None if of_query is None else int(of_query)
            case "SparkListenerTaskEnd" if event.get("Task Metrics"):
                self._add_task(self._stage(event), event["Task Info"], event["Task Metrics"])
            case "SparkListenerStageCompleted" if not event["Stage Info"].get("Failure Reason"):
                self._end(self._stage(event["Stage Info"]))

    def ended(self) -> list[StageRun]:
        """Runs of the stages that have ended."""
        for stage in self.stages.values():
            if stage.tasks and stage.run is None and len(stage.tasks) >= stage.expected:
                self._end(stage)
        return [stage.run for stage in self.stages.values() if stage.run is not None]

    def _stage(self, of: Mapping[str, Any]) -> _Stage:
        number = int(of["Stage ID"])
        return self.stages.setdefault(number, _Stage(number))

    def _add_task(self, stage: _Stage, info: Mapping[str, Any], of: Mapping[str, Any]) -> None:
        if info.get("Failed") or info.get("Killed"):
            return
        shuffle, given = of.get("Shuffle Read Metrics", {}), of.get("Input Metrics", {})
        shuffled, index = int(shuffle.get("Total Records Read", 0)), int(info["Index"])
        rows = shuffled + int(given.get("Records Read", 0))
        amounts = {}
        for each in info.get("Accumulables", ()):
            if each.get("Metadata") == "sql":
                stage.accumulators.add(int(each["ID"]))
                if each.get("Name") in METRICS:
                    amounts[int(each["ID"])] = int(each.get("Update") or 0)
        start_ms, run_ms = int(info.get("Launch Time", 0)), int(of.get("Executor Run Time", 0))
        stage.tasks[index] = Task(
            str(info.get("Host", "")),
            start_ms,
            int(info.get("Finish Time", 0)) or start_ms + run_ms,
            int(of.get("JVM GC Time", 0)),
            rows,
            sum(int(shuffle.get(f"{place} Bytes Read", 0)) for place in ("Remote", "Local"))
            + int(given.get("Bytes Read", 0)),
            int(of.get("Disk Bytes Spilled", 0)),
            amounts,
        )
        stage.rows[index] = float(rows)
        stage.run_ms += run_ms
        stage.shuffled |= shuffled > 0

    def _end(self, stage: _Stage) -> None:
        """Sum up the tasks of a stage; a later attempt that repeats some of them does not count."""
        tasks, stage.tasks = list(stage.tasks.values()), {}
        if not tasks or (stage.run is not None and len(tasks) < stage.run.times.tasks):
            return
        call_site, changed = self._queries.get(-1 if stage.query is None else stage.query, ("", {}))
        plan = None if stage.query is None else self._plans.get(stage.query)
        operator = None if plan is None else operator_of(plan, stage.accumulators)
        times, conf = TimesOfTasks.of(tasks, operator, self._slots), {**self._properties, **changed}
        stage.run = StageRun(stage.number, stage.name, call_site or stage.name, operator, times, conf)


def read_tasks(path: Path, stage: str = "") -> Samples:
    """Rows by task of a stage, with all stages ranked.

    Runs of one stage, such as micro-batches, are windows.

    Args:
        stage: Name of the stage, or its number; empty for the one with most to win, or else the one with the most run
            time that reads a shuffle.
    """
    faults, application = Faults(), _Application()
    _check_parts(path)
    for event in events(path, faults, _WANTED):
        try:
            application.add(event)
        except (KeyError, TypeError, ValueError, AttributeError):
            faults.lines += 1
    if len(application.names) > 1:
        raise BadInput(f"{path} holds several applications, {listed([*application.names])}; give one log each")
    runs = application.ended()
    if not runs:
        if any(each.tasks for each in application.stages.values()):
            raise BadInput(f"{path} ends before any stage ended; give the log once a stage has ended")
        raise BadInput(f"{path} has no task that ended; {GIVE}")
    groups: dict[tuple[str, str], list[_Stage]] = defaultdict(list)
    for number, each in application.stages.items():
        is_asked = not stage or stage in (each.name, str(number))
        if is_asked and each.run is not None and any(each.rows.values()):
            groups[each.run.kind].append(each)
    if stage and not groups:
        known = sorted({each.name for each in application.stages.values() if each.rows})
        raise UsageError(
            f"--count {stage}: {path} has no such stage with rows; available: {listed(known[:6]) or 'none'}"
        )
    if not groups:
        raise BadInput(f"{path} has no task that read rows; {GIVE}")
    answer = StagesAnswer.of(runs, stage)
    best = answer.stages[0].worst.kind
    if best not in groups or not (stage or answer.is_skewed):
        best = max(groups, key=lambda kind: max((each.shuffled, each.run_ms) for each in groups[kind]))
    return replace(_samples(path, groups[best], len(groups), faults), stages=answer)


def _samples(path: Path, stages: Sequence[_Stage], known: int, faults: Faults) -> Samples:
    """Rows of the tasks of the runs of a stage."""
    name = visible(stages[-1].name)
    tasks = Counter(len(each.rows) for each in stages).most_common(1)[0][0]
    runs = [each for each in stages if len(each.rows) == tasks]
    said = [f"tasks of stage {name!r}, run {len(runs):,} times, of {known:,} stages with rows"]
    if tasks < 2:
        raise BadInput(f"{path}: stage {name!r} has one task; name another with --count")
    series = [
        (
            Unit(str(task)),  # without its host: the tasks of the next stage are placed anew
            np.array([each.submitted_ms * 1000 for each in runs], np.int64),
            np.array([each.rows.get(task, 0.0) for each in runs]),
        )
        for task in sorted(runs[-1].rows)
    ]
    return Samples.of_series("rows read", Amount.SUM, series, notes=[*said, *faults.sentences()])


def _check_parts(path: Path) -> None:
    """Check that all files of a rolling log are of one application."""
    names = [part.name.split("_", 2) for part in parts_of(path)] if path.is_dir() else []
    owners = dict.fromkeys(name[2].split(".")[0] for name in names if name[0] == "events" and len(name) > 2)
    if len(owners) > 1:
        raise BadInput(f"{path} holds parts of several applications, {listed([*owners])}; give one folder each")
