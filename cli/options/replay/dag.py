"""Options of several stages over the same workers."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from adapt.cli.options.groups import setting

if TYPE_CHECKING:
    from adapt.core.stage.dag.settings import StagesFile


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
