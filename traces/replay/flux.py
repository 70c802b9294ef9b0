"""Flux replay of a trace from disk, without Spark."""

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
    """Options of a Flux replay, besides the stage.

    Attributes:
        reading: How rows become tuples.
        adapting: Policies and thresholds.
        conditions: Memory limits, faults and standby replicas.
        state: Size the state of a partition by its rows or bytes in the trace; None, by the stage's settings.
        duration_s: Upper limit of the simulated time; None, until all rows are processed.
        interval_s: Sampling interval; None, some hundred samples.
        plan: Content hash of the plan of the initial placement, if any.
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
    """Replay a trace through a stage, static and with each policy.

    See `replay_flux`. The trace is read once for its totals and once per case, one row group at a time. The groups of
    the stage are the partitions of `options.reading`. The run is written to `out`, if given.

    Raises:
        UsageError: An argument is out of range, or the trace lacks a column.
        EnvironmentFailure: `out` exists or cannot be written.
        BadInput: The trace is damaged, not in time order, or does not fit the stage.
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
    """Read a fault schedule file for a stage.

    Raises:
        BadInput: The file is missing, malformed or does not fit the stage.
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
    """Rows of a trace as tuples, read by row group, repeatable."""
    return reading.rows(lambda: trace.batches(reading.columns, encoded(trace, reading.columns)))


def check_columns(trace: Trace, reading: Reading, state: Weight | None) -> None:
    """Check that a trace has the columns that a replay needs.

    Raises:
        UsageError: A column is missing.
    """
    for wanted, column, option in (
        (reading.by_cost, COST, "--cost"),
        (state is Weight.BYTES, BYTES, "--bytes"),
        (reading.by_stream, STREAM, "--stream"),
    ):
        if wanted and column not in trace.columns:
            raise UsageError(f"{trace.path} has no column {column!r}; ingest it with {option} COLUMN")


def check_key_type(trace: Trace, key_type: KeyType, plan: Path) -> None:
    """Check that a plan and a trace have the same key type.

    Raises:
        BadInput: The key types differ.
    """
    if trace.key_type is not key_type:
        raise BadInput(
            f"{plan} is for keys of type {key_type}, but {trace.path} has {trace.key_type} keys; build the plan from"
            f" this trace"
        )


def with_state(
    settings: StageSettings, trace: Trace, reading: Reading, state: Weight | None, demand: Demand
) -> StageSettings:
    """The stage with state sized by rows or bytes, if requested."""
    if state is None:
        return settings
    tuples = demand.rows
    if state is not Weight.COUNT:
        batches: Iterator[pa.RecordBatch] = trace.batches([KEY, BYTES], encoded(trace, [KEY]))
        sums = bytes_by_partition(batches, reading.partitions)
        tuples = np.asarray(np.maximum(1, -(-sums // settings.costs.tuple_bytes)))
    return replace(settings, state_tuples=tuples)


def encoded(trace: Trace, columns: list[str]) -> list[str]:
    """Text columns, read dictionary-encoded so that each value is hashed once."""
    return [name for name in columns if name == STREAM or (name == KEY and trace.key_type is not KeyType.INT64)]
