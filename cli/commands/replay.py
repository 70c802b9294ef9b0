"""`adapt replay`: a trace driven through mechanisms, and what happens over time."""

from pathlib import Path
from typing import Annotated

import typer

from adapt.cli.commands.replay_compare import compare
from adapt.cli.commands.replay_elastic import elastic
from adapt.cli.commands.replay_fit import fit
from adapt.cli.commands.replay_flux import flux
from adapt.cli.commands.replay_ordered import ordered
from adapt.cli.options.common import (
    ForceOption,
    HashOption,
    ResourcesOption,
    SigmaOption,
    ToleranceOption,
    TracePath,
    TrackOption,
    UtilityOption,
    WeightOption,
    check_channels,
    command_line,
)
from adapt.cli.options.schemes import SchemeChoice
from adapt.cli.terminal.help import Command, Group
from adapt.cli.terminal.output import Format, FormatOption, for_people, narrate_written, show
from adapt.cli.terminal.stages import stages
from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.schemes.names import DEFAULT_CONSTRUCTION, Construction, Scheme, UtilityName

app = typer.Typer(
    cls=Group, help="Drive a trace through a mechanism and see what happens over time.", no_args_is_help=True
)


@app.callback()
def replay() -> None:
    """Drive a trace through a mechanism and see what happens over time."""


@app.command(cls=Command)
def repartition(
    trace: TracePath,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="RUN", help="Where to keep the run.")] = None,
    channels: Annotated[int | None, typer.Option("--channels", metavar="N", help="Channels all the time.")] = None,
    schedule: Annotated[
        str, typer.Option("--schedule", metavar="0h:N,6h:N", help="Channels by the time since the first row.")
    ] = "",
    period: Annotated[
        str,
        typer.Option("--period", metavar="7d|1000rows", help="How often keys are counted and the plan is built anew."),
    ] = "1h",
    scheme: Annotated[SchemeChoice, typer.Option("--scheme", help="How keys are placed.")] = Scheme.HYBRID,
    construction: Annotated[
        Construction, typer.Option("--construction", help="How heavy keys are placed.")
    ] = DEFAULT_CONSTRUCTION,
    weight: WeightOption = None,
    resources: ResourcesOption = "LLL",
    tolerance: ToleranceOption = "1.2",
    sigma: SigmaOption = 0.1,
    utility: UtilityOption = UtilityName.APM,
    track: TrackOption = None,
    hash: HashOption = HashName.MURMUR3,
    format: FormatOption = Format.TABLE,
    force: ForceOption = False,
) -> None:
    """Replay a trace period by period, with a new plan for each.

    Each period is routed by the plan in force and measured; the next plan is built from its keys, and what moves is
    charged. The first period runs on hashing alone.

    Example: adapt replay repartition web.trace --channels 8 --period 6h -o web.run
    """
    from time import perf_counter

    from adapt.core.partitioning.build import Recipe
    from adapt.core.partitioning.measures.resources import Resources
    from adapt.core.partitioning.repartition.channel_schedule import Schedule
    from adapt.core.units.row_or_time_span import Length
    from adapt.traces.replay.repartition import replay_trace
    from adapt.traces.store.trace import open_trace
    from adapt.traces.store.whole import check_folder_free

    if (channels is None) == (not schedule):
        raise UsageError("give either --channels N or --schedule 0h:N,6h:N")
    if channels is not None:
        check_channels(channels)
    plan = Schedule.parse(schedule) if schedule else Schedule.fixed(channels or 0)
    length = Length.parse(period)
    recipe = Recipe(scheme, construction, Resources.parse(resources, tolerance, sigma), utility, track, hash)
    if out is not None:
        check_folder_free(out, force=force)
    opened = open_trace(trace)
    with stages() as progress:
        run = replay_trace(
            opened,
            out,
            length,
            plan,
            recipe,
            weight=weight,
            clock=perf_counter,
            force=force,
            command=command_line(),
            progress=progress,
        )
    if out is not None:
        narrate_written(out)
    show([run.summary(), for_people(run.tables()["periods"], format)], format, run.as_data())


app.command(cls=Command)(flux)
app.command(cls=Command)(elastic)
app.command(cls=Command)(fit)
app.command(cls=Command)(ordered)
app.command(cls=Command)(compare)
