"""The report of one artefact: sentences, tables, charts, provenance."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from adapt.core.charts.chart import Chart
from adapt.core.lint.finding import Finding
from adapt.core.reading import Reading
from adapt.core.table import Column, Displayed, Kind, Table
from adapt.core.values import human
from adapt.core.verdict.answer import Answer
from adapt.traces.store.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Reported:
    """The report of one artefact."""

    name: str  # name of the artefact
    kind: str  # trace, frequencies, plan, comparison, run, drop-plan table or network
    content_hash: str
    sentences: tuple[str, ...]  # summary, most important first
    tables: tuple[Table, ...]  # tables for a terminal and the page
    charts: tuple[Chart, ...]  # charts for the page; their tables are part of the data
    made: Mapping[str, Any]  # provenance
    lead: tuple[str, ...] = ()  # the verdict in words, the action first; empty without a verdict
    first: tuple[Table, ...] = ()  # tables shown by default; empty for all of them
    answer: Answer | None = None  # verdict, hot keys and channels, if the artefact has them
    findings: tuple[Finding, ...] = ()  # lint findings of a trace; the page shows them next to the verdict
    path: Path = Path()  # where it is
    rejected: tuple[str, ...] = ()  # what the sources behind it lost, in words
    plan: str = ""  # path of the plan that the verdict recommends; empty if it was not written

    def as_data(self) -> dict[str, Any]:
        """JSON data, with the tables of charts."""
        tables = {table.title: table for table in (*self.tables, *(chart.table for chart in self.charts))}
        return {
            "name": self.name,
            "kind": self.kind,
            "content_hash": self.content_hash,
            **({} if self.answer is None else self.answer.as_data()),
            "sentences": [*self.lead, *self.sentences],
            "tables": [
                {"title": table.title, "rows": table.records(), **({"note": table.note} if table.note else {})}
                for table in tables.values()
            ],
        }


@dataclass(frozen=True, slots=True, repr=False)
class Report(Displayed):
    """The reports of several artefacts."""

    artefacts: tuple[Reported, ...]  # one each, in the order asked for
    html: Path | None = None  # the page, if it was written

    @property
    def said(self) -> list[str]:
        """Verdicts and summaries."""
        return [sentence for each in self.artefacts for sentence in (*each.lead, *each.sentences, *each.rejected)]

    def displayed(self) -> list[Table]:
        """The tables of all artefacts."""
        return [table for each in self.artefacts for table in each.tables]


def reported_of(
    path: Path, manifest: Manifest, sentences: Sequence[str], tables: Sequence[Table], charts: Sequence[Chart]
) -> Reported:
    """The report of an artefact with a manifest."""
    made = {
        "artefact": path.name,
        "kind": manifest.kind,
        "content_hash": manifest.content_hash,
        **asdict(manifest.made),
    }
    return Reported(
        path.name,
        manifest.kind,
        manifest.content_hash,
        tuple(sentences),
        tuple(tables),
        tuple(charts),
        made,
        rejected=rejected(manifest.readings(path.name)),
    )


def rejected(readings: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """A sentence for each source that lost rows."""
    said = [(each["trace"], Reading.from_data(each).sentence) for each in readings.values()]
    return tuple(f"{trace}: {sentence}." for trace, sentence in said if sentence)


def shown(cell: Any, kind: Kind) -> str:
    """A cell as displayed."""
    return human(cell, Column("", kind))
