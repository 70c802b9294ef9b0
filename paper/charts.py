"""Charts of measured means: lines and dots with their 95 % intervals, made from tables as those of reports are."""

import math
from collections.abc import Sequence
from typing import Any

from adapt.core.charts.axes import DASHED, colours, column_of, powers, shapes, ticks
from adapt.core.charts.chart import Chart, Records, chart
from adapt.core.charts.points import Real, is_real
from adapt.core.table import Table
from adapt.core.values import human

REACH = " ±"
"""What the column of half an interval is named, after the column of the mean."""

_MOST_TICKS = 16
"""Values that have a tick of their own on a logarithmic axis."""

_SPOT = {"type": "point", "filled": True, "size": 34, "opacity": 1}
_BAND = {"type": "area", "line": False, "opacity": 0.16, "aria": False}
_WHISKER = {"type": "rule", "strokeWidth": 1.6, "opacity": 0.7, "aria": False}


def lines(
    title: str,
    sentence: str,
    table: Table,
    x: str,
    y: str,
    series: str = "scheme",
    *,
    log_x: bool = False,
    log_y: bool = False,
    mark: float | None = None,
    only: Sequence[str] = (),
    order: Sequence[str] = (),
    up_to: float = math.inf,
    spots: bool = True,
) -> Chart:
    """One line a series, with a band of its intervals where the table has them.

    Args:
        title: Of the chart.
        sentence: What it shows.
        table: The numbers.
        x: The column across.
        y: The column of means; that of half intervals is named after it.
        series: The column that names the lines.
        log_x: A logarithmic axis across, with a tick at every value if they are few.
        log_y: A logarithmic axis upwards.
        mark: A value that a dashed line stands at.
        only: The series to draw; all if none is named.
        order: Series that have the colours of their places here, in every chart; others have those that follow.
        up_to: The greatest value across that is drawn.
        spots: Whether each mean is marked; not where they lie close.
    """
    points = [point for point in _points(table, x, y, series, only, log_y) if point["x"] <= up_to]
    colour, shape = _looks(points, order)
    across: dict[str, Any] = {"field": "x", "type": "quantitative", "axis": {**ticks(table, x), "labelOverlap": True}}
    across["scale"] = {"type": "log" if log_x else "linear", "zero": False, "nice": False, "padding": 8}
    if log_x:
        values = sorted({point["x"] for point in points})
        across["axis"] |= {"values": values} if len(values) <= _MOST_TICKS else powers(values)
    up = _upwards(table, y, points, log_y)
    both: dict[str, Any] = {"x": across, "color": colour}
    layers: list[dict[str, Any]] = [
        {"mark": _BAND, "encoding": {**both, "y": {**up, "field": "low"}, "y2": {"field": "high"}}},
        {"mark": "line", "encoding": {**both, "y": up}},
    ]
    if spots:
        described = {"description": {"field": "d"}}
        layers.append({"mark": _SPOT, "encoding": {**both, "shape": shape, "y": up, **described}})
    return chart(title, {"height": 250, "layer": _marked(layers, mark)}, points, sentence, table)


def dots(
    title: str,
    sentence: str,
    table: Table,
    group: str,
    y: str,
    series: str = "scheme",
    *,
    log_y: bool = False,
    mark: float | None = None,
    only: Sequence[str] = (),
    order: Sequence[str] = (),
) -> Chart:
    """A dot with its interval for each series, side by side in each group; arguments as those of `lines`."""
    points = _points(table, group, y, series, only, log_y)
    colour, shape = _looks(points, order)
    groups = list(dict.fromkeys(point["x"] for point in points))
    axis = {"title": group, "labelAngle": 0, "ticks": False, "domain": False}
    across = {"field": "x", "type": "nominal", "sort": groups, "axis": axis, "scale": {"paddingInner": 0.25}}
    beside = {"field": "series", "type": "nominal", "sort": colour["scale"]["domain"]}
    up = _upwards(table, y, points, log_y)
    spread = {"x": across, "xOffset": beside, "color": colour}
    layers: list[dict[str, Any]] = [
        {"mark": _WHISKER, "encoding": {**spread, "y": {**up, "field": "low"}, "y2": {"field": "high"}}},
        {
            "mark": {**_SPOT, "size": 52},
            "encoding": {**spread, "shape": shape, "y": up, "description": {"field": "d"}},
        },
    ]
    return chart(title, {"height": 250, "layer": _marked(layers, mark)}, points, sentence, table)


def scatter(
    title: str, sentence: str, table: Table, x: str, y: str, series: str, *, order: Sequence[str] = ()
) -> Chart:
    """A small dot for each row; arguments as those of `lines`. Rows that come later lie above those before."""
    points = _points(table, x, y, series, (), log_y=False)
    colour, shape = _looks(points, order)
    across = {"field": "x", "type": "quantitative", "scale": {"zero": True, "nice": False}, "axis": ticks(table, x)}
    encoding = {"x": across, "y": _upwards(table, y, points, log_y=False), "color": colour, "shape": shape}
    mark = {**_SPOT, "size": 22, "opacity": 0.8, "aria": False}
    return chart(title, {"height": 250, "mark": mark, "encoding": encoding}, points, sentence, table)


def _looks(points: Records, order: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The colour and the shape of each series, and a legend that does not fade as its bands do."""
    present = list(dict.fromkeys(point["series"] for point in points))
    ranked = [*order, *(name for name in present if name not in order)]
    drawn = sorted(present, key=ranked.index)
    legend = {"symbolOpacity": 1} if len(drawn) > 1 else None
    looks = []
    for channel in (colours(ranked), shapes(ranked)):
        given = [channel["scale"]["range"][ranked.index(name)] for name in drawn]
        looks.append({**channel, "scale": {"domain": drawn, "range": given}, "legend": legend})
    return looks[0], looks[1]


def _marked(layers: list[dict[str, Any]], mark: float | None) -> list[dict[str, Any]]:
    """The layers over a dashed line, if there is to be one."""
    if mark is None:
        return layers
    # A layer with one datum of its own, or the line would be drawn once a point.
    line = {"data": {"values": [{}]}, "mark": {**DASHED, "type": "rule"}, "encoding": {"y": {"datum": mark}}}
    return [line, *layers]


def _upwards(table: Table, y: str, points: Records, log_y: bool) -> dict[str, Any]:
    axis = ticks(table, y)
    if log_y:
        axis |= powers([point[end] for point in points for end in ("low", "high")])
    scale = {"type": "log" if log_y else "linear", "zero": False, "nice": not log_y}
    return {"field": "y", "type": "quantitative", "scale": scale, "axis": axis}


def _points(table: Table, x: str, y: str, series: str, only: Sequence[str], log_y: bool) -> Records:
    points: Records = []
    for record in table.records():
        height, name = record[y], str(record[series])
        if is_real(height) and (height > 0 or not log_y) and (not only or name in only):
            low, high = _ends(height, record.get(y + REACH))
            across = f"{name}, {human(record[x], column_of(table, x))}: "
            said = across + human(height, column_of(table, y))
            points.append({"x": record[x], "y": height, "low": low, "high": high, "series": name, "d": said})
    return points


def _ends(height: Real, reach: Any) -> tuple[Real, Real]:
    """The interval; never down to zero, which a logarithmic axis lacks."""
    if not is_real(reach):
        return height, height
    return max(height - reach, height * 0.01) if height > 0 else height - reach, height + reach
