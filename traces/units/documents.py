"""One JSON document of units: Flink's REST API, CloudWatch."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.traces.units.samples import Amount, Samples, Unit

_OF_SUBTASK = re.compile(r"(\d+)\.(.+)")
_TOTALS = ("read-records", "write-records", "accumulated-busy-time", "read-bytes")
"""Metrics of a subtask, the likeliest to be load first."""


def read_document(path: Path, found: Any, metric: str = "") -> Samples:
    """The samples of a document that is neither Prometheus's nor Spark's.

    Args:
        metric: Metric of Flink's subtasks; empty for rows read.
    """
    try:
        if isinstance(found, Mapping) and "MetricDataResults" in found:
            return _metric_data(path, found["MetricDataResults"])
        if isinstance(found, Mapping) and isinstance(found.get("subtasks"), Sequence):
            return _subtasks(path, found, metric)
        if isinstance(found, Sequence) and found and isinstance(found[0], Mapping) and "id" in found[0]:
            return _metrics(path, found, metric)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BadInput(f"{path}: a part is missing or of another kind ({error}); export it again") from None
    if isinstance(found, Mapping) and "vertices" in found:
        raise BadInput(f"{path} has totals by vertex; save /jobs/JOB/vertices/VERTEX, which has the subtasks")
    if isinstance(found, Mapping) and "Datapoints" in found:
        raise BadInput(f"{path} is one series without its shard; use get-metric-data with a query for each shard")
    raise BadInput(f"{path} is not a known answer of Prometheus, Flink's REST API or CloudWatch")


def _metric_data(path: Path, results: Sequence[Mapping[str, Any]]) -> Samples:
    """Series of CloudWatch; pages of one series are put together."""
    series: dict[str, tuple[list[int], list[float]]] = {}
    for each in results:
        times, values = series.setdefault(str(each.get("Label") or each["Id"]), ([], []))
        times += [round(datetime.fromisoformat(text).timestamp() * 1e6) for text in each["Timestamps"]]
        values += [float(value) for value in each["Values"]]
    if len(series) < 2:
        raise BadInput(f"{path} has {len(series)} series; query each shard or partition, with its name as the label")
    made = [(Unit(name), np.array(times, np.int64), np.array(values)) for name, (times, values) in series.items()]
    return Samples.of_series("the metric", Amount.SUM, made, notes=["values are sums of their period"])


def _subtasks(path: Path, found: Mapping[str, Any], metric: str) -> Samples:
    """Subtasks of a vertex: totals since they started, or how busy they are."""
    now_us = int(found.get("now", 0)) * 1000
    names = sorted({name for each in found["subtasks"] for name in (each.get("metrics") or {})})
    if names:
        totals = {name: [float(each["metrics"].get(name, 0)) for each in found["subtasks"]] for name in names}
        chosen = metric or next((name for name in _TOTALS if any(totals.get(name, ()))), names[0])
        if chosen not in totals:
            raise UsageError(f"--count {chosen}: {path} has no such metric{did_you_mean(chosen, names)}")
        values, amount = totals[chosen], Amount.COUNTER
    else:
        chosen, amount = "busyRatio", Amount.RATE
        values = [float(each[chosen]) for each in found["subtasks"]]
    series = [
        (
            Unit(str(each["subtask"]), worker=str(each.get("endpoint") or each.get("host") or "")),
            np.array([now_us], np.int64),
            np.array([value]),
        )
        for each, value in zip(found["subtasks"], values, strict=True)
    ]
    return Samples.of_series(chosen, amount, series, is_timed=False)


def _metrics(path: Path, found: Sequence[Mapping[str, Any]], metric: str) -> Samples:
    """Metrics by subtask, `[{"id": "0.numRecordsIn", "value": "12"}]`."""
    values: dict[str, list[tuple[str, float]]] = {}
    for each in found:
        match = _OF_SUBTASK.fullmatch(str(each["id"]))
        if match:
            values.setdefault(match[2], []).append((match[1], float(each["value"])))
    if not metric and len(values) != 1:
        raise UsageError(f"{path} has metrics {', '.join(sorted(values)[:6])}; choose one with --count")
    chosen = metric or next(iter(values))
    if chosen not in values:
        raise UsageError(f"--count {chosen}: {path} has no such metric{did_you_mean(chosen, list(values))}")
    at = np.zeros(1, np.int64)
    series = [(Unit(name), at, np.array([value])) for name, value in values[chosen]]
    amount = Amount.RATE if "PerSecond" in chosen else Amount.COUNTER
    return Samples.of_series(chosen, amount, series, is_timed=False)
