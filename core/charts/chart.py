"""A chart: a Vega-Lite spec, a caption, and the table behind it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from adapt.core.table import Table

Spec: TypeAlias = Mapping[str, Any]
Records: TypeAlias = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart, with a sentence and the table of its numbers."""

    title: str
    spec: Spec
    sentence: str
    table: Table

    @property
    def is_empty(self) -> bool:
        """Whether the chart has no points."""
        return not self.spec["data"]["values"]


def chart(title: str, body: Spec, points: Records, sentence: str, table: Table) -> Chart:
    """A chart of `points`; `body` has marks, encodings, optionally a height."""
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "description": title,
        "height": 240,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": points},
        **body,
    }
    return Chart(title, spec, sentence, table)
