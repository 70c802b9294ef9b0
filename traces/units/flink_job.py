"""Subtasks of a running Flink job, by its REST API."""

from pathlib import Path

from adapt.core.errors import BadInput, UsageError
from adapt.core.phrases import listed
from adapt.traces.calibrate.flink import answer_of, running_job
from adapt.traces.units.documents import read_document
from adapt.traces.units.samples import Samples


def read_job(url: str, operator: str = "") -> Samples:
    """Rows that each subtask of a vertex has read since it started.

    Args:
        url: Address of the REST API.
        operator: Part of the name of the vertex; empty for the one that reads most rows.
    """
    base = url.rstrip("/")
    path = f"/jobs/{running_job(answer_of(base, '/jobs/overview'), None)['jid']}"
    vertices = answer_of(base, path)["vertices"]
    matching = [one for one in vertices if operator in one["name"]]
    if not matching:
        names = listed([repr(one["name"]) for one in vertices])
        raise UsageError(f"--count {operator}: no operator has this in its name; operators: {names}")
    chosen = max(matching, key=lambda one: (one["parallelism"] > 1, int(one["metrics"].get("read-records") or 0)))
    if chosen["parallelism"] < 2:
        raise BadInput(f"operator {chosen['name']!r} has one subtask: there is nothing to balance")
    return read_document(Path(chosen["name"]), answer_of(base, f"{path}/vertices/{chosen['id']}"))
