"""Horizontal bars with labels."""

from collections.abc import Sequence

from adapt.core.charts.chart import Chart, Records, chart
from adapt.core.charts.points import Real
from adapt.core.table import Column, Table
from adapt.core.values import human


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
