"""Elastic replay of a stored trace; needs no Spark."""

from dataclasses import dataclass
from pathlib import Path

from adapt.core.elastic.replay.replay import Elastic, ElasticRun, check_elastic, elastic_parameters, replay_elastic
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.offered_load import Demand, bounds_of
from adapt.traces.replay.ahead.length import stage_length
from adapt.traces.replay.flux import rows_of, shorter
from adapt.traces.replay.operators import Operator
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.store.atomic import check_folder_free
from adapt.traces.store.runs import keep_run
from adapt.traces.store.trace import Trace


@dataclass(frozen=True, slots=True)
class ElasticOptions:
    """Settings of an elastic replay, except the stage.

    Attributes:
        operator: The state, or a windowed join.
    """

    reading: Reading  # how rows become tuples; they arrive at their timestamps
    elastic: Elastic  # how the stage scales
    operator: Operator = Operator()  # noqa: RUF009 - frozen
    duration_s: float | None = None  # when to stop; None, when all rows are processed
    interval_s: float | None = None  # length of a measurement interval; None, about 300 intervals


def replay_elastic_trace(
    trace: Trace,
    out: Path | None,
    settings: StageSettings,
    options: ElasticOptions,
    *,
    force: bool = False,
    command: str = "adapt.traces.replay.elastic.replay_elastic_trace",
    progress: Progress = silent,
) -> ElasticRun:
    """Simulate a trace with fixed workers and each scaling policy; see `replay_elastic`.

    The trace is read once for its totals and once per case; once more for keys and sides with a
    join. One row group is in memory at a time. The workers of the stage are the pool.

    Args:
        out: Where to keep the run; None keeps nothing.
    """
    reading, elastic = options.reading, options.elastic
    check_folder_free(out, force=force)
    options.operator.check(trace, reading)
    check_elastic(settings, elastic)
    progress("reading", 0, trace.rows)
    reading, settings = options.operator.applied(trace, reading, settings)
    rows = rows_of(trace, reading)
    demand = Demand.from_chunks(rows.chunks(), settings)
    bounds, cases = bounds_of(demand, settings), len(elastic.cases())
    length = stage_length(bounds, settings, elastic.period_s, options.interval_s, cases, options.duration_s)
    length.check("set --duration", shorter(reading, "--period"))
    run = replay_elastic(
        rows,
        demand,
        settings,
        elastic,
        duration_s=options.duration_s,
        interval_s=options.interval_s,
        parameters=elastic_parameters(settings, reading, elastic, options.duration_s) | options.operator.parameters(),
        told=lambda case, at_s, done: progress(f"{case}, {at_s:,.1f} s simulated", done, demand.all_rows),
    )
    keep_run(run, out, command, [trace.as_input], force=force)
    return run
