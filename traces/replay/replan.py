"""Live replay of a trace on disk, without Spark."""

from dataclasses import dataclass
from pathlib import Path

from adapt.core.replan.replay import Replan, ReplanRun, replay_replan
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.keyed_rows import Reading
from adapt.traces.counting.count import check_window
from adapt.traces.replay.operators import check_columns, encoded
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.store.atomic import check_folder_free
from adapt.traces.store.runs import keep_run
from adapt.traces.store.trace import Trace


@dataclass(frozen=True, slots=True)
class ReplanOptions:
    """Options of a live replay, besides the stage.

    Attributes:
        reading: How rows become tuples; its partitions are those under Flux.
        replan: The loop and its triggers.
    """

    reading: Reading
    replan: Replan


def replay_replan_trace(
    trace: Trace,
    out: Path | None,
    settings: StageSettings,
    options: ReplanOptions,
    *,
    force: bool = False,
    command: str = "adapt.traces.replay.replan.replay_replan_trace",
    progress: Progress = silent,
) -> ReplanRun:
    """Replay a trace through the splitter's loop; see `replay_replan`.

    One row group is in memory at a time. The run is written to `out`, if given.

    Raises:
        UsageError: an argument is out of range, the window is longer than the trace, or the trace lacks a column.
        EnvironmentFailure: `out` exists or cannot be written.
        BadInput: the trace is damaged or not in time order.
    """
    check_folder_free(out, force=force)
    check_columns(trace, options.reading, sized=False)
    check_window(options.replan.loop.window.length, trace)
    progress("deciding", 0, trace.rows)
    run = replay_replan(
        lambda columns: trace.batches(columns, encoded(trace, columns)),
        settings,
        options.reading,
        options.replan,
        told=lambda case, at_s, done: progress(f"{case}, {at_s:,.1f} s simulated", done, trace.rows),
    )
    keep_run(run, out, command, [trace.as_input], force=force)
    return run
