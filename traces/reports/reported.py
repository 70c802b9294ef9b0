"""What is to be said of one artefact: sentences, tables and charts, and how it was made."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from adapt.core.charts.chart import Chart
from adapt.core.table import Column, Kind, Table
from adapt.core.values import human
from adapt.core.verdict.answer import Answer
from adapt.traces.store.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Reported:
    """What is to be said of one artefact.

    Attributes:
        name: The artefact's name.
        kind: trace, frequencies, plan, comparison, run, drop-plan table or network.
        content_hash: Of what it holds.
        sentences: What there is to know, first things first.
        tables: What is shown in a terminal and on the page.
        charts: What is drawn on the page; their tables are part of the data too.
        made: How the artefact was made.
        lead: The verdict in words, its class first; nothing in artefacts without one.
        first: The tables that people need first; nothing where that is all of them.
        answer: What is told of the stream first: the verdict, its hot keys, its channels.
    """

    name: str
    kind: str
    content_hash: str
    sentences: tuple[str, ...]
    tables: tuple[Table, ...]
    charts: tuple[Chart, ...]
    made: Mapping[str, Any]
    lead: tuple[str, ...] = ()
    first: tuple[Table, ...] = ()
    answer: Answer | None = None

    def as_data(self) -> dict[str, Any]:
        """The artefact's tables as JSON data, those behind charts included."""
        tables = {table.title: table for table in (*self.tables, *(chart.table for chart in self.charts))}
        return {
            "name": self.name,
            "kind": self.kind,
            "content_hash": self.content_hash,
            **({} if self.answer is None else self.answer.as_data()),
            "sentences": [*self.lead[1:], *self.sentences],
            "tables": [
                {"title": table.title, "rows": table.records(), **({"note": table.note} if table.note else {})}
                for table in tables.values()
            ],
        }


def reported_of(
    path: Path, manifest: Manifest, sentences: Sequence[str], tables: Sequence[Table], charts: Sequence[Chart]
) -> Reported:
    """What is to be said of an artefact with a manifest."""
    made = {
        "artefact": path.name,
        "kind": manifest.kind,
        "content_hash": manifest.content_hash,
        **asdict(manifest.made),
    }
    return Reported(
        path.name, manifest.kind, manifest.content_hash, tuple(sentences), tuple(tables), tuple(charts), made
    )


def shown(cell: Any, kind: Kind) -> str:
    """A cell as people read it."""
    return human(cell, Column("", kind))
