"""`adapt replay compare`: several mechanisms on one trace."""

from typing import TYPE_CHECKING

from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.groups import setting, short_help
from adapt.cli.options.replay.compare import (
    ComparedStage,
    ScenarioOptions,
    WorkerOptions,
)
from adapt.cli.options.result import RunOutput
from adapt.cli.options.spark import ScenarioRunnerOptions
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.stages import stages
from adapt.core.errors import Interrupted

if TYPE_CHECKING:
    from adapt.core.mechanisms.comparison import ComparisonRun


@short_help(
    *("out", "scenario", "scenarios", "channels", "offered", "speedup", "seeds", "sustainable", "service_time"),
    *("jobs", "engine"),
)
def compare(
    trace: TracePath,
    output: RunOutput,
    workers: WorkerOptions,
    scenarios: ScenarioOptions,
    stage: ComparedStage,
    spark: ScenarioRunnerOptions,
    jobs: int | None = setting(None, "Processes on this machine (default: one per core).", "J", min=1),
) -> "ComparisonRun":
    """Compare what to do about skew and bursts, and recommend one.

    Compares static placements, key splitting, Flux, plan rebuilds, elastic workers, load shedding and combinations on
    one simulated stage. Each scenario is a run of its own; after an interruption, repeat the command to resume.

    Example: adapt replay compare web.trace --channels 8 -o web.run
    """
    from adapt.traces.replay.compare import Comparison
    from adapt.traces.replay.replay import replay
    from adapt.traces.store.trace import open_trace

    output.check()
    chosen = scenarios.chosen()
    opened = open_trace(trace)
    wanted = workers.wanted(stage, opened)
    comparison = Comparison(
        *(wanted, chosen, scenarios.sustained(wanted.channels), workers.sweep(), jobs, spark.options())
    )
    try:
        with stages() as progress:
            run = replay(opened, comparison, output.out, force=output.force, command=command_line(), progress=progress)
    except KeyboardInterrupt as stopped:
        if output.out is None:
            raise
        raise Interrupted("interrupted; repeat the command to resume with the missing scenarios") from stopped
    stage.costs.say_what_is_assumed(opened, None if workers.speed.chosen else wanted.speed.offered)
    output.show_run(run, opened, every=list(run.tables().values()))
    return run
