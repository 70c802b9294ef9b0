"""Options of `adapt replay fit`: who plans drops, and how."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adapt.cli.options import completion
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.fit.network.names import DropPlanner, Drops, Flow, Grid

if TYPE_CHECKING:
    from adapt.core.fit.network.settings import SheddingSettings

PLANNING_PANEL = "Planning, where it is not to be as the network's [settings] say"


@dataclass(frozen=True, slots=True)
class RunningOptions:
    """Who plans drops, and how the network runs."""

    planner: Annotated[
        list[str] | None,
        typer.Option(
            "--planner",
            metavar="exact,c-fit",
            autocompletion=completion.planners,
            help=f"What plans drops, one case each: {', '.join(DropPlanner)}; that of the network if left out.",
        ),
    ] = None
    plans: Annotated[
        Path | None,
        typer.Option(
            "--plans",
            metavar="DIR",
            help="Where plans made in advance are kept: made and put there first, or used if there are any.",
        ),
    ] = None
    speedup: Annotated[
        float, typer.Option("--speedup", metavar="X", help="Trace seconds that pass in a second of the network.")
    ] = 1.0
    flow: Annotated[Flow, typer.Option("--flow", help="Tuple by tuple with coins and queues, or as fluid.")] = (
        Flow.TUPLES
    )
    seed: Annotated[int, typer.Option("--seed", metavar="S", help="Of all coins.")] = 0
    true_costs: Annotated[
        float,
        typer.Option("--true-costs", metavar="X", help="Costs are so many times those that plans go by."),
    ] = 1.0

    def planners(self) -> tuple[DropPlanner, ...]:
        """The planners that are named, by several options or with commas."""
        names = [name.strip() for text in self.planner or () for name in text.split(",")]
        for name in names:
            if name not in list(DropPlanner):
                raise UsageError(f"--planner: there is no planner {name!r}{did_you_mean(name, DropPlanner)}")
        return tuple(DropPlanner(name) for name in names)


@dataclass(frozen=True, slots=True)
class PlanningOptions:
    """Settings of the network that a run may override."""

    tick: Annotated[
        str | None,
        typer.Option("--tick", metavar="1s", help="How often a plan is made.", rich_help_panel=PLANNING_PANEL),
    ] = None
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            metavar="E",
            help="What plans made in advance may lose of the best score.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None
    headroom: Annotated[
        float | None,
        typer.Option(
            "--headroom",
            metavar="H",
            help="Part of every capacity that plans leave free.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None
    lag: Annotated[
        int | None,
        typer.Option(
            "--lag",
            metavar="TICKS",
            help="Plans know rates up to so many ticks before.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None
    smoothing: Annotated[
        float | None,
        typer.Option(
            "--smoothing",
            metavar="W",
            help="Weight of the newest rates; 1 goes by them alone.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None
    min_change: Annotated[
        float | None,
        typer.Option(
            "--min-change",
            metavar="C",
            help="Smaller changes of a share are not applied.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None
    feedback: Annotated[
        bool | None,
        typer.Option(
            "--feedback/--no-feedback",
            help="Correct capacities by the utilization that is measured.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None
    drops: Annotated[
        Drops | None,
        typer.Option(
            "--drops",
            help="What is dropped before aggregates: tuples, or windows, so that every result is of all its tuples.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None
    batch: Annotated[
        int | None,
        typer.Option(
            "--batch",
            metavar="N",
            help="Windows that live or die together.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None

    def settings(self, said: "SheddingSettings") -> "SheddingSettings":
        """The settings of the network, with what options say instead."""
        from dataclasses import replace

        from adapt.core.units.durations import duration_us

        given: dict[str, Any] = {
            "tick_us": None if self.tick is None else duration_us(self.tick),
            "epsilon": self.epsilon,
            "headroom": self.headroom,
            "lag_ticks": self.lag,
            "smoothing": self.smoothing,
            "min_rate_change": self.min_change,
            "feedback": self.feedback,
            "drops": self.drops,
            "batch": self.batch,
        }
        try:
            return replace(said, **{name: value for name, value in given.items() if value is not None})
        except BadInput as error:
            raise UsageError(str(error)) from None


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Plans and tables made in advance."""

    grid: Annotated[
        Grid,
        typer.Option("--grid", help="Which rates stand in feasible input tables.", rich_help_panel=PLANNING_PANEL),
    ] = Grid.SAFE
    distance: Annotated[
        float,
        typer.Option(
            "--distance",
            metavar="D",
            help="Part of the score that tables of d-fit may be off once told, so that less is told when they change.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = 0.0
    most_plans: Annotated[
        int | None,
        typer.Option(
            "--most-plans",
            metavar="N",
            help="Tables made in advance have no more plans, whatever epsilon that takes; it is told.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None
    workload: Annotated[
        str | None,
        typer.Option(
            "--workload",
            metavar="RATES.csv",
            help="How likely rates are, for solver-w: a column of tuples/s for each input; or exponential, around the"
            " rates of the network. As they are in the trace, if left out.",
            rich_help_panel=PLANNING_PANEL,
        ),
    ] = None
