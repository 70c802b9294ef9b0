"""Cost profile of a running Flink job, by REST and Prometheus."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from adapt.core.costs.calibration import Calibration
from adapt.core.costs.profile import CostSource, Pause, Profile, Restart, Service
from adapt.core.errors import BadInput, EnvironmentFailure, UsageError
from adapt.core.phrases import percent

TIMEOUT_S = 10.0
"""Longest wait for an answer."""

_GC = re.compile(r"^flink_taskmanager_Status_JVM_GarbageCollector_All_(\w+)\{.*\} (\S+)$", re.MULTILINE)
_REST = "give the address of the JobManager's REST API, such as http://localhost:8081"


@dataclass(frozen=True, slots=True)
class _Subtask:
    """Totals of a subtask since it started."""

    records: int
    read_bytes: int
    busy_s: float
    backpressured_s: float
    running_s: float


def calibrate_flink(url: str, job: str | None, operator: str | None, prometheus: str | None) -> Calibration:
    """Derive a cost profile from a running job.

    Args:
        url: Address of the REST API.
        job: Number or name of the job; None, the only running one.
        operator: Part of the name of a vertex; None, the busiest one that reads rows of others.
        prometheus: Address of a TaskManager's Prometheus reporter; None, garbage collections stay unknown.
    """
    base = url.rstrip("/")
    found = running_job(answer_of(base, "/jobs/overview"), job)
    path = f"/jobs/{found['jid']}"
    vertices = answer_of(base, path)["vertices"]
    name, subtasks = _vertex(vertices, operator, lambda one: _subtasks(answer_of(base, f"{path}/vertices/{one}")))
    records = sum(one.records for one in subtasks)
    busy_s = sum(one.busy_s for one in subtasks)
    if not records or not busy_s:
        late = "try again: Flink shows them up to 10 s late"
        raise BadInput(f"operator {name!r} of job {found['name']!r} has no processed rows yet; {late}")
    restart, of_restarts = _restart(base, path)
    pauses, of_pauses = ((), "") if prometheus is None else _collections(prometheus)
    profile = Profile(
        CostSource.FLINK,
        f"job {found['name']!r}, operator {name!r}: {records:,} rows in {len(subtasks)} subtasks",
        service=Service(records, mean_s=busy_s / records),
        restart=restart,
        pauses=pauses,
    )
    notes = [_of_subtasks(subtasks), _of_checkpoints(answer_of(base, f"{path}/checkpoints")), of_restarts, of_pauses]
    return Calibration(profile, tuple(note for note in notes if note))


def answer_of(base: str, path: str) -> Any:
    """The answer of the REST API for a path."""
    try:
        return json.loads(_read(base + path))
    except ValueError:
        raise BadInput(f"{base}{path} does not answer with JSON; {_REST}") from None


def _read(address: str) -> bytes:
    if not address.startswith(("http://", "https://")):
        raise UsageError(f"{address!r} does not begin with http://; {_REST}")
    if "@" in address.split("/")[2]:
        raise UsageError(f"a user or password is not allowed in the address; {_REST}")
    try:
        with urlopen(address, timeout=TIMEOUT_S) as reply:
            return bytes(reply.read())
    except HTTPError as error:
        raise BadInput(f"{address} answers with status {error.code}; {_REST}") from None
    except (URLError, OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)
        raise EnvironmentFailure(f"{address} does not answer ({reason}); {_REST}") from None


def running_job(overview: Any, named: str | None) -> Mapping[str, Any]:
    """The running job, or the one of this number or name."""
    jobs = overview.get("jobs") if isinstance(overview, dict) else None
    if jobs is None:
        raise BadInput(f"the answer has no jobs; {_REST}")
    running = [one for one in jobs if one["state"] == "RUNNING"]
    matching = [one for one in running if named is None or named in (one["jid"], one["name"])]
    if len(matching) == 1:
        return dict(matching[0])
    names = ", ".join(f"{one['name']} ({one['jid']})" for one in running) or "none"
    if not matching:
        raise UsageError(f"no running job{'' if named is None else f' {named!r}'}; running jobs: {names}")
    raise UsageError(f"several jobs are running; choose one by --job: {names}")


def _vertex(
    vertices: Sequence[Mapping[str, Any]], named: str | None, subtasks_of: Callable[[str], Sequence[_Subtask]]
) -> tuple[str, Sequence[_Subtask]]:
    """The vertex of this name, or the busiest that reads rows."""
    matching = [one for one in vertices if named is None or named in one["name"]]
    names = ", ".join(repr(one["name"]) for one in vertices)
    if not matching or (named is not None and len(matching) > 1):
        found = "no operator" if not matching else "several operators"
        raise UsageError(f"{found} with {named!r} in the name; operators: {names}")
    read = [(one["name"], subtasks_of(one["id"])) for one in matching]
    readers = [(name, subtasks) for name, subtasks in read if any(each.records for each in subtasks)] or read
    return max(readers, key=lambda one: sum(each.busy_s for each in one[1]))


def _subtasks(vertex: Mapping[str, Any]) -> Sequence[_Subtask]:
    """Totals of all subtasks of a vertex."""
    found = []
    for one in vertex["subtasks"]:
        metrics = one["metrics"]
        busy_ms = float(metrics.get("accumulated-busy-time", 0))  # NaN for sources of the old interface
        found.append(
            _Subtask(
                records=int(metrics["read-records"]),
                read_bytes=int(metrics["read-bytes"]),
                busy_s=busy_ms / 1e3 if busy_ms >= 0 else 0.0,
                backpressured_s=float(metrics.get("accumulated-backpressured-time", 0)) / 1e3,
                running_s=float(one.get("status-duration", {}).get("RUNNING", one["duration"])) / 1e3,
            )
        )
    return found


def _restart(base: str, path: str) -> tuple[Restart, str]:
    """Time of the rescales of the adaptive scheduler, if it keeps a history."""
    try:
        history = answer_of(base, f"{path}/rescales/history")
    except BadInput:  # before Flink 2.3, or with another scheduler
        return Restart(), "the job keeps no history of rescales (web.adaptive-scheduler.rescale-history.size)"
    took_s = [
        (one["endTimestampInMillis"] - one["startTimestampInMillis"]) / 1e3
        for one in history
        if one["terminalState"] == "COMPLETED" and one["triggerCause"] != "INITIAL_SCHEDULE"
    ]
    if not took_s:
        return Restart(), "the job has not been rescaled since it started"
    mean_s = sum(took_s) / len(took_s)
    return Restart(start_s=mean_s), f"{len(took_s)} rescales took {mean_s:.3g} s in the mean, restore included"


def _collections(prometheus: str) -> tuple[tuple[Pause, ...], str]:
    """Garbage collections of a TaskManager: their mean length, at the rate of the last minute."""
    address = prometheus.rstrip("/")
    text = _read(address if address.endswith("/metrics") else f"{address}/metrics").decode(errors="replace")
    found = {name: float(value) for name, value in _GC.findall(text)}
    missing = {"Count", "Time", "TimeMsPerSecond"} - set(found)
    if missing:
        raise BadInput(f"{prometheus} has no garbage collections of a TaskManager; give the address of its reporter")
    if not found["Count"] or not found["TimeMsPerSecond"]:
        return (), "no garbage collection in the last minute"
    length_s = found["Time"] / found["Count"] / 1e3
    interval_s = length_s / (found["TimeMsPerSecond"] / 1e3) - length_s
    pause = Pause("garbage collection", max(interval_s, 1e-6), (length_s,), together=True)
    return (pause,), "lengths of garbage collections are a mean; Prometheus does not show each"


def _of_subtasks(subtasks: Sequence[_Subtask]) -> str:
    """Spread between subtasks, size of rows and backpressure."""
    means_ms = [1e3 * one.busy_s / one.records for one in subtasks if one.records]
    records, running_s = sum(one.records for one in subtasks), sum(one.running_s for one in subtasks)
    stopped = sum(one.backpressured_s for one in subtasks) / running_s if running_s else 0.0
    return (
        f"busy time per row is {min(means_ms):.3g} to {max(means_ms):.3g} ms by subtask; single rows are not measured."
        f" A row has {sum(one.read_bytes for one in subtasks) / records:.0f} bytes on the network; subtasks were"
        f" backpressured {percent(stopped)} of the time"
    )


def _of_checkpoints(checkpoints: Mapping[str, Any]) -> str:
    """Size and duration of checkpoints, which pause no worker."""
    completed = int(checkpoints["counts"]["completed"])
    if not completed:
        return "the job has no completed checkpoint, so the size of its state is unknown"
    summary = checkpoints["summary"]
    size, took_ms = summary["state_size"]["avg"], summary["end_to_end_duration"]["avg"]
    each = f"{size / 1e6:,.3g} MB and {took_ms / 1e3:.3g} s on average"
    return f"{completed:,} checkpoints, {each}, while rows are processed"
