"""Options of a simulated stage, shared by `replay flux`, `elastic` and `compare`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, TypeAlias

from adapt.cli.options.groups import option, setting
from adapt.cli.options.replay.costs import DEFAULT_CONNECTION, CostOptions, EngineCosts
from adapt.core.stage.conditions.names import Producers, QueueingName, Router
from adapt.core.stage.conditions.stage_settings import (
    TROUBLE,
    EngineSettings,
    JoinSettings,
    Sampling,
    ScalingBuffer,
    SheddingSettings,
    TroubleSettings,
)
from adapt.core.units.settings import same, settings

if TYPE_CHECKING:
    from adapt.core.stage.conditions.faults import ExternalLoad, SlowDown
    from adapt.core.stage.conditions.settings import Network, Queueing, StageSettings
    from adapt.core.stage.dag.settings import StagesFile
    from adapt.core.stage.input.keyed_rows import Reading
    from adapt.core.stage.input.mini_partitions import MiniPartitions
    from adapt.traces.replay.operators import Operator
    from adapt.traces.store.trace import Trace

SpeedupOption: TypeAlias = Annotated[float, option("Trace seconds replayed per simulated second.", "RATIO")]
SeedOption: TypeAlias = Annotated[int, option("Random seed.", "S", min=0, max=2**63 - 1)]


@dataclass(frozen=True, slots=True)
class DagOptions:
    """A DAG of stages."""

    stages: Path | None = setting(
        None,
        "Replay through a DAG of stages over the same workers, each a [[stage]] of this file.",
        "FILE.toml",
        needs=("--engine flux", "--arrivals trace|saturate"),
    )

    def opened(self) -> "StagesFile | None":
        """The stages; None without a file."""
        from adapt.traces.replay.stages import open_stages

        return None if self.stages is None else open_stages(self.stages)


@settings(panel=TROUBLE)
class TroubleOptions:
    """External load and slowdowns of workers."""

    load: list[str] | None = same(TroubleSettings, "load")
    slow: list[str] | None = same(TroubleSettings, "slow")

    def disturbances(self, workers: int) -> "tuple[ExternalLoad | SlowDown, ...]":
        """External loads and slowdowns of a stage."""
        from adapt.core.stage.control.schedules import external_loads, slow_downs

        return (*external_loads(self.load or (), workers), *slow_downs(self.slow or (), workers))


@settings(kw_only=True)
class StageOptions:
    """A simulated stage and its input."""

    duration_s: float | None = same(Sampling, "duration_s")
    seed: int = same(Sampling, "seed")
    DEFAULT_BUFFER: ClassVar[int] = 2048
    shedding: SheddingSettings
    costs: CostOptions

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
        from adapt.core.stage.conditions.shed_factor import Overload

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
            overload=Overload.of(self.shedding, window_s),
        )

    def queued(self, workers: int, trace: "Trace | None" = None) -> "tuple[int, Network, Queueing]":
        """Rows that a producer buffers, the network, and the queues.

        Args:
            trace: Whose engine decides if no queues are named, for any number of workers, whose bandwidths are then
                the same. Kafka's if its rows have partitions.
        """
        from adapt.core.stage.conditions.settings import Queueing

        size = self.costs.network.tuple_bytes
        logs = trace is not None and "partition" in trace.columns
        queueing = Queueing.of(self._queues(), size, QueueingName.KAFKA if logs else QueueingName.FLUX)
        buffer, connection = queueing.buffers(workers, size, (self.DEFAULT_BUFFER, DEFAULT_CONNECTION))
        network = self.costs.to_network(workers if trace is None else None, connection)
        given = self.costs.producers.buffer
        return buffer if given is None else given, network, queueing

    def _queues(self) -> EngineSettings:
        return EngineSettings()

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


@settings(kw_only=True)
class EngineStage(StageOptions):
    """A simulated stage with an engine's queues and state per partition."""

    state: str | None = setting(
        None,
        "State: tuples per partition, or what it grows by: a tuple per row or key, or the rows' bytes. After @10m of"
        " trace time rows expire; rows@9rows keeps 9 rows per key. Default: bytes, if the trace has them, else rows.",
        "TUPLES|rows|bytes|keys[@10m]",
    )
    queues: EngineSettings
    costs: EngineCosts

    def fixed_state(self) -> int | None:
        """State per partition in tuples; None if it depends on the trace."""
        state = self.state or ""
        return int(state) if state.isdecimal() and len(state) < 16 else None

    def operator(self, join: JoinSettings, trace: "Trace") -> "Operator":
        """The operator of the stage: its state, or a join."""
        from adapt.core.stage.conditions.growth import Join
        from adapt.core.stage.input.keyed_rows import BYTES, StateSource, StateUnit
        from adapt.traces.replay.operators import Operator

        if join.join is not None and join.window_s is not None:
            of = Join(round(join.window_s * 1e6), join.match_s)
            return Operator(join=of, side=join.join, splits=join.split_hot)
        if self.fixed_state() is not None:
            return Operator()
        usual = StateUnit.BYTES if BYTES in trace.columns else StateUnit.ROWS
        return Operator(StateSource.parse(self.state or usual, "--state"))

    def _queues(self) -> EngineSettings:
        return self.queues


@settings(kw_only=True)
class ScaledStage(EngineStage):
    """A simulated stage whose workers are added and removed."""

    shedding: ScalingBuffer
