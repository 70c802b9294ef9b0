"""Options of `adapt replay fit`: who plans drops, what nodes tell each other, and what they refuse."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options import completion
from adapt.cli.options.groups import setting
from adapt.cli.options.replay.shedding import SHED_PANEL, DropCurveOption, MinDropOption
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.fit.network.names import DropPlanner, Drops, Flow, Grid
from adapt.core.stage.conditions.names import DropCurve
from adapt.core.units.durations import duration_us

if TYPE_CHECKING:
    from adapt.core.fit.distributed.exchange import Transport
    from adapt.core.fit.network.settings import SheddingSettings
    from adapt.core.stage.conditions.shed_factor import Overload

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
        given = {name: value for name, value in asdict(self).items() if value is not None}
        if self.tick is not None:
            given["tick"] = duration_us(self.tick)
        fields = {"tick": "tick_us", "lag": "lag_ticks", "min_change": "min_rate_change"}
        try:
            return replace(said, **{fields.get(name, name): value for name, value in given.items()})
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


@dataclass(frozen=True, slots=True)
class MessageOptions:
    """What nodes tell each other, and what messages meet."""

    PANEL: ClassVar[str] = "What nodes of d-fit and d-fit-cuts tell each other"
    message_delay: str | None = setting(
        None,
        "How long messages between nodes take. Nodes begin to tell each other when the trace begins, and plan"
        " by what they have heard.",
        "2s",
    )
    message_jitter: str | None = setting(
        None, "What messages take longer at most, so that they overtake each other.", "1s"
    )
    message_loss: float | None = setting(
        None, "Part of the messages that is lost; they are sent again until word comes back.", "P"
    )
    trusting: bool = setting(
        False,
        "Nodes let in whatever others send, as in the paper: while tables are stale, they are overloaded."
        " Else they drop at their entrance what others should have.",
        None,
        "--trusting",
    )

    def transport(self) -> "Transport | None":
        """What messages meet, if anything is said of it; they are sent again after the longest way there and back."""
        from adapt.core.fit.distributed.exchange import Transport

        times = (self.message_delay, self.message_jitter)
        if times == (None, None) and self.message_loss is None:
            return None
        delay_s, jitter_s = (0.0 if text is None else duration_us(text) / 1e6 for text in times)
        resend_s = max(2 * (delay_s + jitter_s), Transport().resend_s)
        return Transport(delay_s, jitter_s, self.message_loss or 0.0, resend_s)


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """What a node refuses by itself."""

    PANEL: ClassVar[str] = SHED_PANEL
    queue: int | None = setting(
        None, "A node refuses tuples by the shed factor, the more of them the nearer its queue is to N.", "N"
    )
    tau2: float = setting(0.8, "Part of the queue below which it refuses none.", "T")
    min_drop: MinDropOption = 0.0
    drop_curve: DropCurveOption = DropCurve.LINEAR

    def overload(self) -> "Overload | None":
        """The shed factor of a node's queue, if it has one."""
        from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor

        factor = ShedFactor(self.tau2, self.min_drop, self.drop_curve)
        return None if self.queue is None else Overload(factor, self.queue, 1.0)
