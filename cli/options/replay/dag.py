"""Options of several stages over the same workers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options.amounts import size
from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError
from adapt.core.flux.policies.names import Controllers, FluxPolicy

if TYPE_CHECKING:
    from adapt.core.flux.replay.dag import Governing
    from adapt.traces.replay.stages import StagesOptions


@dataclass(frozen=True, slots=True)
class DagOptions:
    """A DAG of stages, and who moves their partitions."""

    OPTION: ClassVar[str] = "--stages"
    HEAD: ClassVar[str] = "stages"
    stages: Path | None = setting(
        None, "Replay through a DAG of stages over the same workers, each a [[stage]] of this file.", "FILE.toml"
    )
    controllers: Controllers | None = setting(
        None, "One controller of all stages, one per stage, or both as two cases (default: joint)."
    )
    movement_budget: str | None = setting(
        None, "State that all controllers may move per simulated second (default: unlimited).", "10MB"
    )

    @staticmethod
    def check(of_one_stage: Mapping[str, object], policies: Sequence[str]) -> None:
        """Check that no option is given that several stages do not support.

        Args:
            of_one_stage: Options that apply to one stage only, with what was given.

        Raises:
            UsageError: One is.
        """
        for option, given in of_one_stage.items():
            if given:
                raise UsageError(f"{option} does not apply to --stages; omit one of them")
        if FluxPolicy.OPTIMUM in policies:
            raise UsageError("--policy optimum knows the load of one stage only; choose another policy for --stages")

    def _governing(self) -> "Governing":
        """Who moves the partitions, and how much.

        Raises:
            UsageError: The budget is malformed.
        """
        from adapt.core.flux.replay.dag import Governing

        controllers = self.controllers or Controllers.JOINT
        if self.movement_budget is None:
            return Governing(controllers)
        budget = size("--stages movement-budget", self.movement_budget)
        if budget <= 0:
            raise UsageError(f"--stages movement-budget must be above 0 (got {self.movement_budget})")
        return Governing(controllers, budget)

    def opened(self) -> "StagesOptions | None":
        """The stages and who moves their partitions; None without a file.

        Raises:
            UsageError: An option for several stages without them.
            BadInput: The file is missing or invalid.
        """
        from adapt.traces.replay.stages import StagesOptions, open_stages

        if self.stages is not None:
            return StagesOptions(open_stages(self.stages), self._governing())
        if (self.controllers, self.movement_budget) != (None, None):
            raise UsageError("--stages needs a file before its keys, such as FILE.toml:controllers=each")
        return None
