"""Chart theme: colors legible on white and black, one ink."""

from typing import Any

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
