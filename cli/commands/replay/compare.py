"""`adapt replay compare`: several mechanisms on one trace, with one cost model."""

from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.groups import setting
from adapt.cli.options.replay.compare import (
    ComparedStage,
    ComparisonOutput,
    ScenarioOptions,
    TimeOptions,
    WorkerOptions,
)
from adapt.cli.options.spark import TaskSpark
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.output import is_for_programs, narrate
from adapt.cli.terminal.stages import stages


def compare(
    trace: TracePath,
    output: ComparisonOutput,
    workers: WorkerOptions,
    scenarios: ScenarioOptions,
    times: TimeOptions,
    stage: ComparedStage,
    spark: TaskSpark,
    jobs: int | None = setting(None, "Scenarios at a time on this machine; one a core if left out.", "J", min=1),
) -> None:
    """Run several mechanisms on one trace with one cost model, and say what to do.

    Static placements, key splitting, Flux, plans built anew, elastic workers, shedding and combinations of them, on one
    simulated stage. Each is a run of its own; one that is interrupted goes on with those that are missing when the
    same command is given again.

    Example: adapt replay compare web.trace --channels 8 -o web.run
    """
    from adapt.traces.replay.compare import ComparingOptions, compare_on_trace
    from adapt.traces.store.trace import open_trace

    output.check()
    chosen = scenarios.chosen()
    opened = open_trace(trace)
    options = ComparingOptions(
        workers.wanted(times, stage, opened), chosen, scenarios.sustained(workers.channels), jobs, spark.options()
    )
    try:
        with stages() as progress:
            run = compare_on_trace(
                opened, output.out, options, force=output.force, command=command_line(), progress=progress
            )
    except KeyboardInterrupt:
        if output.out is not None:
            narrate("what is done is kept: the same command goes on with the scenarios that are missing")
        raise
    tables = list(run.tables().values()) if is_for_programs(output.format) else run.shown()
    output.show(tables, run.as_data(), lead=[["What to do", str(run.summary().records()[0]["verdict"])]])
