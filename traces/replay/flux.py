"""Replaying a trace from disk through a simulated stage, and keeping what came out; no Spark takes part."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from adapt.core.errors import BadInput, UsageError
from adapt.core.flux.replay.replay import Adapting, Conditions, FluxRun, Pace, check_replay, parameters_of, replay_flux
from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.conditions.faults import FaultSchedule, parse_faults
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.keyed_rows import BYTES, COST, KEY, STREAM, Reading, bytes_by_partition
from adapt.core.stage.input.offered_load import Demand
from adapt.core.stream import KeyType, Weight
from adapt.traces.read_errors import readable
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.store.atomic import check_folder_free
from adapt.traces.store.runs import keep_run
from adapt.traces.store.trace import Trace


@dataclass(frozen=True, slots=True)
class FluxOptions:
    """How a trace goes through a stage, beside the stage itself.

    Attributes:
        reading: How rows become tuples.
        adapting: What decides on moves.
        conditions: What limits or hits the workers.
        state: The state of a partition is as many tuples as it has rows in the trace, or as its rows have bytes; None,
            as the stage says.
        duration_s: Until then at most; if not given, until all rows are processed.
        interval_s: How often to take down what the stage does; if not given, some hundred times.
        plan: The content hash of the plan whose channels are the workers, if there is one.
    """

    reading: Reading
    adapting: Adapting = Adapting()  # noqa: RUF009 - frozen
    conditions: Conditions = Conditions()  # noqa: RUF009 - frozen
    state: Weight | None = None
    duration_s: float | None = None
    interval_s: float | None = None
    plan: str | None = None


def replay_flux_trace(
    trace: Trace,
    out: Path | None,
    settings: StageSettings,
    options: FluxOptions,
    *,
    force: bool = False,
    command: str = "adapt.traces.replay.flux.replay_flux_trace",
    progress: Progress = silent,
) -> FluxRun:
    """Simulate a trace through a stage, once without moves and once with each policy; see `replay_flux`.

    The trace is read once for its sums and once for each case, a row group at a time. The
    groups of the stage are its partitions, those of `options.reading`. The run is kept at `out`, if given.

    Raises:
        UsageError: an argument is out of its range, or the trace has no such column.
        EnvironmentFailure: `out` is taken or cannot be written.
        BadInput: a part of the trace is damaged, its rows are not in the order of time, or it does not fit the stage.
    """
    reading = options.reading
    check_folder_free(out, force=force)
    check_columns(trace, reading, options.state)
    check_replay(settings, options.adapting, options.conditions)
    rows = rows_of(trace, reading)
    progress("reading", 0, trace.rows)
    demand = Demand.from_chunks(rows.chunks(), settings, options.conditions.faults)
    settings = with_state(settings, trace, reading, options.state, demand)
    parameters = parameters_of(settings, reading, options.adapting, options.conditions, options.duration_s)
    told: dict[str, Any] = {"state_from": options.state and options.state.value, "plan": options.plan}
    run = replay_flux(
        rows,
        demand,
        settings,
        options.adapting,
        options.conditions,
        Pace(reading.speedup, options.duration_s, options.interval_s),
        parameters={**parameters, **told},
        told=lambda case, at_s, done: progress(f"{case}, {at_s:,.1f} s simulated", done, demand.all_rows),
    )
    keep_run(run, out, command, [trace.as_input], force=force)
    return run


def read_faults(path: Path, settings: StageSettings) -> FaultSchedule:
    """Read a fault schedule for a stage from its file.

    Raises:
        BadInput: there is none, or it is none, or the stage cannot have such faults.
    """
    with readable(path):
        text = path.read_bytes()
    try:
        schedule = parse_faults(text)
        schedule.check(settings.workers, settings.disturbances)
        return schedule
    except BadInput as error:
        raise BadInput(f"{path}: {error}") from error


def rows_of(trace: Trace, reading: Reading) -> Rows:
    """The rows of a trace as the tuples of a stage, read a row group at a time as often as they are asked for."""
    return reading.rows(lambda: trace.batches(reading.columns, encoded(trace, reading.columns)))


def check_columns(trace: Trace, reading: Reading, state: Weight | None) -> None:
    """Whether a trace has what is asked of it.

    Raises:
        UsageError: it has no column of that name.
    """
    for wanted, column, option in (
        (reading.by_cost, COST, "--cost"),
        (state is Weight.BYTES, BYTES, "--bytes"),
        (reading.by_stream, STREAM, "--stream"),
    ):
        if wanted and column not in trace.columns:
            raise UsageError(
                f"{trace.path} has no {option.removeprefix('--')}; ingest it with {option} COLUMN, or do without"
            )


def check_key_type(trace: Trace, key_type: KeyType, plan: Path) -> None:
    """Whether a plan is for the keys of a trace.

    Raises:
        BadInput: its keys are of another type.
    """
    if trace.key_type is not key_type:
        raise BadInput(
            f"{plan} is for keys of type {key_type}, but those of {trace.path} are {trace.key_type}; build it from this"
            " trace"
        )


def with_state(
    settings: StageSettings, trace: Trace, reading: Reading, state: Weight | None, demand: Demand
) -> StageSettings:
    """The stage, each partition's state in tuples: as said, or as many as it has rows or as its rows have bytes."""
    if state is None:
        return settings
    tuples = demand.rows
    if state is not Weight.COUNT:
        batches: Iterator[pa.RecordBatch] = trace.batches([KEY, BYTES], encoded(trace, [KEY]))
        sums = bytes_by_partition(batches, reading.partitions)
        tuples = np.asarray(np.maximum(1, -(-sums // settings.costs.tuple_bytes)))
    return replace(settings, state_tuples=tuples)


def encoded(trace: Trace, columns: list[str]) -> list[str]:
    """The columns of text, of which each value is then hashed once."""
    return [name for name in columns if name == STREAM or (name == KEY and trace.key_type is not KeyType.INT64)]
