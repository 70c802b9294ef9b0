"""Options for a command's output."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from adapt.cli.options.groups import option, setting
from adapt.cli.terminal.narration import narrate_guesses
from adapt.cli.terminal.output import Format, FormatOption, is_for_programs, narrate, narrate_written, show
from adapt.cli.terminal.terminal import Paragraph
from adapt.core.table import Table

if TYPE_CHECKING:
    from adapt.core.run import Run
    from adapt.traces.ingest.ingest import Ingested

BaselineOption: TypeAlias = Annotated[bool, option("Measure today's placement too, for comparison.")]
ForceOption: TypeAlias = Annotated[
    bool, option("Overwrite the output.", None, "--force", needs="--out or --html or --output or --rules")
]


@dataclass(frozen=True, slots=True)
class Output:
    """How results are shown, and whether the output is overwritten."""

    all: bool = setting(False, "Show all columns and rows.", None, "--all")
    format: FormatOption = Format.TABLE
    force: ForceOption = False

    @property
    def whole(self) -> bool:
        """Whether every table is shown in full."""
        return self.all or is_for_programs(self.format)


@dataclass(frozen=True, slots=True)
class RunOutput:
    """Where a run is written, and how it is shown."""

    out: Path | None = setting(None, "Run to write.", "RUN", "--out", "-o")
    format: FormatOption = Format.TABLE
    force: ForceOption = False

    def check(self) -> None:
        """Check that the run can be written, before any work."""
        from adapt.traces.store.atomic import check_folder_free

        if self.out is not None:
            check_folder_free(self.out, force=self.force)

    def show(self, tables: Sequence[Table], document: Mapping[str, Any], lead: Sequence[Paragraph] = ()) -> None:
        """Show a run and say where it was written."""
        if self.out is not None:
            narrate_written(self.out)
        show(tables, self.format, document, lead=lead)

    def show_run(self, run: "Run") -> None:
        """Show a run, its verdict first."""
        first, *rest = run.shown()
        self.show([replace(first, note=""), *rest], run.as_data(), lead=[["Verdict", str(first.note)]])


@dataclass(frozen=True, slots=True)
class TraceOutput:
    """Where a trace is written, and how it is shown."""

    out: Annotated[Path, option("Trace to write.", "TRACE", "--out", "-o")]
    force: ForceOption = False
    json: bool = setting(False, "Print the result as one JSON document.", None, "--json")

    def show(self, made: "Ingested") -> None:
        """Show a new trace with its guesses, rejected rows and lint findings."""
        from adapt.core.lint.findings import judged
        from adapt.traces.store.trace import overview, refused, trace_document

        trace = made.trace
        for note in made.notes:
            narrate(note)
        narrate_guesses(made.guesses)
        narrate_written(self.out)
        for finding in judged(trace.profile) or ():
            narrate(f"lint: {finding.line}")
        tables = [overview(trace), *([refused(trace)] if trace.reading.rejects.rows else [])]
        show(tables, Format.JSON if self.json else Format.TABLE, trace_document(trace))
