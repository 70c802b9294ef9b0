"""`adapt replay fit`: a trace through a query network that sheds load, with one planner or several."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adapt.cli.options import completion
from adapt.cli.options.common import ForceOption, TracePath, command_line
from adapt.cli.options.stage import SHED_PANEL, LeastShedOption, ShedFormOption
from adapt.cli.terminal.output import Format, FormatOption, narrate, narrate_written, show
from adapt.cli.terminal.stages import stages
from adapt.core.errors import UsageError, did_you_mean
from adapt.core.fit.network.names import DropPlanner, Drops, Flow, Grid
from adapt.core.stage.conditions.names import SheddingForm

if TYPE_CHECKING:
    from adapt.core.fit.distributed.exchange import Transport
    from adapt.core.fit.network.settings import SheddingSettings
    from adapt.core.stage.conditions.shed_factor import Overload

PLANNING_PANEL = "Planning, where it is not to be as the network's [settings] say"
MESSAGES_PANEL = "What nodes of d-fit and d-fit-cuts tell each other"


def fit(
    trace: TracePath,
    network: Annotated[
        Path, typer.Option("--network", "-n", metavar="N.toml", help="The query network, its inputs bound to rows.")
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="RUN", help="Where to keep the run.")] = None,
    planner: Annotated[
        list[str] | None,
        typer.Option(
            "--planner",
            metavar="exact,c-fit",
            autocompletion=completion.planners,
            help=f"What plans drops, one case each: {', '.join(DropPlanner)}; that of the network if left out.",
        ),
    ] = None,
    plans: Annotated[
        Path | None,
        typer.Option(
            "--plans",
            metavar="DIR",
            help="Where plans made in advance are kept: made and put there first, or used if there are any.",
        ),
    ] = None,
    speedup: Annotated[
        float, typer.Option("--speedup", metavar="X", help="Trace seconds that pass in a second of the network.")
    ] = 1.0,
    flow: Annotated[
        Flow, typer.Option("--flow", help="Tuple by tuple with coins and queues, or as fluid.")
    ] = Flow.TUPLES,
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Of all coins.")] = 0,
    true_costs: Annotated[
        float,
        typer.Option("--true-costs", metavar="X", help="Costs are so many times those that plans go by."),
    ] = 1.0,
    tick: Annotated[
        str | None,
        typer.Option("--tick", metavar="1s", help="How often a plan is made.", rich_help_panel=PLANNING_PANEL),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            metavar="E",
            help="What plans made in advance may lose of the best score.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None,
    headroom: Annotated[
        float | None,
        typer.Option(
            "--headroom",
            metavar="H",
            help="Part of every capacity that plans leave free.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None,
    lag: Annotated[
        int | None,
        typer.Option(
            "--lag",
            metavar="TICKS",
            help="Plans know rates up to so many ticks before.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None,
    smoothing: Annotated[
        float | None,
        typer.Option(
            "--smoothing",
            metavar="W",
            help="Weight of the newest rates; 1 goes by them alone.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None,
    min_change: Annotated[
        float | None,
        typer.Option(
            "--min-change",
            metavar="C",
            help="Smaller changes of a share are not applied.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None,
    feedback: Annotated[
        bool | None,
        typer.Option(
            "--feedback/--no-feedback",
            help="Correct capacities by the utilization that is measured.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None,
    drops: Annotated[
        Drops | None,
        typer.Option(
            "--drops",
            help="What is dropped before aggregates: tuples, or windows, so that every result is of all its tuples.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None,
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch",
            metavar="N",
            help="Windows that live or die together.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None,
    grid: Annotated[
        Grid,
        typer.Option("--grid", help="Which rates stand in feasible input tables.", rich_help_panel=PLANNING_PANEL),
    ] = Grid.SAFE,
    distance: Annotated[
        float,
        typer.Option(
            "--distance",
            metavar="D",
            help="Part of the score that tables of d-fit may be off once told, so that less is told when they change.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = 0.0,
    most_plans: Annotated[
        int | None,
        typer.Option(
            "--most-plans",
            metavar="N",
            help="Tables made in advance have no more plans, whatever epsilon that takes; it is told.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None,
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            metavar="RATES.csv",
            help="How likely rates are, for solver-w: a column of tuples/s for each input; or exponential, around the"
            " rates of the network. As they are in the trace, if left out.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None,
    message_delay: Annotated[
        str | None,
        typer.Option(
            "--message-delay",
            metavar="2s",
            help="How long messages between nodes take. Nodes begin to tell each other when the trace begins, and plan"
            " by what they have heard.",
            rich_help_panel=MESSAGES_PANEL,
        ),
    ] = None,
    message_jitter: Annotated[
        str | None,
        typer.Option(
            "--message-jitter",
            metavar="1s",
            help="What messages take longer at most, so that they overtake each other.",
            rich_help_panel=MESSAGES_PANEL,
        ),
    ] = None,
    message_loss: Annotated[
        float | None,
        typer.Option(
            "--message-loss",
            metavar="P",
            help="Part of the messages that is lost; they are sent again until word comes back.",
            rich_help_panel=MESSAGES_PANEL,
        ),
    ] = None,
    trusting: Annotated[
        bool,
        typer.Option(
            "--trusting",
            help="Nodes let in whatever others send, as in the paper: while tables are stale, they are overloaded."
            " Else they drop at their entrance what others should have.",
            rich_help_panel=MESSAGES_PANEL,
        ),
    ] = False,
    queue: Annotated[
        int | None,
        typer.Option(
            "--queue",
            metavar="N",
            help="A node refuses tuples by the shed factor, the more of them the nearer its queue is to N.",
            rich_help_panel=SHED_PANEL,
        ),
    ] = None,
    tau2: Annotated[
        float,
        typer.Option(
            "--tau2", metavar="T", help="Part of the queue below which it refuses none.", rich_help_panel=SHED_PANEL
        ),
    ] = 0.8,
    least_shed: LeastShedOption = 0.0,
    shed_form: ShedFormOption = SheddingForm.LINEAR,
    format: FormatOption = Format.TABLE,
    force: ForceOption = False,
) -> None:
    """Run a trace through a query network, tick by tick, dropping what its nodes cannot do.

    Every planner plans for its own copy of the network, which the same rows pass with the same coins. What is kept
    beyond the capacity of a node waits in its queue. Scores are held against the best of each tick.

    Example: adapt replay fit web.trace --network shop.toml --planner exact,c-fit -o web.fit
    """
    from time import perf_counter

    from adapt.core.fit.planners.solver import MOST_PLANS
    from adapt.core.fit.replay.replay import FitOptions
    from adapt.core.units.durations import duration_us
    from adapt.traces.replay.fit import open_network, replay_fit_trace
    from adapt.traces.replay.workloads import open_workload
    from adapt.traces.store.trace import open_trace
    from adapt.traces.store.whole import check_folder_free

    if out is not None:
        check_folder_free(out, force=force)
    named = open_network(network)
    given = {
        "tick_us": None if tick is None else duration_us(tick),
        "epsilon": epsilon,
        "headroom": headroom,
        "lag_ticks": lag,
        "smoothing": smoothing,
        "min_rate_change": min_change,
        "feedback": feedback,
        "drops": drops,
        "batch": batch,
    }
    likely = None if workload is None else open_workload(workload, named.read.network)
    settings = _settings(named.read.settings, {name: value for name, value in given.items() if value is not None})
    options = FitOptions(
        planners=_planners(planner or []) or (settings.planner,),
        settings=settings,
        flow=flow,
        seed=seed,
        cost_scale=true_costs,
        overload=_overload(queue, tau2, least_shed, shed_form),
        grid=grid,
        distance=distance,
        transport=_transport(message_delay, message_jitter, message_loss),
        trusting=trusting,
        most_plans=MOST_PLANS if most_plans is None else most_plans,
        workload=None if likely is None else likely.workload,
    )
    opened, kept_before = open_trace(trace), plans is not None and plans.exists()
    with stages() as progress:
        run = replay_fit_trace(
            opened,
            out,
            named,
            options,
            clock=perf_counter,
            speedup=speedup,
            plans=plans,
            workload_told=None if likely is None else likely.told,
            force=force,
            command=command_line(),
            progress=progress,
            warn=lambda sentence: narrate(f"warning: {sentence}"),
        )
    for written in (plans if not kept_before else None, out):
        if written is not None:
            narrate_written(written)
    show(list(run.shown()), format, run.as_data())


def _planners(texts: list[str]) -> tuple[DropPlanner, ...]:
    """The planners that are named, by several options or with commas."""
    names = [name.strip() for text in texts for name in text.split(",")]
    for name in names:
        if name not in list(DropPlanner):
            raise UsageError(f"--planner: there is no planner {name!r}{did_you_mean(name, DropPlanner)}")
    return tuple(DropPlanner(name) for name in names)


def _settings(said: "SheddingSettings", given: dict[str, Any]) -> "SheddingSettings":
    """The settings of the network, with what options say instead."""
    from dataclasses import replace

    from adapt.core.errors import BadInput

    try:
        return replace(said, **given)
    except BadInput as error:
        raise UsageError(str(error)) from None


def _transport(delay: str | None, jitter: str | None, loss: float | None) -> "Transport | None":
    """What messages meet, if anything is said of it; they are sent again after the longest way there and back."""
    from adapt.core.fit.distributed.exchange import Transport
    from adapt.core.units.durations import duration_us

    if delay is None and jitter is None and loss is None:
        return None
    delay_s, jitter_s = (0.0 if text is None else duration_us(text) / 1e6 for text in (delay, jitter))
    return Transport(delay_s, jitter_s, loss or 0.0, max(2 * (delay_s + jitter_s), Transport().resend_s))


def _overload(queue: int | None, tau2: float, least_shed: float, form: SheddingForm) -> "Overload | None":
    from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor

    factor = ShedFactor(tau2, least_shed, form)
    return None if queue is None else Overload(factor, queue, 1.0)
