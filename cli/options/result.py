"""Options for a command's output."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from adapt.cli.options.groups import option, setting
from adapt.cli.terminal.narration import narrate_assumption, narrate_guesses
from adapt.cli.terminal.output import (
    Format,
    FormatOption,
    for_people,
    is_for_programs,
    narrate,
    narrate_written,
    show,
    top,
    verdict_of,
)
from adapt.core.table import Table

if TYPE_CHECKING:
    from adapt.core.run import Run
    from adapt.traces.ingest.ingest import Ingested
    from adapt.traces.store.trace import Trace

BaselineOption: TypeAlias = Annotated[bool, option("Measure today's placement too, for comparison.")]
ForceOption: TypeAlias = Annotated[
    bool, option("Overwrite the output.", None, "--force", needs="--out or --html or --charts or --output or --rules")
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


LEADING = 12
"""The most rows of the table below a conclusion."""


@dataclass(frozen=True, slots=True)
class RunOutput(Output):
    """Where a run is written, and how it is shown."""

    out: Path | None = setting(None, "Run to write.", "RUN", "--out", "-o")

    def check(self) -> None:
        """Check that the run can be written, before any work."""
        from adapt.traces.store.atomic import check_folder_free

        if self.out is not None:
            check_folder_free(self.out, force=self.force)

    def show_run(self, run: "Run", trace: "Trace", every: Sequence[Table] = (), further: Sequence[Table] = ()) -> None:
        """Show a run: its conclusion and a table, or everything.

        Args:
            every: What programs get as CSV, unless what is shown.
            further: Tables shown with all.
        """
        from adapt.core.lint.findings import judged, on_rates

        if self.out is not None:
            narrate_written(self.out)
        caveat = on_rates(judged(trace.profile) or ()) if run.is_timed else ""
        if is_for_programs(self.format):
            if caveat:
                narrate_assumption(caveat)
            show([*(every or run.shown()), *further], self.format, run.as_data())
            return
        if self.all:
            tables = [for_people(table, self.format) for table in (*run.shown(), *further)]
        else:
            tables = [top(run.leading(), LEADING)]
        said = [run.conclusion(), *filter(None, [caveat, *(run.notes() if self.all else [])])]
        show(tables, self.format, lead=[verdict_of(said)])


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
