"""Repartitioning replay of a trace on disk, without Spark."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from adapt.core.engines.names import AnyScheme
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.repartition.channel_schedule import Schedule
from adapt.core.partitioning.repartition.repartition import RepartitionRun, replay_repartition
from adapt.core.stream import Weight
from adapt.core.units.row_or_time_span import Length
from adapt.traces.counting.weights import WEIGHT_COLUMNS, chosen_weight
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.store.atomic import check_folder_free
from adapt.traces.store.runs import keep_run
from adapt.traces.store.trace import Trace


@dataclass(frozen=True, slots=True)
class RepartitionOptions:
    """Options of a repartitioning replay.

    Attributes:
        length: Length of a period.
        schedule: Channel counts by time since the first row.
        recipe: How plans are built.
        weight: The weight of a row. Default: cost if the trace has costs, else 1.
        today: What places keys now, measured as well. Default: not measured.
    """

    length: Length
    schedule: Schedule
    recipe: Recipe
    weight: Weight | None = None
    today: AnyScheme | None = None


def replay_trace(
    trace: Trace,
    out: Path | None,
    options: RepartitionOptions,
    *,
    clock: Callable[[], float] | None = None,
    force: bool = False,
    command: str = "adapt.traces.replay.repartition.replay_trace",
    progress: Progress = silent,
) -> RepartitionRun:
    """Replay a trace period by period; see `replay_repartition`.

    Memory grows with the distinct keys of one period, and with the number of measurements. `clock` returns seconds, for
    build times. The run is written to `out`, if given.

    Raises:
        UsageError: the trace has no column of that weight.
        EnvironmentFailure: `out` exists or cannot be written.
        BadInput: a part of the trace is damaged, or the weight of a key is below 0.
    """
    check_folder_free(out, force=force)
    chosen = chosen_weight(trace, options.weight)
    column = WEIGHT_COLUMNS.get(chosen)
    batches = _with_progress(trace, ["ts", "key"] + ([column] if column else []), progress)
    run = replay_repartition(
        batches,
        options.length,
        options.schedule,
        replace(options.recipe, key_type=trace.key_type),
        weight=chosen,
        weight_column=column,
        clock=clock,
        today=options.today,
    )
    keep_run(run, out, command, [trace.as_input], force=force)
    return run


def _with_progress(trace: Trace, columns: list[str], progress: Progress) -> Iterator[pa.RecordBatch]:
    """The batches of a trace, reporting progress after each."""
    done = 0
    progress("replaying", 0, trace.rows)
    for batch in trace.batches(columns):
        yield batch
        done += batch.num_rows
        progress("replaying", done, trace.rows)
