"""Repartitioning replay of a trace on disk, without Spark."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from adapt.core.repartition.decisions import Replan
from adapt.core.repartition.replay import Live, RepartitionRun, replay_repartition
from adapt.core.stream import Weight
from adapt.traces.counting.count import check_window
from adapt.traces.counting.weights import WEIGHT_COLUMNS, chosen_weight
from adapt.traces.replay.operators import check_columns, encoded
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.store.atomic import check_folder_free
from adapt.traces.store.runs import keep_run
from adapt.traces.store.trace import Trace


def weighed(replan: Replan, trace: Trace, weight: Weight | None) -> Replan:
    """The replay with the keys and weights of a trace."""
    chosen = chosen_weight(trace, weight)
    if replan.window is not None:
        check_window(replan.window, trace)
    replan.check_steps(trace.rows, trace.last_us - trace.first_us)
    recipe = replace(replan.recipe, key_type=trace.key_type)
    return replace(replan, recipe=recipe, weight=chosen, weight_column=WEIGHT_COLUMNS.get(chosen))


def replay_trace(
    trace: Trace,
    out: Path | None,
    replan: Replan,
    live: Live | None = None,
    *,
    clock: Callable[[], float] | None = None,
    force: bool = False,
    command: str = "adapt.traces.replay.repartition.replay_trace",
    progress: Progress = silent,
) -> RepartitionRun:
    """Replay a trace, `weighed` for it; see `replay_repartition`.

    Memory grows with the distinct keys of a window, and with the number of measurements. The run is written to `out`,
    if given.
    """
    check_folder_free(out, force=force)
    if live is not None:
        check_columns(trace, live.reading, sized=False)
        live = replace(
            live, told=lambda case, at_s, done: progress(f"{case}, {at_s:,.1f} s simulated", done, trace.rows)
        )

    def batches(columns: list[str]) -> Iterator[pa.RecordBatch]:
        if live is not None:
            return trace.batches(columns, encoded(trace, columns))
        return _with_progress(trace, columns, progress)

    run = replay_repartition(batches, replan, live, clock=clock)
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
