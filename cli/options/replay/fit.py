"""Options of `adapt replay fit`: who plans drops, and how."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from adapt.cli.options import completion
from adapt.cli.options.groups import setting
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.fit.network.names import DropPlanner, Drops, Flow, Grid
from adapt.core.units.durations import duration_us

if TYPE_CHECKING:
    from adapt.core.fit.network.settings import SheddingSettings

PLANNING_PANEL = "Planning, where it is not to be as the network's [settings] say"


@dataclass(frozen=True, slots=True)
class RunningOptions:
    """Who plans drops, and how the network runs."""

    planner: list[str] | None = setting(
        None,
        f"What plans drops, one case each: {', '.join(DropPlanner)}; that of the network if left out.",
        "exact,c-fit",
        completion=completion.planners,
    )
    plans: Path | None = setting(
        None, "Where plans made in advance are kept: made and put there first, or used if there are any.", "DIR"
    )
    speedup: float = setting(1.0, "Trace seconds that pass in a second of the network.", "X")
    flow: Flow = setting(Flow.TUPLES, "Tuple by tuple with coins and queues, or as fluid.")
    seed: int = setting(0, "Of all coins.", "S")
    true_costs: float = setting(1.0, "Costs are so many times those that plans go by.", "X")

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

    tick: str | None = setting(None, "How often a plan is made.", "1s")
    epsilon: float | None = setting(None, "What plans made in advance may lose of the best score.", "E")
    headroom: float | None = setting(None, "Part of every capacity that plans leave free.", "H")
    lag: int | None = setting(None, "Plans know rates up to so many ticks before.", "TICKS")
    smoothing: float | None = setting(None, "Weight of the newest rates; 1 goes by them alone.", "W")
    min_change: float | None = setting(None, "Smaller changes of a share are not applied.", "C")
    feedback: bool | None = setting(None, "Correct capacities by the utilization that is measured.")
    drops: Drops | None = setting(
        None, "What is dropped before aggregates: tuples, or windows, so that every result is of all its tuples."
    )
    batch: int | None = setting(None, "Windows that live or die together.", "N")

    def settings(self, said: "SheddingSettings") -> "SheddingSettings":
        """The settings of the network, with what options say instead."""
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

    grid: Grid = setting(Grid.SAFE, "Which rates stand in feasible input tables.")
    distance: float = setting(
        0.0, "Part of the score that tables of d-fit may be off once told, so that less is told when they change.", "D"
    )
    most_plans: int | None = setting(
        None, "Tables made in advance have no more plans, whatever epsilon that takes; it is told.", "N"
    )
    workload: str | None = setting(
        None,
        "How likely rates are, for solver-w: a column of tuples/s for each input; or exponential, around the"
        " rates of the network. As they are in the trace, if left out.",
        "RATES.csv",
    )
