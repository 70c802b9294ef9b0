"""Options of `adapt replay compare`: scenarios, workers."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options import completion
from adapt.cli.options.channels import channel_counts
from adapt.cli.options.groups import setting
from adapt.cli.options.own import OwnPolicy
from adapt.cli.options.replay.stage import EngineStage
from adapt.cli.terminal.effect import settled
from adapt.core.errors import UsageError
from adapt.core.stage.conditions.stage_settings import ComparedBuffer, MigrationSettings
from adapt.core.stage.input.speed import OFFERED, Speed, speeds_of
from adapt.core.stream import Weight
from adapt.core.units.settings import same, settings

if TYPE_CHECKING:
    from adapt.core.mechanisms.cost_model import Wanted
    from adapt.core.mechanisms.scenarios import Scenario
    from adapt.core.mechanisms.sweep import Sweep
    from adapt.traces.store.trace import Trace


@settings(kw_only=True)
class ComparedStage(EngineStage):
    """The stage on which mechanisms are compared."""

    DEFAULT_BUFFER: ClassVar[int] = 240
    state: str = setting(
        "rows", "State per partition: a number of tuples, or all its rows or bytes in the trace.", "TUPLES|rows|bytes"
    )
    shedding: ComparedBuffer
    migration: MigrationSettings

    def partition_state(self) -> int | Weight:
        """State per partition, in tuples or by a weight."""
        fixed = self.fixed_state()
        if fixed is not None:
            return fixed
        if self.state not in ("rows", "bytes"):
            raise UsageError(f"--state takes a number of tuples, rows or bytes (got {self.state!r})")
        return Weight.COUNT if self.state == "rows" else Weight.BYTES


@dataclass(frozen=True, slots=True)
class ScenarioOptions:
    """The scenarios to compare."""

    PANEL: ClassVar[str] = "Scenarios"
    policy: list[OwnPolicy]
    scenario: list[str] | None = setting(
        None,
        "Scenario to compare with static-uniform, or all; repeatable (default: all).",
        "NAME",
        completion=completion.scenarios,
    )
    scenarios: Path | None = setting(None, "File of own scenarios, each a [[scenario]].", "FILE.toml")
    sustainable: bool = setting(
        False,
        "Also measure the highest rate that each scenario sustains, and the workers needed per load. Tries half the"
        " workers, all, and twice as many; takes about thirty times as long.",
        None,
        "--sustainable",
    )

    def chosen(self) -> "tuple[Scenario, ...]":
        """The named scenarios, else the file's, else all; then own policies."""
        from adapt.core.mechanisms.scenarios import chosen, own_scenarios
        from adapt.traces.own.modules import own_codes
        from adapt.traces.replay.compare import read_scenario_file

        mine = own_scenarios(own_codes("policy", [(each.name, each.own) for each in self.policy]))
        of_file = () if self.scenarios is None else read_scenario_file(self.scenarios)
        return (*chosen(self.scenario or [], of_file), *mine)

    def sustained(self, channels: int) -> tuple[int, ...]:
        """The numbers of channels for which sustained rates are measured."""
        return (max(2, channels // 2), channels, 2 * channels) if self.sustainable else ()


@settings()
class ComparedSpeedOptions:
    """How fast a trace is replayed through several mechanisms."""

    offered: str | None = setting(
        None,
        "Load of static-uniform's busiest worker of N (default: 1.2), which sets the speed. Of a list such as"
        " 0.5,0.8,1.2 the highest is recommended for.",
        "RATIO[,...]",
        shown=False,
    )
    speedup: str | None = same(Speed, "speedup", placeholder="RATIO[,...]", range=None, needs=())

    @property
    def chosen(self) -> bool:
        """Whether an option sets the speed."""
        return (self.offered, self.speedup) != (None, None)

    def speeds(self) -> tuple[Speed, ...]:
        """The speeds, in the order given."""
        return speeds_of(self.offered, self.speedup, OFFERED)

    @property
    def highest(self) -> Speed:
        """The highest speed."""
        return max(self.speeds(), key=lambda each: each.offered or each.speedup or 0.0)


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """Numbers of workers, and the speed of the replay."""

    speed: ComparedSpeedOptions
    channels: str = setting(
        "8", "Workers of scenarios that do not scale. Of a list such as 8,10 the first is N.", "N[,N...]"
    )
    seeds: int | None = setting(
        None,
        "Random seeds (default: 10; 3 with several loads or workers, or a long trace).",
        "COUNT",
        shown=False,
    )
    pool: int | None = setting(
        None, "Maximum number of workers of scenarios that scale (default: 2N).", "WORKERS", shown=False
    )
    workers: int | None = setting(
        None, "Workers at the start of scenarios that scale (default: fewer than needed).", "WORKERS", shown=False
    )
    partitions: int = setting(64, "Partitions per worker; each moves as a whole.", "K")

    def sweep(self) -> "Sweep | None":
        """What is varied; None, each scenario runs once."""
        from adapt.core.mechanisms.sweep import Sweep

        speeds, workers = self.speed.speeds(), tuple(channel_counts(self.channels))
        if self.seeds == 1 and len(speeds) < 2 and len(workers) < 2:
            return None
        return Sweep(speeds if len(speeds) > 1 else (), workers if len(workers) > 1 else (), self.seeds)

    def wanted(self, stage: ComparedStage, trace: "Trace") -> "Wanted":
        """The settings that all scenarios share."""
        from adapt.core.mechanisms.cost_model import Wanted
        from adapt.core.stage.conditions.shed_factor import Overload, Thresholds
        from adapt.core.stage.control.workers import Migration

        channels = channel_counts(self.channels)[0]
        buffer, network, queueing = stage.queued(channels, trace)
        settled("--engine", queueing.engine)
        return Wanted(
            channels=channels,
            pool=self.pool,
            least=self.workers,
            per_worker=self.partitions,
            speed=self.speed.highest,
            thresholds=Thresholds.of(stage.shedding),
            overload=Overload.of(stage.shedding),
            min_drop=stage.shedding.min_drop,
            drop_curve=stage.shedding.drop_curve,
            costs=stage.costs.costs(),
            network=network,
            queueing=queueing,
            migration=Migration.of(stage.migration, queueing.engine) or Migration(),
            state=stage.partition_state(),
            buffer_tuples=buffer,
            row_costs=stage.costs.row_costs(trace, stage.seed),
            by_stream=stage.by_stream(trace),
            duration_s=stage.duration_s,
            seed=stage.seed,
        )
