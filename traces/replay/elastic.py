"""Elastic replay of a stored trace; needs no Spark."""

from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from adapt.core.counting.lossy import LossyCounter
from adapt.core.elastic.replay.replay import Elastic, ElasticRun, check_elastic, elastic_parameters, replay_elastic
from adapt.core.errors import UsageError
from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.keyed_rows import KEY, Reading
from adapt.core.stage.input.offered_load import Demand, bounds_of
from adapt.core.stream import Weight
from adapt.traces.replay.ahead.length import stage_length
from adapt.traces.replay.flux import SHORTER, rows_of
from adapt.traces.replay.operators import Operator
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.store.atomic import check_folder_free
from adapt.traces.store.runs import keep_run
from adapt.traces.store.trace import Trace


@dataclass(frozen=True, slots=True)
class ElasticOptions:
    """Settings of an elastic replay, except the stage.

    Attributes:
        reading: How rows become tuples; they arrive at their timestamps.
        elastic: How the stage scales.
        operator: The state, or a windowed join.
        duration_s: When to stop; None, when all rows are processed.
        interval_s: Length of a measurement interval; None, about 300 intervals.
        own_keys: How many of the hottest keys have a partition each, so that plans pin them.
    """

    reading: Reading
    elastic: Elastic
    operator: Operator = Operator()  # noqa: RUF009 - frozen
    duration_s: float | None = None
    interval_s: float | None = None
    own_keys: int = 0


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

    The trace is read once for its totals and once per case; once more for its hottest keys with `own_keys`, and for
    keys and sides with a join. One row group is in memory at a time. The workers of the stage are the pool.

    Args:
        out: Where to keep the run; None keeps nothing.

    Raises:
        UsageError: an argument is out of range, or the trace lacks a column.
        EnvironmentFailure: `out` exists or cannot be written.
        BadInput: the trace is damaged or not in time order, or the join does not have two sides.
    """
    reading, elastic = options.reading, options.elastic
    check_folder_free(out, force=force)
    options.operator.check(trace, reading)
    check_elastic(settings, elastic)
    if not 0 <= options.own_keys < settings.partitions:
        raise UsageError(
            f"--scheme own-keys must be at least 0 and below the number of partitions, {settings.partitions:,}"
            f" (got {options.own_keys:,})"
        )
    progress("reading", 0, trace.rows)
    if options.own_keys:
        reading = replace(reading, partitions=replace(reading.partitions, own=_hottest(trace, options)))
    reading, settings = options.operator.applied(trace, reading, settings)
    rows = rows_of(trace, reading)
    demand = Demand.from_chunks(rows.chunks(), settings)
    further: dict[str, Any] = {
        **options.operator.parameters(),
        "own_keys": options.own_keys,
    }
    period_s, cases = min(elastic.period_s, options.interval_s or inf), len(elastic.cases()) * len(elastic.swept())
    length = stage_length(bounds_of(demand, settings), period_s, cases, options.duration_s)
    length.check(SHORTER.format("--period"))
    run = replay_elastic(
        rows,
        demand,
        settings,
        elastic,
        duration_s=options.duration_s,
        interval_s=options.interval_s,
        parameters={**elastic_parameters(settings, reading, elastic, options.duration_s), **further},
        told=lambda case, at_s, done: progress(f"{case}, {at_s:,.1f} s simulated", done, demand.all_rows),
    )
    keep_run(run, out, command, [trace.as_input], force=force)
    return run


def _hottest(trace: Trace, options: ElasticOptions) -> ExplicitMap:
    """The hottest keys of a trace, numbered; by lossy counts that miss none with a tenth of the last one's share."""
    counter = LossyCounter(min(1e-3, 0.1 / options.own_keys), ARROW_TYPES[trace.key_type], Weight.COUNT)
    for batch in trace.batches([KEY]):
        counter.update(batch.column(KEY))
    keys = counter.summary().cut(options.own_keys).keys
    return ExplicitMap(keys, np.arange(len(keys)))
