"""Options of what is shown and written, and of where a replay keeps its run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from adapt.cli.options.groups import option, setting
from adapt.cli.terminal.output import Format, FormatOption, is_for_programs, narrate_written, show
from adapt.cli.terminal.terminal import Paragraph
from adapt.core.table import Table

ForceOption: TypeAlias = Annotated[bool, option("Replace what stands at the output.", None, "--force")]


@dataclass(frozen=True, slots=True)
class Output:
    """How much is shown, how it is printed, and whether the output is overwritten."""

    all: bool = setting(False, "Show all columns and rows, not only what is needed first.", None, "--all")
    format: FormatOption = Format.TABLE
    force: ForceOption = False

    @property
    def whole(self) -> bool:
        """Whether every table is shown."""
        return self.all or is_for_programs(self.format)


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
