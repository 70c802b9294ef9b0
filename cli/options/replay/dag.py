"""Options of several stages over the same workers."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError

if TYPE_CHECKING:
    from adapt.traces.replay.stages import NamedStages


@dataclass(frozen=True, slots=True)
class DagOptions:
    """A DAG of stages."""

    stages: Path | None = setting(
        None, "Replay through a DAG of stages over the same workers, each a [[stage]] of this file.", "FILE.toml"
    )

    @staticmethod
    def check(of_one_stage: Mapping[str, object]) -> None:
        """Check that no option is given that several stages do not support.

        Args:
            of_one_stage: Options that apply to one stage only, with what was given.
        """
        for option, given in of_one_stage.items():
            if given:
                raise UsageError(f"{option} does not apply to --stages; omit one of them")

    def opened(self) -> "NamedStages | None":
        """The stages; None without a file."""
        from adapt.traces.replay.stages import open_stages

        return None if self.stages is None else open_stages(self.stages)
