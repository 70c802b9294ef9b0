"""Charts over time or periods."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from adapt.core.charts.axes import (
    DASHED,
    PALETTE,
    across,
    bin_size,
    colours,
    column_of,
    has,
    highest_of_neighbours,
    is_real,
    named,
    up,
)
from adapt.core.charts.chart import Chart, Records, chart
from adapt.core.table import Kind, Table
from adapt.core.values import human, number

MOST_POINTS = 600
_MOST_BARS = 120


def rate_over_time(table: Table, time: str = "time", peak: str = "peak") -> Chart:
    """Arrivals per interval, with the peak of each if known."""
    names = ["rows"] + ([peak] if has(table, peak) else [])
    points, said = _along(table, time, names, MOST_POINTS)
    drawn = [point for point in points if point["series"] == "rows" and is_real(point["y"])]
    sentence = f"The {named(table, 'rows')} of each interval"
    if drawn:
        top = max(drawn, key=lambda point: float(point["y"]))
        sentence += f"; the highest, {human(top['y'], column_of(table, 'rows'))}, around {_at(table, time, top)}"
    filled = {"mark": {"type": "area", "color": PALETTE[0], "opacity": 0.18, "line": False}, **_only("rows")}
    lines = {"mark": "line", "encoding": {"color": colours(names)}}
    encoding = {"x": across(table, time), "y": up(table, "rows", zero=True)}
    return chart(
        "Rate over time", {"encoding": encoding, "layer": [filled, lines]}, points, f"{sentence}.{said}", table
    )


def imbalance_per_period(table: Table, at: str = "start") -> Chart:
    """The imbalance of each period, with its floor."""
    at = _place(table, at)
    names = ["imbalance"] + (["best_possible"] if has(table, "best_possible") else [])
    nothing = "imbalance_today"
    does = has(table, nothing) and any(is_real(cell) for cell in table.values(nothing))
    points, said = _along(table, at, names + ([nothing] if does else []), MOST_POINTS)
    sentence = f"The {named(table, 'imbalance')} of each period"
    if does:
        sentence += "; the gray line is that of today's placement"
    if len(names) > 1:
        sentence += "; the dashed line is best_possible, the best possible without splitting keys"
    dots = {"size": 22, "color": PALETTE[0]} if len(points) <= _MOST_BARS else False
    layers = [
        {"mark": {"type": "line", "color": PALETTE[0], "point": dots}, **_only("imbalance")},
        {"mark": DASHED, **_only("best_possible")},
    ]
    encoding = {"x": across(table, at), "y": up(table, "imbalance"), "description": {"field": "d"}}
    layers = layers[: len(names)]
    if does:
        layers.insert(0, {"mark": {"type": "line", "color": PALETTE[-1]}, **_only(nothing)})
    body = {"encoding": encoding, "layer": layers}
    return chart("Imbalance per period", body, points, f"{sentence}.{said}", table)


def imbalance_of_placements(table: Table, names: Sequence[str], floor: str | None = None) -> Chart:
    """The imbalance of several placements over time, with their floor if known."""
    points, said = _along(table, "start", [*names, *([floor] if floor else [])], MOST_POINTS)
    lines = {
        "mark": {"type": "line", "point": {"size": 22}},
        "transform": [{"filter": {"field": "series", "oneOf": list(names)}}],
        "encoding": {"color": colours(names)},
    }
    up_from = up(table, floor or names[0])
    y = up_from | {"axis": up_from["axis"] | {"title": "imbalance (busiest / mean load)"}}
    encoding = {"x": across(table, "start"), "y": y, "description": {"field": "d"}}
    body = {"encoding": encoding, "layer": [lines, *([{"mark": DASHED, **_only(floor)}] if floor else [])]}
    sentence = f"The imbalance of each window{f'; the dashed line is the {floor}' if floor else ''}.{said}"
    return chart(table.title, body, points, sentence, table)


def migration_per_period(table: Table, at: str = "start") -> Chart:
    """The state migrated for each period, as bars of equal width."""
    at = _place(table, at)
    points, said = _along(table, at, ["state_moved"], _MOST_BARS)
    steps = (after["x"] - before["x"] for before, after in pairwise(points))
    step = min((step for step in steps if step > 0), default=1)
    for point in points:
        point |= {"until": point["x"] + 0.82 * step, "zero": 0}
    encoding = {
        "x": across(table, at),
        "x2": {"field": "until"},
        "y": up(table, "state_moved", zero=True),
        "y2": {"field": "zero"},
        "description": {"field": "d"},
    }
    mark = {"type": "rect", "color": PALETTE[1]}
    sentence = f"The {named(table, 'state_moved')} of each period.{said}"
    return chart("Migration per period", {"mark": mark, "encoding": encoding}, points, sentence, table)


def _place(table: Table, at: str) -> str:
    """The column on the x axis: `at`, or the period number if `at` is missing or not unique."""
    if not has(table, at):
        return "period"
    places = [place for place in table.values(at) if place is not None]
    return "period" if len(set(places)) < len(places) and has(table, "period") else at


def _along(table: Table, at: str, names: Sequence[str], most: int) -> tuple[Records, str]:
    """Points of several columns along `at`, downsampled by maxima if too many."""
    places = table.values(at)
    size = bin_size(len(places), most)
    milliseconds = column_of(table, at).kind is Kind.TIME
    points: Records = []
    for name in names:
        column = column_of(table, name)
        for place, height in zip(places[::size], highest_of_neighbours(table.values(name), size), strict=True):
            if is_real(place):
                point = {"x": place / 1000 if milliseconds else place, "y": height, "series": name}
                points.append(point | {"d": f"{_at(table, at, point)}: {name} {human(height, column)}"})
    if not any(is_real(point["y"]) for point in points):
        return [], ""
    return points, f" Each point is the maximum of {size:,} neighboring rows." if size > 1 else ""


def _at(table: Table, name: str, point: Mapping[str, Any]) -> str:
    column = column_of(table, name)
    return human(round(point["x"] * 1000), column) if column.kind is Kind.TIME else f"{name} {number(point['x'])}"


def _only(series: str) -> dict[str, Any]:
    return {"transform": [{"filter": {"field": "series", "equal": series}}]}
