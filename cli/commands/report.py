"""`adapt report`: show artefacts as tables, as a page, or as data."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adapt.cli.options.groups import setting
from adapt.cli.options.result import Output
from adapt.cli.terminal.formats import csv_text
from adapt.cli.terminal.output import MOST_ROWS, for_people, narrate, narrate_written, show, verdict_of
from adapt.core.table import Table

if TYPE_CHECKING:
    from adapt.core.report.page import Page
    from adapt.traces.reports.reported import Report, Reported

DETAIL_ROWS = 8


def report(
    artefacts: Annotated[
        list[Path],
        typer.Argument(
            metavar="ARTEFACT...", help="Traces, counted keys, plans, comparisons, runs, drop plans, query networks."
        ),
    ],
    html: Path | None = setting(None, "Write a self-contained HTML page with charts.", "FILE"),
    charts: Path | None = setting(None, "Write each chart as SVG and PNG, its data as CSV.", "FOLDER"),
    verify: bool = setting(False, "Verify every byte against the manifest first.", None, "--verify"),
    *,
    output: Output,
) -> "Report":
    """Show artefacts as tables, as a self-contained page, or as data.

    Several artefacts of a kind are compared with the first, metric by metric. If counted keys are among the artefacts,
    the page also shows the migration between plans. The page loads nothing from the network and works without scripts.
    Does not start Java.

    Example: adapt report web.trace web.plans --html web.html
    """
    from adapt.traces.reports.differences import differences
    from adapt.traces.reports.reported import Report
    from adapt.traces.reports.reporting import as_document, as_page, reported

    read = [reported(path, check_all=verify) for path in artefacts]
    compared = differences(artefacts, read) if len(read) > 1 else []
    if html or charts:
        page = as_page(", ".join(artefact.name for artefact in read), read, compared)
    if charts is not None:
        _write_charts(page, charts, force=output.force)
        narrate_written(charts)
    if html is not None:
        from adapt.core.report.page import render_page
        from adapt.traces.reports.chart_library import kept_library
        from adapt.traces.store.atomic import write_whole

        write_whole(html, render_page(page, library=kept_library).encode(), force=output.force)
        narrate_written(html)
    for artefact in read:
        if artefact.sentences and artefact.kind != "run":
            narrate(f"{artefact.name}: {' '.join(artefact.sentences)}")
    shown = list(_shown(read, output))
    shown += [replace(table, note=table.note or each.sentences[0]) for each in compared for table in each.tables[:1]]
    show(
        shown,
        output.format,
        as_document(read, compared),
        lead=[_lead(artefact, read) for artefact in read if artefact.lead or artefact.kind == "run"],
    )
    return Report(tuple(read), html)


def _write_charts(page: "Page", folder: Path, *, force: bool) -> None:
    """Write every chart of a page that has data, numbered as on the page."""
    from adapt.core.report.svg import chart_files
    from adapt.traces.store.atomic import whole_folder

    drawn = [chart for section in page.sections for chart in section.charts if not chart.is_empty]
    with whole_folder(folder, force=force, local=True) as partial:
        for number, chart in enumerate(drawn, start=1):
            name = f"{number:02}-{re.sub('[^a-z0-9]+', '-', chart.title.lower()).strip('-')}"
            svg, png = chart_files(chart.spec)
            (partial / f"{name}.svg").write_text(svg, "utf-8")
            (partial / f"{name}.png").write_bytes(png)
            (partial / f"{name}.csv").write_text(csv_text([chart.table]), "utf-8")


def _lead(artefact: "Reported", read: "Sequence[Reported]") -> list[str]:
    """The verdict of an artefact, with its name if there are several."""
    headline, *sentences = verdict_of(artefact.lead or artefact.sentences)
    return [f"{artefact.name}: {headline}" if len(read) > 1 else headline, *sentences]


def _shown(read: "Sequence[Reported]", output: Output) -> "Iterator[Table]":
    """The tables of all artefacts, with the artefact's name if there are several; long ones are cut for people.

    After the first table of an artefact, long tables are cut to a few rows.
    """
    for artefact in read:
        for place, table in enumerate(artefact.tables if output.whole or not artefact.first else artefact.first):
            head = DETAIL_ROWS if place else MOST_ROWS
            kept = table if artefact.kind == "comparison" else for_people(table, output.format, head)
            yield replace(kept, title=f"{artefact.name}: {table.title}") if len(read) > 1 else kept
