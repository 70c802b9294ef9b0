"""`adapt replay`: replays of a trace through mechanisms."""

from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

import typer

from adapt.cli.commands.replay.compare import compare
from adapt.cli.commands.replay.elastic import elastic
from adapt.cli.commands.replay.fit import fit
from adapt.cli.commands.replay.flux import flux
from adapt.cli.commands.replay.ordered import ordered
from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.counting import WeightOption
from adapt.cli.options.groups import grouped, setting, short_help
from adapt.cli.options.placement import Today
from adapt.cli.options.replay.repartition import LiveOptions, RecipeOptions, ReplanOptions
from adapt.cli.options.result import RunOutput
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.help import Command, Group
from adapt.cli.terminal.narration import narrate_keys
from adapt.cli.terminal.stages import stages
from adapt.core.stream import Weight

if TYPE_CHECKING:
    from adapt.core.repartition.replay import RepartitionRun

app = typer.Typer(cls=Group, help="Try out plans, moves, scaling and drops on a trace.", no_args_is_help=True)


@short_help(
    *("channels", "schedule", "period", "trigger", "live", "out", "scheme", "construction"),
    *("engine", "weight", "format"),
)
def repartition(
    trace: TracePath,
    output: RunOutput,
    replans: ReplanOptions,
    plans: RecipeOptions,
    stage: LiveOptions,
    today: Today,
    weight: WeightOption = None,
    live: bool = setting(False, "Also simulate a stage, in which keys migrate while rows arrive.", None, "--live"),
) -> "RepartitionRun":
    """Rebuild the plan over and over, and say whether that pays.

    Rows are routed by the current plan and measured; recent rows build the next plan, and the state moved is counted.
    Decisions use earlier rows alone, and the first period uses hashing alone. Today's placement, that
    of the engine, is measured too. With --live, a simulated stage runs the same decisions, next to today's placement,
    Flux, and one plan built from all rows.

    Example: adapt replay repartition web.trace --channels 8 --period 6h -o web.run
    """

    from adapt.traces.replay.repartition import RepartitionReplay, weighed
    from adapt.traces.replay.replay import replay
    from adapt.traces.store.trace import open_trace

    replan = replans.replan(plans, today)
    output.check()
    opened = open_trace(trace)
    narrate_keys(trace, today.engine)
    staged = None
    if live:
        weight = weight or (Weight.COST if stage.stage.costs.by_cost(opened) else Weight.COUNT)
        replan = weighed(replan, opened, weight)
        staged = stage.live(opened, replan)
    else:
        replan = weighed(replan, opened, weight)
    replan = replace(replan, today=today.engine, costs=stage.stage.costs.costs())
    with stages() as progress:
        run = replay(
            opened,
            RepartitionReplay(replan, staged, perf_counter),
            output.out,
            force=output.force,
            command=command_line(),
            progress=progress,
        )
    if live:
        stage.stage.costs.say_what_is_assumed(opened)
    output.show_run(run, opened)
    return run


for command in (repartition, flux, elastic, fit, ordered, compare):
    app.command(cls=Command)(grouped(command))
