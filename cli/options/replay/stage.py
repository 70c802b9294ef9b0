"""Options of a simulated stage, shared by `replay flux`, `elastic` and `compare`."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

from adapt.cli.options.amounts import above_0_or_none
from adapt.cli.options.groups import option, setting
from adapt.cli.options.replay.costs import DEFAULT_CONNECTION, CostOptions, EngineCosts
from adapt.cli.options.replay.join import JoinOptions
from adapt.cli.options.replay.queueing import QueueingOptions
from adapt.cli.options.replay.shedding import ScalingBuffer, SheddingOptions
from adapt.core.stage.conditions.names import Producers, Router

if TYPE_CHECKING:
    from adapt.core.stage.conditions.faults import ExternalLoad, SlowDown
    from adapt.core.stage.conditions.settings import Network, Queueing, StageSettings
    from adapt.core.stage.input.keyed_rows import Reading
    from adapt.core.stage.input.mini_partitions import MiniPartitions
    from adapt.traces.replay.operators import Operator
    from adapt.traces.store.trace import Trace

TROUBLE_PANEL = "Slow and failing workers"

SpeedupOption: TypeAlias = Annotated[float, option("Trace seconds replayed per simulated second.", "RATIO")]
SeedOption: TypeAlias = Annotated[int, option("Random seed.", "S", min=0, max=2**63 - 1)]


@dataclass(frozen=True, slots=True)
class TroubleOptions:
    """External load and slowdowns of workers."""

    PANEL: ClassVar[str] = TROUBLE_PANEL
    load: list[str] | None = setting(
        None,
        "Another process takes 57% of a worker's CPU. Repeatable; workers: 3, 0:7, 1,4 or all;"
        " 3@5s-60s:100us/50us sets its burst and sleep.",
        "3@5s-60s",
    )
    slow: list[str] | None = setting(
        None, "Slow a worker down to a percentage of its speed; 0% pauses it; repeatable.", "3@5s-60s:50%"
    )

    def disturbances(self, workers: int) -> "tuple[ExternalLoad | SlowDown, ...]":
        """External loads and slowdowns of a stage."""
        from adapt.core.stage.control.schedules import external_loads, slow_downs

        return (*external_loads(self.load or (), workers), *slow_downs(self.slow or (), workers))


@dataclass(frozen=True, slots=True, kw_only=True)
class StageOptions:
    """A simulated stage and its input."""

    duration: str | None = setting(None, "Stop at this simulated time (default: at the end of the trace).", "60s")
    seed: SeedOption = 0
    DEFAULT_BUFFER: ClassVar[int] = 2048
    shedding: SheddingOptions
    costs: CostOptions

    @property
    def duration_s(self) -> float | None:
        """When to stop; None, at the end of the trace."""
        return above_0_or_none("--duration", self.duration)

    def by_stream(self, trace: "Trace") -> bool:
        """Whether all rows of a stream have the same producer."""
        by = self.costs.producers.by
        return "stream" in trace.columns if by is None else by is Producers.STREAM

    def settings(
        self,
        placed: "MiniPartitions",
        trouble: TroubleOptions,
        router: Router = Router.FLUX,
        window_s: float | None = None,
    ) -> "StageSettings":
        """The stage with an initial placement.

        Args:
            window_s: Window of a join in simulated seconds.
        """
        from adapt.core.stage.conditions.settings import StageSettings, even_groups

        partitions = placed.count
        buffer, network, queueing = self.queued(placed.workers)
        return StageSettings(
            workers=placed.workers,
            owners=placed.owners,
            partition_of=even_groups(partitions, partitions),
            router=router,
            buffer_tuples=buffer,
            network=network,
            queueing=queueing,
            costs=self.costs.costs(),
            state_tuples=self.fixed_state() or 0,
            disturbances=trouble.disturbances(placed.workers),
            seed=self.seed,
            overload=self.shedding.overload(window_s),
        )

    def queued(self, workers: int, each: bool = True, trace: "Trace | None" = None) -> "tuple[int, Network, Queueing]":
        """Rows that a producer buffers, the network, and the queues.

        Args:
            each: Whether bandwidths may be those of single workers.
            trace: Whose engine decides if no queues are named.
        """
        size = self.costs.costs().tuple_bytes
        queueing = self._queues().chosen(size, trace)
        buffer, connection = queueing.buffers(workers, size, (self.DEFAULT_BUFFER, DEFAULT_CONNECTION))
        network = self.costs.network.network(workers if each else None, connection, self.costs.profile())
        given = self.costs.producers.buffer
        return buffer if given is None else given, network, queueing

    def _queues(self) -> QueueingOptions:
        return QueueingOptions()

    def fixed_state(self) -> int | None:
        """State per partition in tuples; None if it depends on the trace."""
        return None

    def reading(self, trace: "Trace", placed: "MiniPartitions", speedup: float | None) -> "Reading":
        """How rows of the trace become tuples of the stage."""
        from adapt.core.stage.input.keyed_rows import Reading

        return Reading(
            placed,
            speedup=speedup,
            costs=self.costs.row_costs(trace, self.seed),
            by_stream=self.by_stream(trace),
            until_s=float("inf") if self.duration_s is None else self.duration_s,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStage(StageOptions):
    """A simulated stage with an engine's queues and state per partition."""

    interval: str | None = setting(None, "Sampling interval of the time series (default: about 300 samples).", "1s")
    state: str | None = setting(
        None,
        "State: tuples per partition, or what it grows by: a tuple per row or key, or the rows' bytes. After @10m of"
        " trace time rows expire; rows@9rows keeps 9 rows per key. Default: bytes, if the trace has them, else rows.",
        "TUPLES|rows|bytes|keys[@10m]",
    )
    queues: QueueingOptions
    costs: EngineCosts

    @property
    def interval_s(self) -> float | None:
        """Sampling interval, if given."""
        return above_0_or_none("--interval", self.interval)

    def fixed_state(self) -> int | None:
        """State per partition in tuples; None if it depends on the trace."""
        state = self.state or ""
        return int(state) if state.isdecimal() and len(state) < 16 else None

    def operator(self, join: JoinOptions, trace: "Trace") -> "Operator":
        """The operator of the stage: its state, or a join."""
        from adapt.core.stage.input.keyed_rows import BYTES, StateSource, StateUnit
        from adapt.traces.replay.operators import Operator

        joined = join.joined()
        if joined is not None:
            return Operator(join=joined, side=join.join or "")
        if self.fixed_state() is not None:
            return Operator()
        usual = StateUnit.BYTES if BYTES in trace.columns else StateUnit.ROWS
        return Operator(StateSource.parse(self.state or usual, "--state"))

    def _queues(self) -> QueueingOptions:
        return self.queues


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaledStage(EngineStage):
    """A simulated stage whose workers are added and removed."""

    shedding: ScalingBuffer
