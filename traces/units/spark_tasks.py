"""Tasks of Spark's stages, from an event log."""

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from adapt.core.errors import BadInput, UsageError
from adapt.core.phrases import listed
from adapt.core.values import visible
from adapt.traces.sources.formats.spark_log import GIVE, Faults, events
from adapt.traces.units.samples import Amount, Samples, Unit

_WANTED = ("SparkListenerTaskEnd", "SparkListenerStageSubmitted")


@dataclass(slots=True)
class _Stage:
    name: str = ""
    submitted_ms: int = 0
    run_ms: int = 0
    shuffled: bool = False  # whether tasks read a shuffle
    rows: dict[int, float] = field(default_factory=dict)  # by task; the last attempt counts


def read_tasks(path: Path, stage: str = "") -> Samples:
    """Rows that each task of a stage read.

    Runs of one stage, such as micro-batches, are windows.

    Args:
        stage: Name of the stage, or its number; empty for the one with the most run time that reads a shuffle.
    """
    faults, stages = Faults(), defaultdict[int, _Stage](_Stage)
    for event in events(path, faults, _WANTED):
        try:
            _add(stages, event)
        except (KeyError, TypeError, ValueError):
            faults.lines += 1
    groups: dict[str, list[_Stage]] = defaultdict(list)
    for number, each in stages.items():
        if each.rows and (not stage or stage in (each.name, str(number))):
            groups[each.name].append(each)
    if stage and not groups:
        known = sorted({each.name for each in stages.values() if each.rows})
        raise UsageError(
            f"--count {stage}: {path} has no such stage with rows; available: {listed(known[:6]) or 'none'}"
        )
    if not groups:
        raise BadInput(f"{path} has no task that read rows; {GIVE}")
    name = max(groups, key=lambda each: (any(s.shuffled for s in groups[each]), sum(s.run_ms for s in groups[each])))
    tasks = Counter(len(each.rows) for each in groups[name]).most_common(1)[0][0]
    runs = [each for each in groups[name] if len(each.rows) == tasks]
    said = [f"tasks of stage {visible(name)!r}, run {len(runs):,} times, of {len(groups):,} stages with rows"]
    if tasks < 2:
        raise BadInput(f"{path}: stage {visible(name)!r} has one task; name another with --count")
    series = [
        (
            Unit(str(task)),  # without its host: the tasks of the next stage are placed anew
            np.array([each.submitted_ms * 1000 for each in runs], np.int64),
            np.array([each.rows.get(task, 0.0) for each in runs]),
        )
        for task in sorted(runs[-1].rows)
    ]
    return Samples.of_series("rows read", Amount.SUM, series, notes=[*said, *faults.sentences()])


def _add(stages: dict[int, _Stage], event: Any) -> None:
    if event.get("Event") == "SparkListenerStageSubmitted":
        info = event["Stage Info"]
        stage = stages[int(info["Stage ID"])]
        stage.name, stage.submitted_ms = str(info["Stage Name"]), int(info.get("Submission Time", 0))
    elif event.get("Event") == "SparkListenerTaskEnd" and event.get("Task Metrics"):
        info, of = event["Task Info"], event["Task Metrics"]
        if info.get("Failed"):
            return
        stage = stages[int(event["Stage ID"])]
        shuffled = int(of.get("Shuffle Read Metrics", {}).get("Total Records Read", 0))
        rows = shuffled + int(of.get("Input Metrics", {}).get("Records Read", 0))
        stage.rows[int(info["Index"])] = float(rows)
        stage.run_ms += int(of.get("Executor Run Time", 0))
        stage.shuffled |= shuffled > 0
