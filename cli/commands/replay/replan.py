"""`adapt replay replan`: a trace through the splitter's loop, live."""

from typing import TYPE_CHECKING

from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.groups import short_help
from adapt.cli.options.placement import EngineOption
from adapt.cli.options.replay.repartition import RecipeOptions
from adapt.cli.options.replay.replan import LoopOptions
from adapt.cli.options.replay.stage import SpeedupOption, StageOptions, TroubleOptions, check_speedup
from adapt.cli.options.result import BaselineOption, RunOutput
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.narration import narrate_keys
from adapt.cli.terminal.output import for_people, is_for_programs
from adapt.cli.terminal.stages import stages
from adapt.core.engines.names import Engine

if TYPE_CHECKING:
    from adapt.core.replan.replay import ReplanRun


PARTITIONS = 64
"""Partitions of each worker under Flux."""


@short_help(
    *("channels", "schedule", "trigger", "period", "window", "out"),
    *("engine", "tolerance", "speedup", "service_time", "format"),
)
def replan(
    trace: TracePath,
    output: RunOutput,
    loop: LoopOptions,
    plans: RecipeOptions,
    trouble: TroubleOptions,
    stage: StageOptions,
    engine: EngineOption = Engine.SPARK,
    speedup: SpeedupOption = 1.0,
    baseline: BaselineOption = True,
) -> "ReplanRun":
    """Replay a trace live: count keys, decide on a new plan, migrate.

    A splitter counts recent rows and routes by the plan in force. When a trigger fires, it builds a plan from what it
    counted, and keys migrate with their state while rows arrive. Decisions use earlier rows alone; case in-sample has
    one plan, built from all rows.

    Example: adapt replay replan web.trace --channels 8 --period 6h --speedup 20000
    """
    from adapt.core.replan.tables import folded
    from adapt.core.stage.input.mini_partitions import MiniPartitions
    from adapt.traces.replay.replan import ReplanOptions, replay_replan_trace
    from adapt.traces.store.trace import open_trace

    output.check()
    check_speedup(speedup)
    opened = open_trace(trace)
    narrate_keys(trace, engine)
    replan = loop.replan(plans.recipe(engine), opened, by_cost=stage.costs.by_cost(opened), compares=baseline)
    placed = MiniPartitions(replan.pool, PARTITIONS, partitioner=replan.loop.static().plans[0][1].partitioner())
    with stages() as progress:
        run = replay_replan_trace(
            opened,
            output.out,
            stage.settings(placed, trouble),
            ReplanOptions(stage.reading(opened, placed, speedup), replan),
            force=output.force,
            command=command_line(),
            progress=progress,
        )
    every = is_for_programs(output.format)
    decisions = run.tables()["decisions"] if every else for_people(folded(run.outcomes), output.format)
    stage.costs.say_what_is_assumed(opened)
    output.show([*run.shown(), decisions], run.as_data())
    return run
