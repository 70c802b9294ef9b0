"""Axes and colors of charts, and downsampling of their points."""

from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, isfinite, log10
from typing import Any, TypeAlias, TypeGuard

from adapt.core.table import Cell, Column, Kind, Table

INK = "#010203"
"""A placeholder for the page's text color; drawing replaces it with `currentColor`."""

FONT = "Helvetica, Arial, 'Liberation Sans', sans-serif"
"""Fonts of equal widths, so that labels fit as measured."""

PALETTE = ("#3b7dd8", "#d5602a", "#1a9a70", "#a566c7", "#a87f00", "#d0568f", "#2397ad", "#7f8791")
"""Colors with a contrast of at least 3 to white and to the dark page."""

SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down", "triangle-right", "triangle-left")

_AXIS: dict[str, Any] = {
    "labelColor": INK,
    "labelFontSize": 11.5,
    "labelOpacity": 0.8,
    "labelPadding": 5,
    "titleColor": INK,
    "titleFontSize": 12,
    "titleFontWeight": "normal",
    "titleOpacity": 0.8,
    "titlePadding": 9,
    "domainColor": INK,
    "domainOpacity": 0.35,
    "tickColor": INK,
    "tickOpacity": 0.35,
    "tickSize": 4,
    "gridColor": INK,
    "gridOpacity": 0.12,
}


def config(width: int) -> dict[str, Any]:
    """The Vega-Lite configuration of a chart that is `width` pixels wide."""
    return {
        "font": FONT,
        "background": None,
        "padding": {"left": 2, "right": 10, "top": 6, "bottom": 2},
        "view": {"stroke": None},
        "axis": _AXIS,
        "axisX": {"grid": False, "tickCount": max(3, width // 90), "labelFlush": False},
        "axisY": {"domain": False, "ticks": False, "tickCount": 5, "labelLimit": round(width * 0.36)},
        "legend": {
            "orient": "top",
            "direction": "horizontal",
            "columns": max(1, width // 150),
            "title": None,
            "labelColor": INK,
            "labelFontSize": 12,
            "labelOpacity": 0.9,
            "labelLimit": 130 if width > 300 else 110,
            "symbolSize": 70,
            "rowPadding": 3,
            "columnPadding": 14,
            "offset": 10,
        },
        "line": {"strokeWidth": 1.8, "strokeJoin": "round"},
        "area": {"line": True},
        "bar": {"color": PALETTE[0]},
        "rule": {"color": INK},
        "text": {"color": INK, "fontSize": 11.5},
    }


Real: TypeAlias = int | float

MAGNITUDES = 1.3
"""Decades from which a linear scale hides most points."""

_LINE = 0.055
"""The share of a chart's height that a line of text takes."""


def is_real(cell: Cell) -> TypeGuard[Real]:
    """Whether the cell is a finite number."""
    return isinstance(cell, (int, float)) and not isinstance(cell, bool) and isfinite(cell)


def highest_of_neighbours(cells: Sequence[Cell], size: int) -> list[Real | None]:
    """The maximum of every `size` neighbors; null without finite numbers."""
    bins = (cells[start : start + size] for start in range(0, len(cells), size))
    return [max(filter(is_real, held), default=None) for held in bins]


def bin_size(count: int, most: int) -> int:
    """The neighbors per point that leave at most `most` points."""
    return max(1, -(-count // most))


def log_spaced(xs: Iterable[Real], most: int) -> list[int]:
    """Positions of about `most` ascending numbers, evenly spaced in logarithm."""
    kept: list[int] = []
    numbers = list(xs)
    if not numbers:
        return kept
    span = max(log10(numbers[-1] / numbers[0]), 1e-9)
    last_cell = -1
    for at, x in enumerate(numbers):
        cell = int(log10(x / numbers[0]) / span * (most - 1))
        if cell > last_cell:
            kept.append(at)
            last_cell = cell
    return kept


def set_apart(points: list[dict[str, Any]]) -> None:
    """Give each label `t` a height `at` where it overlaps no other."""
    heights = [point["y"] for point in points]
    is_log = bool(heights) and min(heights) > 0 and log10(max(heights) / min(heights)) > MAGNITUDES
    low, high = (
        (log10(min(heights)), log10(max(heights))) if is_log else (min(heights, default=0), max(heights, default=1))
    )
    taken: list[float] = []
    for point in sorted(points, key=lambda point: -float(point["y"])):
        at = ((log10(point["y"]) if is_log else point["y"]) - low) / ((high - low) or 1)
        if point["t"]:
            at = min([at, *(other - _LINE for other in taken[-1:])])
            taken.append(at)
        there = low + at * (high - low)
        point["at"] = 10**there if is_log else there


DASHED: Mapping[str, Any] = {
    "type": "line",
    "color": INK,
    "opacity": 0.65,
    "strokeDash": [5, 4],
    "strokeWidth": 1.3,
    "aria": False,
}
"""The mark of a bound or a mean, in ink instead of a data color."""

_TITLES = {
    "imbalance": "imbalance (busiest / mean load)",
    "m": "migration factor m (moved / mean state)",
    "state_moved": "state moved (rows, unless measured)",
}
"""Axis titles of columns without a unit of their own."""

_TICKS = 5
_LONG_S = 4 * 3600
"""Longer time axes count in hours."""
_YEAR_US = 366 * 86_400 * 1_000_000
_TIMES = {
    "year": "%Y",
    "quarter": "%b %Y",
    "month": "%b %Y",
    "week": "%b %-d",
    "date": "%b %-d",
    "hours": "%H:%M",
    "minutes": "%H:%M",
    "seconds": "%H:%M:%S",
    "milliseconds": "%S.%L s",
}
_SHORT = "abs(datum.value) >= 1000 ? format(datum.value, '.3~s') : format(datum.value, '.3~r')"


def across(table: Table, name: str) -> dict[str, Any]:
    """The x encoding of a time or a number."""
    if column_of(table, name).kind is Kind.TIME:
        instants = [cell for cell in table.values(name) if is_real(cell)]
        is_short = bool(instants) and max(instants) - min(instants) < _YEAR_US
        # Within a year, the first of January is an ordinary day.
        axis = {"title": f"{name} (UTC)", "format": {**_TIMES, "year": "%b %-d"} if is_short else _TIMES}
        return {"field": "x", "type": "temporal", "scale": {"type": "utc"}, "axis": axis}
    scale = {"zero": False, "nice": False}
    axis = ticks(table, name, whole=True)
    if column_of(table, name).kind is Kind.SECONDS:
        axis |= _hours(name, max(filter(is_real, table.values(name)), default=0))
    return {"field": "x", "type": "quantitative", "scale": scale, "axis": axis}


def up(table: Table, name: str, zero: bool = False) -> dict[str, Any]:
    """The y encoding of a measured column; `zero` for lengths."""
    return {"field": "y", "type": "quantitative", "scale": {"zero": zero}, "axis": ticks(table, name)}


def ticks(table: Table, name: str, whole: bool = False) -> dict[str, Any]:
    """The axis of a column; `whole` for integers only."""
    column = column_of(table, name)
    axis: dict[str, Any] = {"title": f"{name} ({column.unit})" if column.unit else _TITLES.get(name, name)}
    match column.kind:
        case Kind.SHARE:
            axis["format"] = "~%"
        case Kind.BYTES:
            axis |= _binary_ticks(max(filter(is_real, table.values(name)), default=0))
        case Kind.SECONDS:
            axis["labelExpr"] = "format(datum.value, '.3~r') + ' s'"
        case _:
            axis["labelExpr"] = _SHORT
    return axis | ({"tickMinStep": 1} if whole else {})


def powers(numbers: Iterable[Real]) -> dict[str, Any]:
    """Ticks of a logarithmic axis."""
    held = list(numbers)
    if not held or min(held) <= 0:
        return {}
    within = (1,) if log10(max(held) / min(held)) >= 2 else (1, 2, 5)
    decades = range(floor(log10(min(held))), ceil(log10(max(held))) + 1)
    values = [step * 10.0**at for at in decades for step in within]
    return {"values": values, "tickCount": len(values)}


def colours(names: Sequence[str]) -> dict[str, Any]:
    """A color per series; no legend for a single series."""
    given = [PALETTE[at % len(PALETTE)] for at in range(len(names))]
    legend = {} if len(names) > 1 else {"legend": None}
    return {"field": "series", "type": "nominal", "scale": {"domain": list(names), "range": given}, **legend}


def shapes(names: Sequence[str]) -> dict[str, Any]:
    """A point shape per series; color and shape never repeat together."""
    given = [SHAPES[(at + at // len(PALETTE)) % len(SHAPES)] for at in range(len(names))]
    return {"field": "series", "type": "nominal", "scale": {"domain": list(names), "range": given}}


def spans_magnitudes(heights: Sequence[Real]) -> bool:
    """Whether a linear scale would hide most points."""
    return bool(heights) and min(heights) > 0 and log10(max(heights) / min(heights)) > MAGNITUDES


def has(table: Table, name: str) -> bool:
    """Whether the table has a column of that name."""
    return any(column.name == name for column in table.columns)


def column_of(table: Table, name: str) -> Column:
    """The column of that name."""
    table.values(name)
    return next(column for column in table.columns if column.name == name)


def named(table: Table, name: str) -> str:
    """The column's name with its explanation, for a sentence."""
    about = column_of(table, name).about
    return f"{name} ({about})" if about else name


def _hours(name: str, longest_s: Real) -> dict[str, Any]:
    """Ticks at whole hours for long times in seconds."""
    if longest_s < _LONG_S:
        return {}
    step = next(step for step in (1, 2, 3, 6, 12, 24, 48, 120, 240, 24 * 10**9) if 3600 * step * _TICKS >= longest_s)
    values = [3600 * step * at for at in range(_TICKS + 1) if 3600 * step * at <= longest_s]
    return {"title": name, "values": values, "labelExpr": "format(datum.value / 3600, ',.0f') + ' h'"}


def _binary_ticks(highest: Real) -> dict[str, Any]:
    """Ticks at round numbers of KiB, MiB and so on, instead of thousands."""
    unit = 0
    while highest >= 1024 ** (unit + 1) and unit < 6:
        unit += 1
    size = 1024**unit
    step = next(
        step for step in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1024**10) if step * size * (_TICKS + 1) >= highest
    )
    name = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")[unit]
    values = [step * size * at for at in range(_TICKS + 2) if step * size * at <= highest * 1.05]
    if unit and highest < 2 * size:
        values = [size * at // 4 for at in range(9) if size * at // 4 <= highest * 1.05]
    return {"values": values, "labelExpr": f"format(datum.value / {size}, '.3~r') + ' {name}'"}
