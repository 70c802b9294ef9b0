"""Read artefacts and combine them into a page or a document."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from adapt.core.charts.chart import Chart
from adapt.core.engines.names import Engine
from adapt.core.errors import BadInput
from adapt.core.lint.finding import LINT
from adapt.core.report.first_screen import first_screen
from adapt.core.report.page import OPEN_ROWS, Page, Section
from adapt.core.report.verdict_charts import (
    imbalance_against_state,
    life_lines,
    out_of_sample,
    skew_over_time,
    workers_before_after,
)
from adapt.core.table import Table
from adapt.traces.locations.run_folders import in_run, is_table
from adapt.traces.locations.series_path import SeriesPath
from adapt.traces.read_errors import readable
from adapt.traces.reports.differences import Differences
from adapt.traces.reports.reported import Reported
from adapt.traces.series import stream_of
from adapt.traces.spark.progress import silent
from adapt.traces.store.manifest import read_manifest, verify
from adapt.traces.store.trace import open_trace

SCHEMA = "adapt.report/2"

_FOLDED_ROWS = 6
"""Among several artefacts, longer tables are folded."""

_FOLDERS = {
    "trace": "of_trace",
    "frequencies": "of_frequencies",
    "comparison": "of_comparison",
    "run": "of_run",
    "drop-plan table": "of_drop_plans",
}
"""Module for each kind of artefact that is a folder."""

_HEADINGS = {
    "trace": "Trace",
    "frequencies": "Keys",
    "plan": "Plan",
    "comparison": "Schemes compared",
    "run": "Run",
    "drop-plan table": "Drop plans",
    "network": "Network",
}


def reported(path: Path, *, check_all: bool = False) -> Reported:
    """Read one artefact for a report.

    Args:
        check_all: Verify every byte against the SHA-256 hashes of the manifest first.
    """
    with readable(path):
        stream = stream_of(in_run(path))
        found = replace(_read(stream, check_all=check_all), path=path)
        if isinstance(stream, SeriesPath):
            return replace(found, sentences=(f"{len(stream.members)} traces as one stream.", *found.sentences))
        return found


def _read(path: Path, *, check_all: bool) -> Reported:
    if is_table(path):
        from adapt.traces.reports.of_frequencies import of_counts

        return of_counts(path)
    if path.is_file():
        return _reporter("of_network" if path.suffix == ".toml" else "of_plan")(path)
    if not path.exists():
        raise BadInput(f"{path} does not exist; give an artefact written by `adapt ingest`, `partition` or `replay`")
    manifest = read_manifest(path)
    if manifest.kind not in _FOLDERS:
        raise BadInput(f"{path} is a {manifest.kind}, which has no report")
    if check_all:
        verify(path, manifest)
    return _reporter(_FOLDERS[manifest.kind])(path, manifest)


def _reporter(module: str) -> Callable[..., Reported]:
    """The function that reports one kind of artefact, imported on demand."""
    report: Callable[..., Reported] = import_module(f"adapt.traces.reports.{module}").reported
    return report


def as_page(title: str, artefacts: Sequence[Reported], compared: Sequence[Differences] = ()) -> Page:
    """The page of artefacts: verdicts first, then differences, then one section each."""
    verdicts = [_answered(artefact, artefacts) for artefact in artefacts if artefact.lead]
    differing = [Section(each.heading, each.sentences, each.charts, each.tables) for each in compared]
    sections = [
        Section(
            f"{_HEADINGS[artefact.kind]}: {artefact.name}",
            (*artefact.sentences, *artefact.rejected),
            artefact.charts,
            [
                *(table for table in artefact.tables if not (artefact.findings and table.title == LINT)),
                *(_candidates(artefact.path, artefacts) if artefact.kind == "trace" else ()),
            ],
            open_rows=_FOLDED_ROWS if len(artefacts) > 1 else OPEN_ROWS,
            findings=() if verdicts else artefact.findings,
        )
        for artefact in artefacts
    ]
    return Page(title, [*verdicts, *differing, *sections], [artefact.made for artefact in artefacts])


def _candidates(path: Path, others: Sequence[Reported]) -> list[Table]:
    """Columns of a trace as keys, for the engine and workers of a verdict on the page; else 8 workers of Spark."""
    from adapt.traces.which_key import AUTO, Question, judged_beside

    verdict = next((each.answer.verdict for each in others if each.answer and each.answer.verdict), None)
    channels = 8 if verdict is None else verdict.channels
    engine = Engine.SPARK if verdict is None or verdict.engine not in list(Engine) else Engine(verdict.engine)
    trace = open_trace(stream_of(in_run(path)))
    found = judged_beside(trace, (), Question(AUTO, (), engine, channels), None, silent)
    return [] if found is None else [found.table()]


def _answered(artefact: Reported, others: Sequence[Reported]) -> Section:
    """The section with the verdict of an artefact, and what lint found in the traces."""
    headline, *sentences = artefact.lead
    charts: list[Chart] = []
    tables: list[Table] = []
    answer, first = artefact.answer, None
    if answer is not None:
        first = first_screen(answer, _trace_of(artefact, others), artefact.plan)
        tables = answer.tables()
        verdict = answer.verdict
        limit = None if verdict is None else verdict.max_imbalance
        charts += [] if answer.channels is None else [workers_before_after(answer.channels, limit)]
        if verdict is not None and verdict.out_of_sample is not None:
            charts.append(out_of_sample(verdict.out_of_sample))
        elif verdict is not None and verdict.over_time is not None:
            charts.append(skew_over_time(verdict.over_time.table()))
        if answer.frontier is not None:
            charts.append(imbalance_against_state(answer.frontier, limit))
        if len(answer.hot_keys.starts_us) > 1:
            lines = answer.hot_keys.lines_table()
            charts.append(life_lines(lines))
            tables.append(lines)
    heading = f"Verdict on {artefact.name}: {headline if first is None else first.status}"
    findings = [finding for other in others for finding in other.findings]
    return Section(heading, sentences, charts, tables, _FOLDED_ROWS, first=first, findings=findings)


def _trace_of(artefact: Reported, others: Sequence[Reported]) -> str:
    """The trace that an artefact was made from: its path if it is on the page, or its name."""
    names = [str(each["name"]) for each in artefact.made.get("inputs") or () if "name" in each]
    paths = [str(other.path) for other in others if other.kind == "trace" and other.name in names]
    return (*paths, *names, artefact.name)[0]


def as_document(artefacts: Sequence[Reported], compared: Sequence[Differences] = ()) -> dict[str, Any]:
    """One JSON document."""
    differences = {"differences": [each.data for each in compared]} if compared else {}
    return {"schema": SCHEMA, "artefacts": [artefact.as_data() for artefact in artefacts], **differences}
