"""Replaying a trace from disk through a stage whose workers come and go, and keeping what came out; without Spark."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from adapt.core.counting.lossy import LossyCounter
from adapt.core.elastic.replay.replay import Elastic, ElasticRun, check_elastic, elastic_parameters, replay_elastic
from adapt.core.errors import UsageError
from adapt.core.keys.columns import ARROW_TYPES
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.stage.conditions.join import Join
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.join_sides import Sides
from adapt.core.stage.input.keyed_rows import KEY, Reading
from adapt.core.stage.input.offered_load import Demand
from adapt.core.stream import Weight
from adapt.traces.replay.flux import check_columns, encoded, rows_of, with_state
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.store.atomic import check_folder_free
from adapt.traces.store.runs import keep_run
from adapt.traces.store.trace import Trace


@dataclass(frozen=True, slots=True)
class ElasticOptions:
    """How a trace goes through a stage, beside the stage itself.

    Attributes:
        reading: How rows become tuples; they arrive by their times.
        elastic: What scales the stage.
        state: The state of a partition is as many tuples as it has rows in the trace, or as its rows have bytes; None,
            as the stage says.
        duration_s: Until then at most; if not given, until all rows are processed.
        interval_s: How often to take down what the stage does; if not given, some hundred times.
        own_keys: So many of the heaviest keys of the trace have a partition each, so that plans place them one by one.
        join: What is joined on the keys, the window in microseconds; None, nothing is.
        side: The column that says to which of the two streams of a join a row belongs.
    """

    reading: Reading
    elastic: Elastic
    state: Weight | None = None
    duration_s: float | None = None
    interval_s: float | None = None
    own_keys: int = 0
    join: Join | None = None
    side: str = "stream"


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
    """Simulate a trace through a stage, with fixed workers and with each way of scaling; see `replay_elastic`.

    The trace is read once for its sums, once for each case, once for its heaviest keys if they are asked for, and once
    for its keys and sides if it is joined; a row group at a time. The run is kept at `out`, if given.

    The workers of the stage are the pool, its groups are its partitions, those of `options.reading`.

    Raises:
        UsageError: an argument is out of its range, or the trace has no such column.
        EnvironmentFailure: `out` is taken or cannot be written.
        BadInput: a part of the trace is damaged, its rows are not in the order of time, or it has not two sides.
    """
    reading = options.reading
    check_folder_free(out, force=force)
    check_columns(trace, reading, options.state)
    check_elastic(settings, options.elastic)
    if options.join is not None and options.side not in trace.columns:
        raise UsageError(
            f"{trace.path} has no column {options.side!r} to say the side of a row, only {', '.join(trace.columns)};"
            f" ingest it with --stream or with --keep {options.side}"
        )
    if not 0 <= options.own_keys < settings.partitions:
        raise UsageError(
            f"{options.own_keys:,} keys with a partition each leave none of {settings.partitions:,} for other keys;"
            " give from 0 up, and fewer than there are partitions"
        )
    progress("reading", 0, trace.rows)
    if options.own_keys:
        reading = replace(reading, partitions=replace(reading.partitions, own=_heaviest(trace, options)))
    if options.join is not None:
        sides = Sides.from_batches(
            options.side, KEY, trace.batches([KEY, options.side], encoded(trace, [KEY, options.side]))
        )
        reading = replace(reading, sides=sides)
        settings = replace(settings, join=options.join, partition_of=sides.partitions_by(reading.partitions))
    rows = rows_of(trace, reading)
    demand = Demand.from_chunks(rows.chunks(), settings)
    settings = with_state(settings, trace, reading, options.state, demand)
    told: dict[str, Any] = {"state_from": options.state and options.state.value, "own_keys": options.own_keys}
    run = replay_elastic(
        rows,
        demand,
        settings,
        options.elastic,
        duration_s=options.duration_s,
        interval_s=options.interval_s,
        parameters={**elastic_parameters(settings, reading, options.elastic, options.duration_s), **told},
        told=lambda case, at_s, done: progress(f"{case}, {at_s:,.1f} s simulated", done, demand.all_rows),
    )
    keep_run(run, out, command, [trace.as_input], force=force)
    return run


def _heaviest(trace: Trace, options: ElasticOptions) -> ExplicitMap:
    """The heaviest keys of a trace, each with a number; those of lossy counts that miss none of a tenth of the last."""
    counter = LossyCounter(min(1e-3, 0.1 / options.own_keys), ARROW_TYPES[trace.key_type], Weight.COUNT)
    for batch in trace.batches([KEY]):
        counter.update(batch.column(KEY))
    keys = counter.summary().cut(options.own_keys).keys
    return ExplicitMap(keys, np.arange(len(keys)))
