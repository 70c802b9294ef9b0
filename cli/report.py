"""`adapt report`: artefacts as tables, as a page, as data; starts no Java."""

from pathlib import Path
from typing import Annotated

import typer

from adapt.cli.options import ForceOption
from adapt.cli.output import Format, FormatOption, narrate, show


def report(
    artefacts: Annotated[
        list[Path], typer.Argument(metavar="ARTEFACT...", help="Traces, counted keys, plans, comparisons, runs.")
    ],
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write one self-contained page, with charts.")
    ] = None,
    title: Annotated[str, typer.Option("--title", help="The page's title.")] = "",
    format: FormatOption = Format.TABLE,
    force: ForceOption = False,
) -> None:
    """Show what artefacts hold: tables in the terminal, a self-contained page, or data.

    Example: adapt report web.trace web.plans --html web.html
    """
    from adapt.traces.reporting import as_document, as_page, reported

    read = [reported(path) for path in artefacts]
    if html is not None:
        from adapt.core.report.page import render_page
        from adapt.traces.artefacts.whole import write_whole

        page = render_page(as_page(title or ", ".join(artefact.name for artefact in read), read))
        write_whole(html, page.encode(), force=force)
        narrate(f"wrote {html}")
    for artefact in read:
        for sentence in artefact.sentences:
            narrate(sentence)
    show([table for artefact in read for table in artefact.tables], format, as_document(read))
