"""Flux replay of a trace from disk, without Spark."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapt.core.errors import BadInput
from adapt.core.flux.replay.replay import Adapting, Conditions, FluxRun, Pace, check_replay, parameters_of, replay_flux
from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.conditions.faults import FaultSchedule, parse_faults
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.offered_load import Demand, bounds_of
from adapt.traces.read_errors import readable
from adapt.traces.replay.ahead.length import stage_length
from adapt.traces.replay.operators import Operator, encoded
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.store.atomic import check_folder_free
from adapt.traces.store.plans import NamedPlan
from adapt.traces.store.runs import keep_run
from adapt.traces.store.trace import Trace


@dataclass(frozen=True, slots=True)
class FluxOptions:
    """Options of a Flux replay, besides the stage.

    Attributes:
        adapting: Policies and thresholds.
        conditions: Memory limits, faults and standby replicas.
        operator: The state, or a join.
    """

    reading: Reading  # how rows become tuples
    adapting: Adapting = Adapting()  # noqa: RUF009 - frozen
    conditions: Conditions = Conditions()  # noqa: RUF009 - frozen
    operator: Operator = Operator()  # noqa: RUF009 - frozen
    duration_s: float | None = None  # upper limit of the simulated time; None, until all rows are processed
    interval_s: float | None = None  # sampling interval; None, some hundred samples
    plan: NamedPlan | None = None  # the plan of the initial placement, if any


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

    See `replay_flux`. The trace is read once for its totals and once per case, one row group at a time; once more for
    its keys, if the operator needs them. The run is written to `out`, if given.
    """
    reading, plan = options.reading, options.plan
    check_folder_free(out, force=force)
    options.operator.check(trace, reading)
    progress("reading", 0, trace.rows)
    conditions = options.conditions
    reading, settings = options.operator.applied(trace, reading, settings, by_key=options.adapting.hot is not None)
    check_replay(settings, options.adapting, conditions)
    rows = rows_of(trace, reading)
    demand = Demand.from_chunks(rows.chunks(), settings, conditions.faults)
    parameters = parameters_of(settings, reading, options.adapting, conditions, options.duration_s)
    told: dict[str, Any] = {**options.operator.parameters(), "plan": plan and plan.plan.content_hash()}
    pace, adapting = Pace(reading.speedup, options.duration_s, options.interval_s), options.adapting
    bounds = bounds_of(demand, settings, conditions.faults)
    stage_length(bounds, settings, adapting.round_s, pace.interval_s, len(adapting.cases()), pace.duration_s).check(
        "set --duration", shorter(reading, "--min-collection")
    )
    run = replay_flux(
        rows,
        demand,
        settings,
        adapting,
        conditions,
        pace,
        parameters={**parameters, **told},
        told=lambda case, at_s, done: progress(f"{case}, {at_s:,.1f} s simulated", done, demand.all_rows),
    )
    keep_run(run, out, command, [trace.as_input, *([] if plan is None else [plan.as_input])], force=force)
    return run


def shorter(reading: Reading, period: str) -> dict[str, str]:
    """Options that make a replay shorter, by what is too much."""
    speedup = "" if reading.speedup is None else " or --speedup"
    options = {"control period": period, "sample": "--interval"}
    return {what: f"increase {option}{speedup}, or " for what, option in options.items()}


def read_faults(path: Path, settings: StageSettings) -> FaultSchedule:
    """Read a fault schedule file for a stage."""
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
