"""Replaying a trace from disk through a stage whose workers come and go, and keeping what came out; without Spark."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adapt.core.replay.demand import Demand
from adapt.core.replay.elastic import Elastic, ElasticRun, check_elastic, elastic_parameters, replay_elastic
from adapt.core.replay.keyed_rows import Reading
from adapt.core.stage.settings import StageSettings
from adapt.core.stream import Weight
from adapt.traces.artefacts.manifest import Provenance
from adapt.traces.artefacts.runs import write_run
from adapt.traces.artefacts.trace import Trace
from adapt.traces.artefacts.whole import check_folder_free
from adapt.traces.flux_replaying import check_columns, rows_of, state_tuples
from adapt.traces.progress import Progress, silent


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
    """

    reading: Reading
    elastic: Elastic
    state: Weight | None = None
    duration_s: float | None = None
    interval_s: float | None = None


def replay_elastic_trace(
    trace: Trace,
    out: Path | None,
    settings: StageSettings,
    options: ElasticOptions,
    *,
    force: bool = False,
    command: str = "adapt.traces.elastic_replaying.replay_elastic_trace",
    progress: Progress = silent,
) -> ElasticRun:
    """Simulate a trace through a stage, with fixed workers and with each way of scaling; see `replay_elastic`.

    The trace is read once for its sums and once for each case, a row group at a time.

    Args:
        trace: The stream.
        out: Where the run appears, whole, at the end; None keeps it in memory alone.
        settings: The stage; its sites are the pool, its groups are its partitions, which are those of
            `options.reading`.
        options: The rest.
        force: Replace an artefact at `out`.
        command: What the manifest says made the run.
        progress: Told what is being done, the rows done and the rows in all.

    Raises:
        UsageError: an argument is out of its range, or the trace has no such column.
        EnvironmentFailure: `out` is taken or cannot be written.
        BadInput: a part of the trace is damaged, or its rows are not in the order of time.
    """
    reading = options.reading
    if out is not None:
        check_folder_free(out, force=force)
    check_columns(trace, reading, options.state)
    check_elastic(settings, options.elastic)
    rows = rows_of(trace, reading)
    progress("reading", 0, trace.rows)
    demand = Demand.of(rows.chunks(), settings)
    if options.state is not None:
        settings = replace(
            settings, state_tuples=state_tuples(trace, reading, options.state, demand, settings.costs.tuple_bytes)
        )
    told: dict[str, Any] = {"state_from": options.state and options.state.value}
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
    if out is not None:
        inputs = [{"name": trace.path.name, "content_hash": trace.manifest.content_hash}]
        write_run(run, out, Provenance(command, dict(run.parameters), inputs), force=force)
    return run
