"""Options of `adapt replay compare`: what is compared, with how many workers, and when mechanisms act."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from adapt.cli.options import completion
from adapt.cli.options.amounts import above_0_or_none
from adapt.cli.options.groups import option, setting
from adapt.cli.options.placement import HashOption
from adapt.cli.options.replay.costs import CostOptions, ServiceSdOption
from adapt.cli.options.replay.stage import BufferOption, StageOptions, StateOption
from adapt.cli.options.result import RunOutput
from adapt.core.keys.names import HashName

if TYPE_CHECKING:
    from adapt.core.mechanisms.cost_model import Wanted
    from adapt.core.mechanisms.scenarios import Scenario
    from adapt.traces.store.trace import Trace


@dataclass(frozen=True, slots=True)
class ComparisonOutput(RunOutput):
    """Where a comparison is kept, with a run for each scenario."""

    out: Path | None = setting(
        None, "Where to keep the comparison, with a run for each scenario.", "RUN", "--out", "-o"
    )


@dataclass(frozen=True, slots=True)
class ComparedCosts(CostOptions):
    """What a row costs where nothing is known of it."""

    DEFAULT_SERVICE: ClassVar[str] = "1ms"
    service_time: Annotated[
        str | None, option("CPU time per row (default: the trace's cost, else 1ms).", "1ms", shown=False)
    ] = None
    service_sd: ServiceSdOption = "0s"


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedStage(StageOptions):
    """The stage on which mechanisms are compared."""

    buffer: BufferOption = 240
    state: StateOption = "rows"
    costs: ComparedCosts


@dataclass(frozen=True, slots=True)
class ScenarioOptions:
    """What is compared."""

    PANEL: ClassVar[str] = "What is compared"
    scenario: list[str] | None = setting(
        None,
        "What to compare with static-uniform; repeatable; all if left out.",
        "NAME",
        completion=completion.scenarios,
    )
    scenarios: Path | None = setting(None, "Scenarios of your own, each a [[scenario]].", "FILE.toml")
    sustainable: bool = setting(
        False,
        "Also find the largest rate that each sustains, with half the channels, these, and twice as many, and"
        " from that the workers needed against load; takes some thirty times as long.",
        None,
        "--sustainable",
    )

    def chosen(self) -> "tuple[Scenario, ...]":
        """The scenarios that were named, those of the file, or all there are."""
        from adapt.core.mechanisms.scenarios import chosen
        from adapt.traces.replay.compare import read_scenario_file

        return chosen(self.scenario or [], () if self.scenarios is None else read_scenario_file(self.scenarios))

    def sustained(self, channels: int) -> tuple[int, ...]:
        """The numbers of channels for which the largest sustained rate is looked for."""
        return (max(2, channels // 2), channels, 2 * channels) if self.sustainable else ()


@dataclass(frozen=True, slots=True)
class TimeOptions:
    """When mechanisms act."""

    PANEL: ClassVar[str] = "When mechanisms act; what is left out follows from the length of the replay"
    period: str | None = setting(
        None, "How often policies look at workers, and parts of split keys are merged; 1/100 of the replay.", "1s"
    )
    hold_up: str | None = setting(None, "More workers must be wanted so long.", "2s")
    hold_down: str | None = setting(None, "Fewer must be, so long.", "10s")
    window: str | None = setting(None, "Plans are built from the rows of so long.", "10s")
    rebuild: str | None = setting(None, "How often plans are built anew.", "10s")


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How many workers there are, and how fast rows come to them."""

    channels: int = setting(8, "Where the number of workers is fixed.", "N")
    offered: float = setting(
        1.2,
        "Replay at the speed at which the busiest channel of static-uniform has X times the work that it can do.",
        "X",
    )
    speedup: float | None = setting(
        None, "Or at this one: trace seconds that pass in a second of the stage.", "X", shown=False
    )
    pool: int | None = setting(None, "All workers, where they come and go; 2N if left out.", "P", shown=False)
    workers: int | None = setting(
        None, "Those at the start, and at least; too few for the stream if left out.", "M", shown=False
    )
    partitions: int = setting(64, "Partitions of a channel; each moves as a whole.", "K")
    hash: HashOption = HashName.MURMUR3

    def wanted(self, times: TimeOptions, stage: ComparedStage, trace: "Trace") -> "Wanted":
        """What all scenarios have in common."""
        from adapt.core.mechanisms.cost_model import Wanted

        return Wanted(
            channels=self.channels,
            pool=self.pool,
            least=self.workers,
            per_worker=self.partitions,
            speedup=self.speedup,
            offered=self.offered,
            period_s=above_0_or_none("--period", times.period),
            hold_up_s=above_0_or_none("--hold-up", times.hold_up),
            hold_down_s=above_0_or_none("--hold-down", times.hold_down),
            window_s=above_0_or_none("--window", times.window),
            rebuild_s=above_0_or_none("--rebuild", times.rebuild),
            interval_s=stage.interval_s,
            thresholds=stage.shedding.thresholds(),
            overload=stage.shedding.overload(),
            min_drop=stage.shedding.min_drop,
            drop_curve=stage.shedding.drop_curve,
            costs=stage.costs.costs(),
            network=stage.network.network(),
            state=stage.partition_state(),
            buffer_tuples=stage.buffer,
            by_cost=stage.costs.by_cost(trace),
            by_stream=stage.by_stream(trace),
            duration_s=stage.duration_s,
            hash=self.hash,
            seed=stage.seed,
        )
