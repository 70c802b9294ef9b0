"""Options of a simulated stage, which `replay flux`, `elastic` and `compare` share."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

from adapt.cli.options.amounts import above_0_or_none
from adapt.cli.options.groups import option, setting
from adapt.cli.options.replay.costs import CostOptions, NetworkOptions
from adapt.cli.options.replay.shedding import SheddingOptions
from adapt.core.errors import UsageError
from adapt.core.stage.conditions.names import Router
from adapt.core.stream import Weight

if TYPE_CHECKING:
    from adapt.core.stage.conditions.disturbances import ExternalLoad, SlowDown
    from adapt.core.stage.conditions.settings import StageSettings
    from adapt.core.stage.input.keyed_rows import Reading
    from adapt.core.stage.input.mini_partitions import MiniPartitions
    from adapt.traces.store.trace import Trace

TROUBLE_PANEL = "What happens to sites"
DEFAULT_STATE = "10000"

SpeedupOption: TypeAlias = Annotated[float, option("Trace seconds that pass in a second of the stage.", "X")]
SeedOption: TypeAlias = Annotated[int, option("Of all that is drawn.", "S")]
BufferOption: TypeAlias = Annotated[int, option("Rows that a producer holds back.", "N")]
StateOption: TypeAlias = Annotated[
    str, option("State of a partition: N tuples, or what it has in the trace.", "N|rows|bytes")
]


@dataclass(frozen=True, slots=True)
class TroubleOptions:
    """What slows sites down."""

    PANEL: ClassVar[str] = TROUBLE_PANEL
    load: list[str] | None = setting(
        None,
        "Another process on a site takes 57% of its CPU; sites as 3, 0:7, 1,4 or all; 3@5s-60s:100us/50us sets"
        " its burst and sleep; repeatable.",
        "3@5s-60s",
    )
    slow: list[str] | None = setting(
        None, "A site runs at a part of its speed; 0% is a pause; repeatable.", "3@5s-60s:50%"
    )

    def disturbances(self, sites: int) -> "tuple[ExternalLoad | SlowDown, ...]":
        """The loads and slow-downs of a stage with so many sites."""
        from adapt.core.stage.control.schedules import external_loads, slow_downs

        return (*external_loads(self.load or (), sites), *slow_downs(self.slow or (), sites))


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOptions:
    """What a simulated stage is made of, and how rows come to it."""

    duration: str | None = setting(None, "Stop at this time of the stage; at the end of the trace if left out.", "60s")
    interval: str | None = setting(None, "How often to take down what the stage does.", "1s")
    seed: SeedOption = 0
    buffer: BufferOption = 2048
    state: StateOption = DEFAULT_STATE
    producers: str | None = setting(
        None,
        "A row's producer by the hash of its number or of its stream; stream where the trace has streams.",
        "row|stream",
        shown=False,
    )
    shedding: SheddingOptions
    costs: CostOptions
    network: NetworkOptions

    @property
    def duration_s(self) -> float | None:
        """When to stop, if not at the end of the trace."""
        return above_0_or_none("--duration", self.duration)

    @property
    def interval_s(self) -> float | None:
        """How often to take down what the stage does, if that was said."""
        return above_0_or_none("--interval", self.interval)

    def partition_state(self) -> "int | Weight":
        """The state of a partition: so many tuples, or what of the trace decides."""
        named = {"rows": Weight.COUNT, "bytes": Weight.BYTES}
        if self.state in named:
            return named[self.state]
        if not (self.state.isdecimal() and len(self.state) < 16):
            raise UsageError(f"--state {self.state!r} is neither a number of tuples nor one of rows, bytes")
        return int(self.state)

    def state_weight(self) -> "Weight | None":
        """What of the trace decides the state of a partition, if it does."""
        state = self.partition_state()
        return None if isinstance(state, int) else state

    def by_stream(self, trace: "Trace") -> bool:
        """Whether the rows of a stream have one producer."""
        if self.producers not in (None, "row", "stream"):
            raise UsageError(f"--producers {self.producers!r} is not known; give row or stream")
        return "stream" in trace.columns if self.producers is None else self.producers == "stream"

    def settings(
        self,
        placed: "MiniPartitions",
        trouble: TroubleOptions,
        router: Router = Router.FLUX,
        window_s: float | None = None,
    ) -> "StageSettings":
        """The stage whose partitions are placed so; a join holds rows for its window, in seconds of the stage."""
        from adapt.core.stage.conditions.settings import StageSettings, even_groups

        state, partitions = self.partition_state(), placed.sites * placed.a_site
        return StageSettings(
            sites=placed.sites,
            owners=placed.owners,
            partition_of=even_groups(partitions, partitions),
            router=router,
            buffer_tuples=self.buffer,
            network=self.network.network(),
            costs=self.costs.costs(),
            state_tuples=state if isinstance(state, int) else 0,
            disturbances=trouble.disturbances(placed.sites),
            seed=self.seed,
            overload=self.shedding.overload(window_s),
        )

    def reading(self, trace: "Trace", placed: "MiniPartitions", speedup: float | None) -> "Reading":
        """How rows of a trace become tuples of the stage."""
        from adapt.core.stage.input.keyed_rows import Reading

        return Reading(
            placed,
            speedup=speedup,
            cost_unit_s=self.costs.cost_unit_s,
            by_stream=self.by_stream(trace),
            until_s=float("inf") if self.duration_s is None else self.duration_s,
        )


def check_speedup(speedup: float, instead: str = "") -> None:
    """Refuse a speed-up that is not above 0.

    Raises:
        UsageError: it is not.
    """
    if not 0 < speedup < float("inf"):
        raise UsageError(f"--speedup {speedup:g} is none; give a number above 0{instead}")
