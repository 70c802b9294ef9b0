"""`adapt lint`: what in a trace makes conclusions from it untrue; starts no Java."""

from adapt.cli.options.artefacts import TracePath
from adapt.cli.options.groups import setting
from adapt.cli.terminal.output import Format, FormatOption, narrate, show
from adapt.cli.terminal.stages import stages


def lint(
    trace: TracePath,
    rules: list[str] | None = setting(None, "Only this rule; repeatable.", "ID", "--rule"),
    format: FormatOption = Format.TABLE,
) -> None:
    """Say what is odd in a trace, and what that does to conclusions.

    Few or default keys, drift and turnover, grain and order of times, dates gone wrong, clocks that disagree, bytes and
    costs more skewed than rows, samples that are too short. Traces carry the evidence since their ingest; an older one
    is read once. No Java is started.

    Example: adapt lint web.trace
    """
    from adapt.traces.lint import lint as lint_trace

    with stages() as progress:
        found = lint_trace(trace, rules or (), progress)
    narrate(f"{trace.name}: {found.sentence}")
    show(found.columns if format is Format.CSV else found.table, format, found.as_data())
