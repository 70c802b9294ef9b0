"""Charts of schemes by channel count: imbalance, migration, trade-off."""

from collections.abc import Mapping, Sequence
from typing import Any

from adapt.core.charts.axes import (
    DASHED,
    INK,
    PALETTE,
    Real,
    colours,
    column_of,
    has,
    is_real,
    set_apart,
    shapes,
    spans_magnitudes,
    ticks,
    up,
)
from adapt.core.charts.chart import Chart, Records, chart
from adapt.core.labels import as_today, label, today_in
from adapt.core.table import Cell, Table
from adapt.core.values import human

MOST_SERIES = 10


def comparison(table: Table) -> tuple[Chart, ...]:
    """Imbalance by channel count, and migration if anything moved."""
    charts = [imbalance_by_channels(table)]
    if has(table, "m") and any(is_real(cell) and cell != 0 for cell in table.values("m")):
        charts += [migration_by_channels(table), three_way_trade(table)]
    return tuple(charts)


def imbalance_by_channels(table: Table) -> Chart:
    """Imbalance of each scheme at each channel count, and its floor."""
    text = "The imbalance (load of the busiest worker over the mean) of each scheme"
    return _by_channels(table, "Imbalance", text, "imbalance", "best_possible")


def migration_by_channels(table: Table) -> Chart:
    """State that each scheme moves on the way to each channel count."""
    text = "The migration factor m (state moved over the state of an average worker) of each scheme"
    return _by_channels(table, "Migration", text, "m", "")


def three_way_trade(table: Table) -> Chart:
    """Imbalance against migration; mark size is the number of pinned keys."""
    most = max(filter(is_real, table.values("channels")), default=0)
    named_columns = {name: column_of(table, name) for name in ("imbalance", "m", "pinned_keys") if has(table, name)}
    points: Records = []
    today = today_in(table)
    for record in table.records():
        x, y, keys = record["imbalance"], record["m"], record.get("pinned_keys")
        if record["channels"] == most and is_real(x) and is_real(y):
            values = {"imbalance": x, "m": y, **({"pinned_keys": keys} if is_real(keys) else {})}
            amounts = ", ".join(f"{name} {human(amount, named_columns[name])}" for name, amount in values.items())
            name = _scheme(record, today)
            points.append({"x": x, "y": y, "size": keys if is_real(keys) else 0, "t": name, "d": f"{name}: {amounts}"})
    set_apart(points)
    across = {**_scaled([point["x"] for point in points]), "axis": {**ticks(table, "imbalance"), "grid": True}}
    upwards = {**_scaled([point["y"] for point in points]), "axis": ticks(table, "m")}
    encoding = {
        "x": {"field": "x", "type": "quantitative", **across},
        "y": {"field": "y", "type": "quantitative", **upwards},
    }
    area = {"field": "size", "type": "quantitative", "scale": {"range": [40, 700], "zero": True}, "legend": None}
    layers = [
        {
            "mark": {"type": "circle", "color": PALETTE[0], "opacity": 0.55},
            "encoding": {"size": area, "description": {"field": "d"}},
        },
        {
            "mark": {"type": "text", "align": "left", "dx": 9, "color": INK, "aria": False},
            "encoding": {"text": {"field": "t"}, "y": {**encoding["y"], "field": "at"}},
        },
    ]
    sentence = (
        f"The imbalance of each scheme at {human(most, column_of(table, 'channels'))} workers against the migration"
        " factor m (state moved over the state of an average worker): the lower left is best. Larger marks pin more"
        " keys."
    )
    return chart(
        "Imbalance, migration and pinned keys",
        {"height": 300, "encoding": encoding, "layer": layers},
        points,
        sentence,
        table,
    )


def _by_channels(table: Table, what: str, text: str, value: str, floor: str) -> Chart:
    floor = floor if floor and has(table, floor) else ""
    sentence = f"{text}; lower is better"
    if floor:
        sentence += "; the dashed line is the best possible imbalance without splitting keys"
    points, shown = _lowest(_by_scheme(table, value, floor))
    if len({point["x"] for point in points}) > 1:
        title, body = f"{what} by number of channels", _lines(table, value, floor, points)
    else:
        title, body = f"{what} of each scheme", _rows(table, value, floor, points)
    return chart(title, body, points, f"{sentence}.{shown}", table)


def _lines(table: Table, value: str, floor: str, points: Records) -> dict[str, Any]:
    """One line per scheme over the channel counts."""
    names = list(dict.fromkeys(point["series"] for point in points))
    upwards = {**up(table, value), **_scale(points)}
    across = {
        "field": "x",
        "type": "quantitative",
        "scale": {"zero": False, "nice": False, "padding": 8},
        "axis": ticks(table, "channels", whole=True),
    }
    spots = {"type": "point", "filled": True, "size": 46, "opacity": 1}
    series = {"color": colours(names), "shape": shapes(names)}
    layers: list[dict[str, Any]] = [
        {"mark": "line", "encoding": {"color": colours(names), "y": upwards}},
        {"mark": spots, "encoding": {**series, "y": upwards, "description": {"field": "d"}}},
    ]
    if floor:
        layers.insert(0, {"mark": DASHED, "encoding": {"y": {**upwards, "field": "floor", "aggregate": "min"}}})
    return {"height": 280, "encoding": {"x": across}, "layer": layers}


def _rows(table: Table, value: str, floor: str, points: Records) -> dict[str, Any]:
    """One dot per scheme, for a single channel count."""
    across = {
        **up(table, value),
        "scale": {**_scale(points)["scale"], "padding": 10},
        "axis": {**ticks(table, value), "grid": True},
    }
    rows = {"field": "series", "type": "nominal", "sort": None, "axis": {"title": None, "grid": True}}
    dots = {"type": "point", "filled": True, "size": 90, "color": PALETTE[0], "opacity": 1}
    layers = [{"mark": dots, "encoding": {"x": across, "y": rows, "description": {"field": "d"}}}]
    if floor:
        rule = {**DASHED, "type": "rule"}
        layers.append({"mark": rule, "encoding": {"x": {**across, "field": "floor", "aggregate": "min"}}})
    return {"height": {"step": 26}, "layer": layers}


def _by_scheme(table: Table, value: str, floor: str) -> Records:
    """One point per row with numbers; the series is the scheme with its construction."""
    points: Records = []
    today = today_in(table)
    for record in table.records():
        series = _scheme(record, today)
        height, channels, under = record[value], record["channels"], record.get(floor)
        if is_real(height) and is_real(channels):
            prefix = f"{series}, {human(channels, column_of(table, 'channels'))} channels: "
            point = {"x": channels, "y": height, "series": series, "d": prefix + human(height, column_of(table, value))}
            points.append(point | {"floor": under if is_real(under) else None})
    return points


def _scheme(record: Mapping[str, Cell], today: Cell) -> str:
    """The scheme with its construction, if any; that of today is doing nothing."""
    parts = [record.get(name) for name in ("scheme", "construction")]
    text = " ".join(str(part) for part in parts if part not in (None, ""))
    return label(as_today(text) if text == today else text)


def _lowest(points: Records) -> tuple[Records, str]:
    """The points of the schemes that are lowest on average."""
    heights: dict[str, list[Real]] = {}
    for point in points:
        heights.setdefault(point["series"], []).append(point["y"])
    if len(heights) <= MOST_SERIES:
        return points, ""
    lowest = sorted(heights, key=lambda name: (sum(heights[name]) / len(heights[name]), name))[:MOST_SERIES]
    kept = [point for point in points if point["series"] in lowest]
    return kept, f" The chart shows the {MOST_SERIES} lowest of {len(heights):,} schemes."


def _scale(points: Records) -> dict[str, Any]:
    heights = [height for point in points for height in (point["y"], point["floor"]) if is_real(height)]
    return {"scale": {"type": "log"}} if spans_magnitudes(heights) else {"scale": {"zero": False}}


def _scaled(numbers: Sequence[Real]) -> dict[str, Any]:
    """A scale with padding for marks at both ends."""
    return {"scale": {"type": "log", "padding": 14} if spans_magnitudes(numbers) else {"zero": False, "padding": 14}}
