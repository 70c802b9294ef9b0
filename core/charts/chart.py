"""Charts: a Vega-Lite spec with its caption and table; horizontal bars."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from adapt.core.charts.axes import Real
from adapt.core.table import Column, Table
from adapt.core.values import human

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


def written_bars(title: str, pairs: Sequence[tuple[str, Real]], column: Column, sentence: str, table: Table) -> Chart:
    """A bar for each name, in order.

    Args:
        pairs: Distinct names and the lengths of their bars.
    """
    points: Records = [
        {"k": name, "y": length, "t": human(length, column), "d": f"{name}: {human(length, column)}"}
        for name, length in pairs
    ]
    room = 1.22 * max((point["y"] for point in points), default=0) or 1
    encoding = {
        "y": {"field": "k", "type": "nominal", "sort": None, "axis": {"title": None}},
        "x": {"field": "y", "type": "quantitative", "scale": {"domain": [0, room], "nice": False}, "axis": None},
        "description": {"field": "d"},
    }
    written = {"mark": {"type": "text", "align": "left", "dx": 5, "aria": False}, "encoding": {"text": {"field": "t"}}}
    body = {"height": {"step": 22}, "encoding": encoding, "layer": [{"mark": "bar"}, written]}
    return chart(title, body, points, sentence, table)
