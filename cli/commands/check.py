"""`adapt check`: fail if a metric exceeds its limit, for continuous integration."""

import io
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options import completion
from adapt.cli.options.channels import check_channels
from adapt.cli.options.groups import setting, short_help
from adapt.cli.options.result import ForceOption
from adapt.cli.options.spark import RunnerOptions
from adapt.cli.terminal.narration import narrate_assumption, narrate_keys
from adapt.cli.terminal.output import Format, narrate_written, show, written_out
from adapt.cli.terminal.stages import stages
from adapt.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from adapt.core.check.facts import Facts
    from adapt.core.check.limit import Limit
    from adapt.core.check.outcome import Verdict


class CheckFormat(StrEnum):
    """Output formats of a check."""

    TABLE = "table"
    """For people at a terminal."""
    JSON = "json"
    """One document with `passed` per limit and overall."""
    MD = "md"
    """A table for a pull request."""
    JUNIT = "junit"
    """JUnit XML for build servers."""


def _show_metrics(asked: bool) -> None:
    if asked:
        from adapt.core.check.metrics import metrics_tables

        show(metrics_tables())
        raise typer.Exit


@dataclass(frozen=True, slots=True)
class LimitOptions:
    """Limits and baseline."""

    limits: list[str] | None = setting(
        None,
        'Limit such as "imbalance<=1.2", "latency_p99<500ms" or "imbalance worse-by 5%"; repeatable.',
        "EXPR",
        "--limit",
        "-l",
        completion=completion.limits,
    )
    limits_file: Path | None = setting(None, "TOML file with limits.", "FILE.toml", "--limits")
    baseline: Path | None = setting(
        None, "Reference for limits without an amount, such as the plan in use.", "ARTEFACT"
    )

    def asked(self) -> "list[Limit]":
        """Limits from options and file."""
        from adapt.core.check.limit import parse_limit
        from adapt.traces.checking import limits_of_file

        asked = [parse_limit(text) for text in self.limits or []]
        if self.limits_file is not None:
            asked += limits_of_file(self.limits_file)
        if not asked:
            raise UsageError('no limit to check; give --limit, such as --limit "imbalance<=1.2", or --limits FILE')
        return asked


@dataclass(frozen=True, slots=True)
class PlacingOptions:
    """How to place the keys of a trace or of counts."""

    engine: str | None = setting(
        None,
        "Scheme or plan that places the keys of a trace or of counts. Default: spark.",
        "NAME|PLAN",
        completion=completion.engines,
    )
    channels: int | None = setting(None, "Number of workers. Default: 8, or that of the plan.", "CHANNELS")
    exact: bool = setting(False, "Count the keys of a trace exactly.", None, "--exact")

    def facts(
        self, paths: "Sequence[Path]", limits: "Sequence[Limit]", *, verify: bool, spark: RunnerOptions
    ) -> "list[Facts]":
        """Metrics of each artefact."""
        from adapt.traces.checking import DEFAULT_ENGINE, Placing, facts_of, has_partitions, placed_by, places_keys
        from adapt.traces.store.manifest import is_trace

        if self.channels is not None:
            check_channels(self.channels)
        options = (("--engine", self.engine), ("--channels", self.channels), ("--exact", self.exact))
        given = [name for name, value in options if value]
        placed = any(places_keys(path) for path in paths)
        if given and not placed:
            raise UsageError(f"{given[0]} needs a trace or counted keys; no artefact has keys to place")
        if spark.spark_conf and not any(is_trace(path) for path in paths):
            raise UsageError("--spark-conf needs a trace; no artefact is one")
        placing = Placing(DEFAULT_ENGINE if self.engine is None else self.engine, self.channels, self.exact)
        for path in paths:
            if places_keys(path, limits):
                scheme, plan = placed_by(placing)
                narrate_keys(path, plan.hashing if plan else scheme)
                if has_partitions(path):
                    narrate_assumption(
                        f"{path}: judged is the placement of {placing.engine}, not the topic's partitions"
                    )
        started = spark.options() if placed and any(path.is_dir() for path in paths) else None
        with stages() as progress:
            return [
                facts_of(path, limits, placing, check_all=verify, spark_options=started, progress=progress)
                for path in paths
            ]


@short_help(
    *("limits", "limits_file", "baseline", "engine", "channels", "exact"),
    *("out", "format", "_metrics"),
)
def check(
    artefacts: Annotated[
        list[Path],
        typer.Argument(
            metavar="ARTEFACT...",
            help="Plans, comparisons, runs, traces, counted keys, or JSON of partition evaluate.",
        ),
    ],
    *,
    given: LimitOptions,
    placing: PlacingOptions,
    verify: bool = setting(False, "Verify every byte against the manifest first.", None, "--verify"),
    out: Path | None = setting(None, "Write the outcome to this file and print it as a table.", "FILE", "--out", "-o"),
    format: CheckFormat = setting(CheckFormat.TABLE, "Format of the outcome, printed or written to -o."),
    force: ForceOption = False,
    _metrics: Annotated[
        bool,
        typer.Option("--metrics", help="List all metrics and exit.", callback=_show_metrics, is_eager=True),
    ] = False,
    spark: RunnerOptions,
) -> "Verdict":
    """Fail (exit 1) if a metric exceeds its limit.

    A limit is METRIC, optional [LABEL=VALUE] to select rows, and <=, <, >=, > or == with an amount. It must hold for
    every row; a value that was not measured fails. Starts Java only to count a trace.

    Example: adapt check web.plan --limit "times_best_possible<=1.2" --limit "pinned_keys<=1000"
    """
    from adapt.core.check.check_limits import judge
    from adapt.core.check.outcome import as_document, verdict_table
    from adapt.traces.store.atomic import check_free, write_whole

    asked = given.asked()
    if out is not None:
        check_free(out, force=force)
    paths = [*dict.fromkeys(artefacts), *([] if given.baseline is None else [given.baseline])]
    read = placing.facts(paths, asked, verify=verify, spark=spark)
    facts, before = (read, None) if given.baseline is None else (read[:-1], read[-1])
    verdict = judge(asked, facts, before)
    document = as_document(verdict, facts, before)
    if out is not None:
        write_whole(out, _text(verdict, document, format).encode("utf-8", "backslashreplace"), force=force)
        narrate_written(out)
    if out is not None or format in _SHOWN:
        show(verdict_table(verdict), Format.TABLE if out is not None else _SHOWN[format], document)
    else:
        with written_out():
            print(_text(verdict, document, format), end="")
    return verdict


_SHOWN = {CheckFormat.TABLE: Format.TABLE, CheckFormat.JSON: Format.JSON, CheckFormat.MD: Format.MD}


def _text(verdict: "Verdict", document: dict[str, object], format: CheckFormat) -> str:
    """The outcome as written to a file."""
    from adapt.core.check.outcome import junit_xml, verdict_table

    if format is CheckFormat.JUNIT:
        return junit_xml(verdict).decode()
    text = io.StringIO()
    show(verdict_table(verdict), _SHOWN[format], document, text)
    return text.getvalue()
