"""Where a replay keeps its run, and how it shows the result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adapt.cli.options.groups import setting
from adapt.cli.options.result import ForceOption
from adapt.cli.terminal.output import Format, FormatOption, narrate_written, show
from adapt.cli.terminal.terminal import Paragraph
from adapt.core.table import Table


@dataclass(frozen=True, slots=True)
class RunOutput:
    """Where a run is kept, and how it is shown."""

    out: Path | None = setting(None, "Where to keep the run.", "RUN", "--out", "-o")
    format: FormatOption = Format.TABLE
    force: ForceOption = False

    def check(self) -> None:
        """Refuse a place that is taken, before any work.

        Raises:
            EnvironmentFailure: it is.
        """
        from adapt.traces.store.atomic import check_folder_free

        if self.out is not None:
            check_folder_free(self.out, force=self.force)

    def show(self, tables: Sequence[Table], document: Mapping[str, Any], lead: Sequence[Paragraph] = ()) -> None:
        """Say where the run is kept, and show it."""
        if self.out is not None:
            narrate_written(self.out)
        show(tables, self.format, document, lead=lead)
