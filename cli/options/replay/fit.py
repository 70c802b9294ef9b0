"""Options of `adapt replay fit` in addition to the settings in core."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from adapt.cli.options import completion
from adapt.cli.options.groups import Overrides, option, setting
from adapt.core.errors import UsageError, did_you_mean
from adapt.core.fit.network.names import PRECOMPUTED, DropPlanner
from adapt.core.fit.network.settings import Execution, KnownRates, SheddingSettings
from adapt.core.units.settings import settings

if TYPE_CHECKING:
    from adapt.core.fit.network.network import Network
    from adapt.core.fit.network.true_values import TrueSource


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
    execution: Execution = field(default_factory=Execution)
    utilization: Path | None = setting(
        None,
        "Fit the operators' costs to measurements. A CSV with tuples/s of each input and utilization of each node.",
        "FILE.csv",
    )
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
    given: Annotated[dict[str, Any], Overrides(SheddingSettings)]


@settings("workload", head="workload")
class WorkloadOptions(KnownRates):
    """Rates for which plans are made."""

    NEEDS: ClassVar[tuple[str, ...]] = (
        f"--planner {'|'.join(PRECOMPUTED)} if *",
        "--planner solver-w if online|exponential",
    )
    workload: str | None = setting(
        None,
        "Input rates that solver-w expects and tables cover: a CSV with a column of tuples/s per input. Or, for"
        " solver-w alone: `exponential`, with the rates in the network file as means; or `online`, learnt while the"
        " network runs. Default: the rates in the trace.",
        "RATES.csv",
    )
