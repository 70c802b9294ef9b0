"""Options of `adapt replay fit`: who plans drops, and how."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from adapt.cli.options import completion
from adapt.cli.options.groups import option
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
        option(
            f"What plans drops, one case each: {', '.join(DropPlanner)}; that of the network if left out.",
            "exact,c-fit",
            completion=completion.planners,
        ),
    ] = None
    plans: Annotated[
        Path | None,
        option("Where plans made in advance are kept: made and put there first, or used if there are any.", "DIR"),
    ] = None
    speedup: Annotated[float, option("Trace seconds that pass in a second of the network.", "X")] = 1.0
    flow: Annotated[Flow, option("Tuple by tuple with coins and queues, or as fluid.")] = Flow.TUPLES
    seed: Annotated[int, option("Of all coins.", "S")] = 0
    true_costs: Annotated[float, option("Costs are so many times those that plans go by.", "X")] = 1.0

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

    PANEL: ClassVar[str] = PLANNING_PANEL

    tick: Annotated[str | None, option("How often a plan is made.", "1s")] = None
    epsilon: Annotated[float | None, option("What plans made in advance may lose of the best score.", "E")] = None
    headroom: Annotated[float | None, option("Part of every capacity that plans leave free.", "H")] = None
    lag: Annotated[int | None, option("Plans know rates up to so many ticks before.", "TICKS")] = None
    smoothing: Annotated[float | None, option("Weight of the newest rates; 1 goes by them alone.", "W")] = None
    min_change: Annotated[float | None, option("Smaller changes of a share are not applied.", "C")] = None
    feedback: Annotated[bool | None, option("Correct capacities by the utilization that is measured.")] = None
    drops: Annotated[
        Drops | None,
        option("What is dropped before aggregates: tuples, or windows, so that every result is of all its tuples."),
    ] = None
    batch: Annotated[int | None, option("Windows that live or die together.", "N")] = None

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

    PANEL: ClassVar[str] = PLANNING_PANEL

    grid: Annotated[Grid, option("Which rates stand in feasible input tables.")] = Grid.SAFE
    distance: Annotated[
        float,
        option(
            "Part of the score that tables of d-fit may be off once told, so that less is told when they change.", "D"
        ),
    ] = 0.0
    most_plans: Annotated[
        int | None, option("Tables made in advance have no more plans, whatever epsilon that takes; it is told.", "N")
    ] = None
    workload: Annotated[
        str | None,
        option(
            "How likely rates are, for solver-w: a column of tuples/s for each input; or exponential, around the"
            " rates of the network. As they are in the trace, if left out.",
            "RATES.csv",
        ),
    ] = None
