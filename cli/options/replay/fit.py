"""Options of `adapt replay fit`: planners, drop plans, messages, queues."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from adapt.cli.options import completion
from adapt.cli.options.amounts import amount_of
from adapt.cli.options.groups import option, setting
from adapt.core.errors import BadInput, UsageError, did_you_mean
from adapt.core.fit.network.names import PRECOMPUTED, DropPlanner, Drops, Flow, Grid, RateSteps
from adapt.core.stage.conditions.names import DropCurve
from adapt.core.units.amounts import bytes_of
from adapt.core.units.durations import duration_us

if TYPE_CHECKING:
    from adapt.core.fit.network.network import Network
    from adapt.core.fit.network.settings import SheddingSettings
    from adapt.core.fit.network.true_values import TrueSource
    from adapt.core.fit.observing import Observing
    from adapt.core.stage.conditions.shed_factor import Overload


_OF_TABLES = f"--planner {'|'.join(PRECOMPUTED)}"


@dataclass(frozen=True, slots=True)
class RunningOptions:
    """What plans drops, and how the network runs."""

    planner: list[str] | None = setting(
        None,
        f"Drop planners to compare. Default: none, and the network file's. Available: {', '.join(DropPlanner)}.",
        "exact,c-fit",
        completion=completion.planners,
    )
    plans: Path | None = setting(None, "Precomputed drop plans: reused if the folder exists, else written.", "DIR")
    rules: Path | None = setting(
        None, "Write the best plan over all rates as rules: a TOML file, and a Python module that applies it.", "DIR"
    )
    speedup: float = setting(1.0, "Trace seconds per second in the network.", "RATIO")
    flow: Flow = setting(Flow.TUPLES, "Simulate single tuples with queues, or a fluid.")
    seed: int = setting(0, "Random seed.", "SEED")
    utilization: Path | None = setting(
        None,
        "Fit the operators' costs to measurements. A CSV with tuples/s of each input and utilization of each node.",
        "FILE.csv",
    )
    true_costs: float = setting(1.0, "Actual cost per tuple / cost in the network file.", "RATIO")
    true: str | None = setting(
        None,
        "True costs and selectivities, which change over time. A TOML file of changes, or drawn at random: drift:RATIO,"
        " jump:RATIO and noise:RATIO, separated by commas, then @SEED.",
        "FILE.toml",
    )

    def truth(self, network: "Network") -> "TrueSource | None":
        """The true values; None if not given."""
        from adapt.traces.replay.files.workloads import open_true

        return None if self.true is None else open_true(self.true, network)

    def planners(self) -> tuple[DropPlanner, ...]:
        """The planners named, by repeated options or with commas."""
        names = [name.strip() for text in self.planner or () for name in text.split(",")]
        for name in names:
            if name not in list(DropPlanner):
                raise UsageError(f"--planner {name!r} does not exist{did_you_mean(name, DropPlanner)}")
        return tuple(DropPlanner(name) for name in names)


@dataclass(frozen=True, slots=True)
class PlanningOptions:
    """The query network, and settings of its file that a run overrides."""

    OPTION: ClassVar[str] = "--network"
    SHORT: ClassVar[tuple[str, ...]] = ("-n",)
    HEAD: ClassVar[str] = "network"
    network: Annotated[Path, option("Query network file. Keys override its [settings].", "N.toml")]
    tick: str | None = setting(None, "Planning interval.", "1s")
    epsilon: float | None = setting(
        None,
        "Score that precomputed plans may lose, as a share of the best; with d-fit only the grid of its tables.",
        "RATIO",
        needs=_OF_TABLES,
    )
    headroom: float | None = setting(None, "Share of every capacity that plans leave free.", "RATIO")
    lag: int | None = setting(None, "Age of the newest input rates that a plan knows.", "TICKS")
    smoothing: float | None = setting(
        None, "Weight of the newest rates in the moving average, up to 1 (no smoothing).", "RATIO"
    )
    min_rate_change: float | None = setting(
        None, "Raise the share kept on an arc only by more than this part of it.", "RATIO"
    )
    feedback: bool | None = setting(None, "Correct the nodes' capacities by their measured utilization.")
    drops: Drops | None = setting(
        None,
        "Drop random tuples before an aggregate, or whole windows. With whole windows, every result emitted is exact.",
    )
    batch: int | None = setting(
        None, "Consecutive windows to keep or drop together.", "WINDOWS", needs="--network:drops window"
    )

    def settings(self, said: "SheddingSettings") -> "SheddingSettings":
        """The settings of the network, overridden by the options given."""
        given = {name: value for name, value in asdict(self).items() if value is not None and name != self.HEAD}
        if self.tick is not None:
            given["tick"] = _micros("--network tick", self.tick)
        fields = {"tick": "tick_us", "lag": "lag_ticks"}
        try:
            return replace(said, **{fields.get(name, name): value for name, value in given.items()})
        except BadInput as error:
            field, _, required = str(error).removeprefix("settings: ").partition(" ")
            raise UsageError(f"--network {field.removesuffix('_ticks').replace('_', '-')} {required}") from None


@dataclass(frozen=True, slots=True)
class TableOptions:
    """Precomputed drop plans."""

    OPTION: ClassVar[str] = "--tables"
    HELP: ClassVar[str] = "How drop plans are precomputed as tables, and how large these are."
    grid: Grid = setting(
        Grid.GUARANTEED,
        "How densely c-fit and d-fit sample input rates. A guaranteed grid never loses more than epsilon: where a"
        " table cannot promise that, c-fit plans exactly.",
        needs="--planner c-fit|d-fit",
    )
    rate_steps: RateSteps = setting(
        RateSteps.FIXED,
        "Space the input rates of c-fit and d-fit at equal distances, or at equal ratios.",
        needs="--planner c-fit|d-fit",
    )
    distance: float = setting(
        0.0,
        "Score error accepted in the tables that d-fit nodes exchange, to send fewer rows.",
        "RATIO",
        needs="--planner d-fit",
    )
    table_bytes: str | None = setting(
        None,
        "Largest table that a d-fit node sends another. Rows that others represent go, with the least loss.",
        "30KiB",
        needs="--planner d-fit",
    )
    max_plans: int | None = setting(
        None, "Maximum plans per table. Epsilon is raised, and reported, until they suffice.", "PLANS", needs=_OF_TABLES
    )

    @property
    def sent_bytes(self) -> int | None:
        """The size of the largest table sent; None: unlimited."""
        return (
            None if self.table_bytes is None else round(amount_of("--tables table-bytes", self.table_bytes, bytes_of))
        )


@dataclass(frozen=True, slots=True)
class WorkloadOptions:
    """Rates for which plans are made."""

    OPTION: ClassVar[str] = "--workload"
    NEEDS: ClassVar[tuple[str, ...]] = (f"{_OF_TABLES} if *", "--planner solver-w if online|exponential")
    HEAD: ClassVar[str] = "workload"
    workload: str | None = setting(
        None,
        "Input rates that solver-w expects and tables cover: a CSV with a column of tuples/s per input. Or, for"
        " solver-w alone: `exponential`, with the rates in the network file as means; or `online`, learnt while the"
        " network runs. Default: the rates in the trace.",
        "RATES.csv",
    )
    learn: float = setting(
        0.0, "Make the plans from the rates in this first part of the trace, and replay the rest.", "RATIO"
    )
    rate_margin: float = setting(1.0, "Rates to cover, as a multiple of the highest known.", "RATIO", needs=_OF_TABLES)


@dataclass(frozen=True, slots=True)
class MessageOptions:
    """Messages between nodes, and with a coordinator."""

    OPTION: ClassVar[str] = "--messages"
    HELP: ClassVar[str] = "Messages between nodes, or with a coordinator, take time (default: none)."
    delay: str | None = setting(
        None,
        "Delay of messages. Rates and plans are exchanged from the start of the trace on; until then, nodes go on with"
        " what they know.",
        "2s",
    )
    trust_upstream: bool = setting(
        False,
        "Accept whatever other nodes send, as in the paper. Nodes are overloaded while tables are stale. By default,"
        " they drop the excess on arrival.",
        needs="--planner d-fit|d-fit-cuts",
    )

    @property
    def delay_s(self) -> float | None:
        """The delay of messages; None if not given."""
        return None if self.delay is None else _micros("--messages delay", self.delay) / 1e6


@dataclass(frozen=True, slots=True)
class ObservingOptions:
    """What nodes know of true costs and selectivities."""

    OPTION: ClassVar[str] = "--observe"
    HEAD: ClassVar[str] = "observe"
    observe: int | None = setting(
        None,
        "Plan with costs and selectivities that nodes estimate over this window while they run. Default: plan with"
        " those of the network file.",
        "TICKS",
    )
    important_change: str = setting(
        "20%",
        "Difference of an estimate from the value that plans use, above which they use it.",
        "PERCENT",
        needs="--observe",
    )

    def observing(self) -> "Observing | None":
        """How nodes observe; None if they do not."""
        from adapt.core.check.limit import percent_of
        from adapt.core.fit.observing import Observing

        important = amount_of("--observe important-change", self.important_change, percent_of)
        return None if self.observe is None else Observing(self.observe, important)


@dataclass(frozen=True, slots=True)
class QueueOptions:
    """What a node drops when its queue fills up."""

    OPTION: ClassVar[str] = "--queue"
    NEEDS: ClassVar[str] = "--flow tuples"
    HEAD: ClassVar[str] = "queue"
    queue: int | None = setting(
        None, "Queue capacity of a node, which drops more the fuller it is. Default: unbounded.", "TUPLES"
    )
    tau2: float = setting(0.8, "Share of the queue above which a node drops.", "RATIO", needs="--queue")
    min_drop: float = setting(0.0, "Drop probability at tau2.", "RATIO", needs="--queue")
    drop_curve: DropCurve = setting(
        DropCurve.LINEAR, "Shape of the drop-probability curve, which reaches 1 at a full queue.", needs="--queue"
    )

    def overload(self) -> "Overload | None":
        """Load shedding at a node's queue, if it has a capacity."""
        from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor

        factor = ShedFactor(self.tau2, self.min_drop, self.drop_curve)
        if self.queue is None:
            return None
        if self.queue < 1:
            raise UsageError(f"--queue must be at least 1 (got {self.queue})")
        return Overload(factor, self.queue, 1.0)


def _micros(option: str, text: str) -> int:
    """The duration that an option gives, in microseconds."""
    return round(amount_of(option, text, duration_us))
