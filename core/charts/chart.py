"""A chart: a Vega-Lite spec, the sentence that says what it shows, and the table all its numbers are from."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from adapt.core.table import Table

Spec: TypeAlias = Mapping[str, Any]
Records: TypeAlias = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Chart:
    """One chart. No number in it is missing from its table, unless its sentence says how it follows from it."""

    title: str
    spec: Spec
    sentence: str
    table: Table

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not self.spec["data"]["values"]


def chart(title: str, body: Spec, points: Records, sentence: str, table: Table) -> Chart:
    """A chart of `points`, as wide as it will be drawn; `body` holds marks, encodings, and a height if not usual."""
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v5.json",
        "description": title,
        "height": 240,
        "autosize": {"type": "fit-x", "contains": "padding"},
        "data": {"values": points},
        **body,
    }
    return Chart(title, spec, sentence, table)
