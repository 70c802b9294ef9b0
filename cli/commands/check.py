"""`adapt check`: limits held against artefacts; a contract for continuous integration."""

import io
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options import completion
from adapt.cli.options.common import ConfOption, ForceOption, MasterOption, check_channels, spark_options
from adapt.cli.terminal.output import Format, narrate_written, show, written_out
from adapt.core.engines.names import Engine
from adapt.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapt.core.check.facts import Facts
    from adapt.core.check.limit import Limit
    from adapt.core.check.outcome import Verdict

LIMIT_FAILED = 1


class CheckFormat(StrEnum):
    """How the outcome is written."""

    TABLE = "table"
    """For people at a terminal."""
    JSON = "json"
    """One document with `passed` for each limit and for all."""
    MD = "md"
    """A table for a pull request."""
    JUNIT = "junit"
    """JUnit's XML, which build servers read."""


def _show_metrics(asked: bool) -> None:
    if asked:
        from adapt.core.check.metrics import metrics_tables

        show(metrics_tables())
        raise typer.Exit


def check(
    artefacts: Annotated[
        list[Path],
        typer.Argument(
            metavar="ARTEFACT...",
            help="Plans, comparisons, runs, counted keys, traces, and evaluations printed by --format json.",
        ),
    ],
    limits: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            "-l",
            metavar="EXPR",
            autocompletion=completion.limits,
            help='What is to hold: "imbalance<=1.2", "p99_ms[case=load]<500", "imbalance worse-by 5%"; repeatable.',
            show_default=False,
        ),
    ] = None,
    limits_file: Annotated[
        Path | None, typer.Option("--limits", metavar="FILE.toml", help="A file with more of them.")
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline", metavar="ARTEFACT", help="What was before: limits without an amount are held against it."
        ),
    ] = None,
    worse_by: Annotated[
        str | None,
        typer.Option(
            "--worse-by",
            metavar="P%",
            help="How much worse than the baseline they may be; 5% if nothing is said.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="NAME|PLAN",
            autocompletion=completion.engines,
            help=f"What places the keys of a trace or of counts: {', '.join(Engine)} or another scheme, or a plan;"
            f" {Engine.SPARK} if left out.",
            show_default=False,
        ),
    ] = None,
    channels: Annotated[
        int | None,
        typer.Option(
            "--channels", metavar="N", help="At how many channels; 8, or those of the plan.", show_default=False
        ),
    ] = None,
    exact: Annotated[bool, typer.Option("--exact", help="Count the keys of a trace exactly.")] = False,
    verify: Annotated[bool, typer.Option("--verify", help="Check every byte against the manifest first.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write the outcome there, and show it as a table."),
    ] = None,
    format: Annotated[
        CheckFormat, typer.Option("--format", help="How the outcome is printed, or written to -o.")
    ] = CheckFormat.TABLE,
    force: ForceOption = False,
    _metrics: Annotated[
        bool,
        typer.Option("--metrics", help="List the metrics that limits may name.", callback=_show_metrics, is_eager=True),
    ] = False,
    master: MasterOption = "local[*]",
    conf: ConfOption = [],  # noqa: B006 - typer makes a new list
) -> int:
    """Hold limits against what was measured; exit code 1 if one fails.

    A limit is METRIC, perhaps rows in brackets, and <=, <, >=, > or == with an amount; it holds if it holds for every
    row. What was not measured never holds. No Java is started, unless a trace has to be counted.

    Example: adapt check web.plan --limit "gap<=1.2" --limit "explicit_keys<=1000"
    """
    from adapt.core.check.held import judge
    from adapt.core.check.outcome import as_document, verdict_table

    asked, allowed = _asked(limits or [], limits_file, worse_by)
    if out is not None:
        from adapt.traces.store.whole import check_free

        check_free(out, force=force)
    paths = list(dict.fromkeys(artefacts))
    read = _read(
        paths if baseline is None else [*paths, baseline], asked, engine, channels, exact, verify, (master, conf)
    )
    facts, before = (read, None) if baseline is None else (read[:-1], read[-1])
    verdict = judge(asked, facts, before, allowed)
    document = as_document(verdict, facts, before)
    if out is not None:
        from adapt.traces.store.whole import write_whole

        write_whole(out, _text(verdict, document, format).encode("utf-8", "backslashreplace"), force=force)
        narrate_written(out)
    if out is not None or format in _SHOWN:
        show(verdict_table(verdict), Format.TABLE if out is not None else _SHOWN[format], document)
    else:
        with written_out():
            print(_text(verdict, document, format), end="")
    return 0 if verdict.passed else LIMIT_FAILED


_SHOWN = {CheckFormat.TABLE: Format.TABLE, CheckFormat.JSON: Format.JSON, CheckFormat.MD: Format.MD}


def _asked(limits: "Sequence[str]", file: Path | None, worse_by: str | None) -> "tuple[list[Limit], float]":
    """The limits of options and file, and how much worse than a baseline they may be.

    Raises:
        UsageError: there is none, or one is none.
        BadInput: the file is not what it is to be.
    """
    from adapt.core.check.amount import percent_of
    from adapt.core.check.held import WORSE_BY
    from adapt.core.check.limit import parse_limit
    from adapt.traces.checking import limits_of_file

    asked = [parse_limit(text) for text in limits]
    allowed = WORSE_BY
    if file is not None:
        kept = limits_of_file(file)
        asked += kept.limits
        allowed = allowed if kept.worse_by is None else kept.worse_by
    if not asked:
        raise UsageError('nothing is to hold: give --limit, e.g. --limit "imbalance<=1.2", or --limits FILE')
    if worse_by is not None:
        try:
            allowed = percent_of(worse_by)
        except UsageError as error:
            raise UsageError(f"--worse-by: {error}") from None
    return asked, allowed


def _read(
    paths: "Sequence[Path]",
    limits: "Sequence[Limit]",
    engine: str | None,
    channels: int | None,
    exact: bool,
    verify: bool,
    spark: tuple[str, list[str]],
) -> "list[Facts]":
    from adapt.cli.terminal.stages import stages
    from adapt.traces.checking import DEFAULT_ENGINE, Placing, facts_of, places_keys

    if channels is not None:
        check_channels(channels)
    given = [name for name, value in (("--engine", engine), ("--channels", channels), ("--exact", exact)) if value]
    if given and not any(places_keys(path) for path in paths):
        raise UsageError(f"{given[0]} goes with a trace or counted keys, whose keys it places; here is none")
    placing = Placing(DEFAULT_ENGINE if engine is None else engine, channels, exact)
    needs_spark = any(path.is_dir() for path in paths) and any(places_keys(path) for path in paths)
    options = spark_options(*spark) if needs_spark else None
    with stages() as progress:
        return [
            facts_of(path, limits, placing, check_all=verify, spark_options=options, progress=progress)
            for path in paths
        ]


def _text(verdict: "Verdict", document: dict[str, object], format: CheckFormat) -> str:
    """The outcome as it is written to a file."""
    from adapt.core.check.outcome import junit_xml, verdict_table

    if format is CheckFormat.JUNIT:
        return junit_xml(verdict).decode()
    text = io.StringIO()
    show(verdict_table(verdict), _SHOWN[format], document, text)
    return text.getvalue()
