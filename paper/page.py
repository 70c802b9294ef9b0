"""The page of the papers, and its numbers."""

import csv
import io
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from adapt.core.report.page import Page, Section, render_page
from adapt.core.table import Column, Kind, Table
from adapt.core.values import plain
from adapt.traces.store.atomic import replace_whole
from paper.claims import Judged, Verdict, rule
from paper.report import Paper, Shown, claim_table, counted, marked, overview

SCHEMA = "adapt.paper/1"
"""Format of the page's data."""

MOST_BYTES = 6_000_000
"""Size limit of the page with all papers."""

MOST_CHARTS = 200

REHEARSAL = (
    "This is a rehearsal with few seeds, small domains and small stages: its verdicts do not apply to the papers' "
    "sizes."
)


def page_of(papers: Sequence[tuple[Paper[Any], Sequence[Shown]]], made: Mapping[str, Any], is_quick: bool) -> Page:
    """Page of some papers: a summary, then verdicts and parts."""
    sections = [_summary(papers, is_quick)]
    for paper, parts in papers:
        sections.append(_verdicts(paper, parts))
        sections += [part.section for part in parts]
    return Page("The papers, measured", sections, [dict(made), *({"paper": p.title, **p.made} for p, _ in papers)])


def write_page(
    folder: Path, papers: Sequence[tuple[Paper[Any], Sequence[Shown]]], made: Mapping[str, Any], is_quick: bool
) -> Path:
    """Write the page and its numbers.

    Args:
        folder: Folder for `index.html`, `paper.json`, `claims.csv` and a folder of tables.
        papers: Contents of each paper.
        made: How the page was made.
        is_quick: Whether this was a rehearsal.

    Returns:
        The page.
    """
    page = page_of(papers, made, is_quick)
    shown = [(paper.name, each) for paper, parts in papers for each in parts]
    claims = [(name, judged) for name, each in shown for judged in each.claims]
    tables = [(name, table) for name, each in shown for table in each.tables]
    data = {
        "schema": SCHEMA,
        "is_quick": is_quick,
        "made": page.made,
        "claims": [{"paper": name, **_claim_data(judged)} for name, judged in claims],
        "tables": [{"paper": name, "title": table.title, "rows": table.records()} for name, table in tables],
    }
    folder.mkdir(parents=True, exist_ok=True)
    replace_whole(folder / "index.html", render_page(page, MOST_BYTES, MOST_CHARTS).encode())
    replace_whole(folder / "paper.json", json.dumps(data, indent=1, allow_nan=False).encode())
    replace_whole(folder / "claims.csv", _csv(claim_table("claims", [judged for _, judged in claims])).encode())
    for number, (name, table) in enumerate(tables, 1):
        path = folder / "tables" / f"{number:02}-{_slug(f'{name} {table.title}')}.csv"
        path.parent.mkdir(exist_ok=True)
        replace_whole(path, _csv(table).encode())
    return folder / "index.html"


def _summary(papers: Sequence[tuple[Paper[Any], Sequence[Shown]]], is_quick: bool) -> Section:
    """Number of claims by paper and verdict."""
    held = {paper.name: _claims(parts) for paper, parts in papers}
    everything = [judged for claims in held.values() for judged in claims]
    verdicts = list(Verdict)
    columns = (Column("paper"), Column("claims", Kind.COUNT), *(Column(marked(each), Kind.COUNT) for each in verdicts))
    rows = [
        (name, len(claims), *([judged.verdict for judged in claims].count(each) for each in verdicts))
        for name, claims in held.items()
    ]
    sentences = [
        "Claims of the papers, measured with this program: the paper's number, ours with its 95 % confidence interval"
        f" over seeds, and a verdict by a stated rule. Of {len(everything)} claims {counted(everything)}.",
        *([REHEARSAL] if is_quick else []),
    ]
    return Section("All verdicts", sentences, (), [Table.from_rows("Claims by paper", columns, rows)])


def _verdicts(paper: Paper[Any], parts: Sequence[Shown]) -> Section:
    """Number of claims that hold, the rule, and every claim with number, interval and verdict."""
    claims = _claims(parts)
    sentences = [f"{paper.title}. Of {len(claims)} claims {counted(claims)}.", *paper.preface, rule(paper.runs)]
    table = overview(f"All claims of {paper.name}", claims)
    return Section(f"{paper.name}: claims and verdicts", sentences, (), [table], open_rows=len(claims))


def _claims(parts: Sequence[Shown]) -> list[Judged]:
    return [judged for part in parts for judged in part.claims]


def _claim_data(judged: Judged) -> dict[str, Any]:
    claim, ours = judged.claim, judged.ours
    return {
        "where": claim.source,
        "claim": claim.text,
        "reported": claim.reported,
        "certainty": claim.certainty,
        "measure": claim.measure,
        "mean": ours.mean,
        "low": ours.low,
        "high": ours.high,
        "runs": ours.runs,
        "verdict": judged.verdict.value,
        "why": judged.why,
    }


def _csv(table: Table) -> str:
    told = io.StringIO()
    writer = csv.writer(told, lineterminator="\n")
    writer.writerow(column.name for column in table.columns)
    writer.writerows([plain(cell) for cell in row] for row in table.rows)
    return told.getvalue()


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:60]
