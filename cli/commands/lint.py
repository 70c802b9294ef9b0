"""`adapt lint`: find what makes results from a trace misleading."""

from typing import TYPE_CHECKING

from adapt.cli.options.artefacts import CountedPath
from adapt.cli.terminal.output import Format, FormatOption, narrate, show
from adapt.cli.terminal.stages import stages

if TYPE_CHECKING:
    from adapt.traces.lint import Linted


def lint(
    trace: CountedPath,
    format: FormatOption = Format.TABLE,
) -> "Linted":
    """Find what makes results from a trace misleading.

    With effect and fix. Checks for few keys and placeholder keys, drift and turnover, coarse or unordered
    timestamps, outlier dates, shifted clocks, bytes or costs more skewed than rows, and samples that are too short.
    Does not start Java.

    Example: adapt lint web.trace
    """
    from adapt.traces.lint import lint as lint_trace

    with stages() as progress:
        found = lint_trace(trace, progress)
    narrate(f"{trace.name}: {found.sentence}")
    show(found.columns if format is Format.CSV else found.table, format, found.as_data())
    return found
