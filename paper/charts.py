"""Charts of measured means with 95 % confidence intervals."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from adapt.core.charts.axes import DASHED, Real, colours, column_of, is_real, powers, shapes, ticks
from adapt.core.charts.chart import Chart, Records, chart
from adapt.core.table import Table
from adapt.core.values import human

REACH = " ±"
"""Suffix of the column with half the interval, after the name of the mean's column."""

_MOST_TICKS = 16
"""Most values that get their own tick on a logarithmic axis."""

_POWERS = [1e-5, 1e-4, 1e-3, 1e-2, 1e-1]
_CELLS = ["less", "0.001 %", "0.01 %", "0.1 %", "1 %", "10 % or more"]
"""Shares at which the color of a cell changes, and their names."""

_BRIGHTER = ["#352a5e", "#3b528b", "#21908d", "#40b474", "#8fd744", "#fde725"]

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
    """Lines by series, with bands of their intervals.

    Args:
        title: Title of the chart.
        sentence: Caption.
        table: Table with the numbers.
        x: Column of the horizontal axis.
        y: Column of means; the column of half intervals is named after it.
        series: Column that names the lines.
        log_x: Whether the horizontal axis is logarithmic, with a tick at every value if they are few.
        log_y: Whether the vertical axis is logarithmic.
        mark: Value of a dashed line.
        only: Series to draw; default: all.
        order: Series whose colors are fixed by their places here, in every chart; others get the next colors.
        up_to: Largest horizontal value that is drawn.
        spots: Whether to mark each mean.
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
    """Dots with intervals by series, side by side in groups.

    Arguments as for `lines`.
    """
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
    """Small dots by row, later rows on top.

    Arguments as for `lines`.
    """
    points = _points(table, x, y, series, (), log_y=False)
    colour, shape = _looks(points, order)
    across = {"field": "x", "type": "quantitative", "scale": {"zero": True, "nice": False}, "axis": ticks(table, x)}
    encoding = {"x": across, "y": _upwards(table, y, points, log_y=False), "color": colour, "shape": shape}
    mark = {**_SPOT, "size": 22, "opacity": 0.8, "aria": False}
    return chart(title, {"height": 250, "mark": mark, "encoding": encoding}, points, sentence, table)


def heat(
    title: str,
    sentence: str,
    table: Table,
    x: str,
    y: str,
    share: str,
    most: float,
    edge: Sequence[tuple[Real, Real]],
) -> Chart:
    """Square cells, the brighter the higher their share, in powers of ten.

    Args:
        title: Title of the chart.
        sentence: Caption.
        table: One row per cell with a share.
        x: Column of the lower ends of cells, evenly spaced.
        y: The same, upwards.
        share: Column of the share.
        most: The highest value of both axes.
        edge: Points of a dashed line, from left to right.
    """
    cells = np.array([[record[each] for each in (x, y, share)] for record in table.records()], np.float64)
    width = float(np.diff(np.unique(cells[:, 0])).min())
    names = [_CELLS[power] for power in np.searchsorted(_POWERS, cells[:, 2], "right")]
    points: Records = [
        {"x": left, "x2": left + width, "y": low, "y2": low + width, "series": name}
        for (left, low, _), name in zip(cells.tolist(), names, strict=True)
    ]
    ends = {"type": "quantitative", "scale": {"domain": [0, most], "nice": False}}
    scale = {"domain": list(reversed(_CELLS)), "range": list(reversed(_BRIGHTER))}
    encoding = {
        "x": {**ends, "field": "x", "axis": ticks(table, x)},
        "x2": {"field": "x2"},
        "y": {**ends, "field": "y", "axis": ticks(table, y)},
        "y2": {"field": "y2"},
        "color": {"field": "series", "type": "nominal", "scale": scale, "legend": {"symbolType": "square"}},
    }
    line = {
        "data": {"values": [{"x": at, "y": up} for at, up in edge]},
        "mark": {**DASHED, "opacity": 1},
        "encoding": {"x": {**ends, "field": "x"}, "y": {**ends, "field": "y"}},
    }
    layers = [{"mark": {"type": "rect", "aria": False}, "encoding": encoding}, line]
    return chart(title, {"height": 250, "layer": layers}, points, sentence, table)


def _looks(points: Records, order: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Color and shape of each series, and a legend without the transparency of the bands."""
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
    """The layers on top of the dashed line, if any."""
    if mark is None:
        return layers
    # A layer with a single datum, or the line would be drawn once per point.
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
    """The interval, kept above zero for a logarithmic axis."""
    if not is_real(reach):
        return height, height
    return max(height - reach, height * 0.01) if height > 0 else height - reach, height + reach
