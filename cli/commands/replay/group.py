"""`adapt replay`: replays of a trace through mechanisms."""

from time import perf_counter
from typing import TYPE_CHECKING

import typer

from adapt.cli.commands.replay.compare import compare
from adapt.cli.commands.replay.elastic import elastic
from adapt.cli.commands.replay.fit import fit
from adapt.cli.commands.replay.flux import flux
from adapt.cli.commands.replay.ordered import ordered
from adapt.cli.commands.replay.replan import replan
from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.counting import WeightOption
from adapt.cli.options.groups import grouped, short_help
from adapt.cli.options.placement import EngineOption
from adapt.cli.options.replay.repartition import PeriodOptions, RecipeOptions
from adapt.cli.options.result import BaselineOption, RunOutput
from adapt.cli.terminal.command_line import command_line
from adapt.cli.terminal.help import Command, Group
from adapt.cli.terminal.narration import narrate_keys
from adapt.cli.terminal.output import for_people
from adapt.cli.terminal.stages import stages
from adapt.core.engines.names import Engine
from adapt.core.units.row_or_time_span import Length

if TYPE_CHECKING:
    from adapt.core.partitioning.repartition.repartition import RepartitionRun

app = typer.Typer(cls=Group, help="Replay a trace through a mechanism, measured over time.", no_args_is_help=True)


@short_help(
    *("channels", "schedule", "period", "out", "scheme", "construction"),
    *("engine", "max_pins", "weight", "format", "force"),
)
def repartition(
    trace: TracePath,
    output: RunOutput,
    periods: PeriodOptions,
    plans: RecipeOptions,
    weight: WeightOption = None,
    engine: EngineOption = Engine.SPARK,
    baseline: BaselineOption = True,
) -> "RepartitionRun":
    """Replay a trace period by period, with a new plan for each.

    Each period is routed by the current plan and measured; its keys then build the next plan, and the state moved is
    counted. The first period uses hashing alone. Doing nothing, with the engine's own placement, is measured too.

    Example: adapt replay repartition web.trace --channels 8 --period 6h -o web.run
    """

    from adapt.traces.replay.repartition import RepartitionOptions, replay_trace
    from adapt.traces.store.trace import open_trace

    schedule, length = periods.channel_schedule(), Length.parse(periods.period)
    options = RepartitionOptions(length, schedule, plans.recipe(), weight, engine if baseline else None)
    output.check()
    opened = open_trace(trace)
    narrate_keys(trace, engine)
    with stages() as progress:
        run = replay_trace(
            opened,
            output.out,
            options,
            clock=perf_counter,
            force=output.force,
            command=command_line(),
            progress=progress,
        )
    output.show([run.summary(), for_people(run.tables()["periods"], output.format)], run.as_data())
    return run


for command in (repartition, replan, flux, elastic, fit, ordered, compare):
    app.command(cls=Command)(grouped(command))
