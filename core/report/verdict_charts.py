"""Verdict charts: workers before and after, hot keys and skew over time."""

from dataclasses import replace
from typing import Any

from adapt.core.charts.axes import DASHED, INK, PALETTE, across, colours, column_of, up
from adapt.core.charts.chart import Chart, Records, chart
from adapt.core.charts.over_time import imbalance_of_placements, imbalance_per_period
from adapt.core.labels import distinct, label
from adapt.core.out_of_sample.outcome import BEST, TODAY, OutOfSample
from adapt.core.out_of_sample.walk_forward import Way
from adapt.core.partitioning.frontier.frontier import Frontier
from adapt.core.partitioning.measures.per_channel import BeforeAfter
from adapt.core.table import Column, Kind, Table
from adapt.core.values import human
from adapt.core.verdict.hot_keys import MOST_KEYS

IN_SAMPLE, LATER = "all rows (in-sample)", "later windows (median)"
"""What the imbalance of a plan is measured on."""

MOST_CHANNELS = 32
MOST_LINES = 8
_ROW = 38
"""Height of a hot key's row in pixels."""
_FULL = 0.68
"""Part of a row that the highest share fills; its number is above."""


def workers_before_after(found: BeforeAfter, limit: float | None = None) -> Chart:
    """Load of each worker over the mean, before and after.

    Args:
        limit: Tolerated imbalance, drawn as a line.
    """
    table, names = found.table(), ("before", "after")
    labels = [str(row[0]) for row in found.rows[:MOST_CHANNELS]]
    column = Column("", Kind.RATIO)
    points: Records = []
    for text, (_, *loads) in zip(labels, found.rows, strict=False):
        for name, load, hot in zip(names, loads[:2], [*loads[2:], 0.0, 0.0], strict=False):
            if load is None:
                continue
            parts = {"hot keys": min(hot or 0.0, load), "other keys": load - min(hot or 0.0, load)}
            told = f"worker {text}: {human(load, column)} {name}"
            told += f", {human(parts['hot keys'], column)} of it on hot keys" if len(loads) > 2 else ""
            points += [
                {"k": text, "y": height, "series": name, "part": part, "d": told} for part, height in parts.items()
            ]
    sentence = f"{table.note} Sorted by load before"
    if len(labels) < len(table.rows):
        sentence += f"; the first {len(labels):,} of {len(table.rows):,} workers are drawn"
    if found.rows and len(found.rows[0]) > 3:
        sentence += f"; the darker part is on the {MOST_KEYS} hottest keys"
    y = up(table, "before", zero=True)
    axis = {"title": "worker", "labelAngle": 0, "labelOverlap": "greedy", "labelSeparation": 4}
    opacity = {"domain": ["hot keys", "other keys"], "range": [1, 0.55]}
    encoding = {
        "x": {"field": "k", "type": "ordinal", "sort": None, "axis": axis},
        "xOffset": {"field": "series", "sort": list(names)},
        "y": y | {"axis": y["axis"] | {"title": "load / mean load"}},
        "color": colours(names),
        "opacity": {"field": "part", "type": "nominal", "scale": opacity, "legend": None},
        "order": {"field": "part", "sort": "ascending"},
        "description": {"field": "d"},
    }
    layer: list[dict[str, Any]] = [{"mark": "bar", "encoding": encoding}]
    if limit is not None:
        layer.append({"mark": {**DASHED, "type": "rule", "aria": False}, "encoding": {"y": {"datum": limit}}})
        sentence += f"; the dashed line is the limit, {limit:g}"
    return chart(table.title, {"layer": layer}, points, f"{sentence}.", table)


def out_of_sample(tested: OutOfSample) -> Chart:
    """Imbalance today and with plans in later windows."""
    names = [way.value for way in Way if way.value in tested.tracks]
    return imbalance_of_placements(tested.windows_table(), (TODAY, *names), BEST)


def imbalance_against_state(frontier: Frontier, limit: float | None = None) -> Chart:
    """Imbalance against state moved by plan, with the lower bound.

    Args:
        limit: Tolerated imbalance, drawn as a line.
    """
    table, bound = frontier.table(), "lower bound"
    named = {IN_SAMPLE: "imbalance"} | ({LATER: "out_of_sample"} if frontier.is_tested else {})
    judged = list(named)[-1]
    points: Records = [
        {
            "x": row["state_moved"],
            "y": row[name],
            "series": series,
            "t": str(row["plan"]).replace("recommended", "").rstrip(", ") if series == judged else "",
            "ring": "recommended" in str(row["plan"]) and series == judged,
            "d": f"{row['plan']} {human(row['state_moved'], column_of(table, 'state_moved'))} of the state, imbalance"
            f" {human(row[name], column_of(table, name))}, {series}".lstrip(),
        }
        for row in table.records()
        for series, name in named.items()
    ]
    last = len(frontier.bounds) - 1
    points += [
        {"x": share, "y": least, "series": bound, "t": bound if at == last else "", "d": f"{bound} {least:.3f}"}
        for at, (share, least) in enumerate(frontier.bounds)
    ]
    for point in points:  # a name stands on the side where there is room
        is_left = point["x"] > 0.6 * frontier.points[-1].state_moved
        point |= {"t": "", "left": ""} | {"left" if is_left else "t": point["t"]}
    is_bound = [{"filter": {"field": "series", "equal": bound}}]
    plans = {
        "mark": {"type": "point", "filled": True, "size": 42, "opacity": 1},
        "transform": [{"filter": {"field": "series", "oneOf": list(named)}}],
        "encoding": {"color": colours(list(named)), "description": {"field": "d"}},
    }
    # No placement between two shares of state is below the bound of the larger one.
    stairs = {"mark": {**DASHED, "interpolate": "step-before"}, "transform": is_bound}
    label = {"type": "text", "dy": -9, "color": INK, "aria": False}
    right, left = ({**label, "align": side, "dx": 4} for side in ("left", "right"))
    x, y = across(table, "state_moved"), up(table, "imbalance")
    encoding = {
        "x": x | {"axis": x["axis"] | {"title": "state moved (share of all state)", "tickMinStep": 0.001}},
        "y": y | {"axis": y["axis"] | {"title": "imbalance (busiest / mean load)"}},
    }
    names = [{"mark": mark, "encoding": {"text": {"field": name}}} for name, mark in (("t", right), ("left", left))]
    ring = {
        "mark": {"type": "point", "size": 190, "strokeWidth": 2, "color": INK, "aria": False},
        "transform": [{"filter": "datum.ring"}],
    }
    layer = [plans, stairs, ring, *names]
    sentence = (
        "Each point is a plan, the recommended one in a ring; no plan that moves as little state is below the dashed"
        " line on all rows."
    )
    if limit is not None:
        line = {"type": "rule", "color": INK, "opacity": 0.6, "aria": False}
        layer.append({"mark": line, "encoding": {"x": None, "y": {"datum": limit}}})
        sentence += f" The solid line is the limit, {limit:g}."
    body = {"encoding": encoding, "layer": layer}
    return chart(frontier.title, body, points, sentence, table)


def skew_over_time(table: Table) -> Chart:
    """Imbalance of each window as placed today, and the best possible imbalance."""
    sentence = "Imbalance in each window, as placed today; the dashed line is the best possible without splitting keys."
    return replace(imbalance_per_period(table, at="window"), title=table.title, sentence=sentence)


def life_lines(table: Table) -> Chart:
    """Share of each hot key over time, on one scale.

    Args:
        table: Rows of key, window, start and share, grouped by key (`HotKeys.lines_table`); at least two windows.
    """
    by_key: dict[str, Records] = {}
    for row in table.records():
        by_key.setdefault(str(row["key"]), []).append(row)
    lines = list(by_key.values())[:MOST_LINES]
    share = column_of(table, "share")
    top = max((float(row["share"]) for line in lines for row in line), default=0.0) or 1.0
    names = distinct([label(key) for key in list(by_key)[:MOST_LINES]])
    points: Records = []
    for base, name, line in zip(reversed(range(len(lines))), names, lines, strict=True):
        points += _life_line(name, line, table, base, _FULL / top)
    scale: dict[str, Any] = {
        "type": "quantitative",
        "scale": {"domain": [0, max(len(lines), 1)], "nice": False},
        "axis": None,
    }
    title = f"share of load, 0 to {human(top, share)} per row"
    keys = {"field": "k", "type": "ordinal", "sort": None, "bandPosition": 1, "axis": {"title": title, "grid": False}}
    x = across(table, "start")
    # One area per key: a description per point would split it into as many stacked areas.
    area = {"type": "area", "interpolate": "step-after", "color": PALETTE[0], "opacity": 0.75}
    y: dict[str, Any] = {"field": "y", **scale}
    areas = {
        "mark": area,
        "transform": [{"filter": "isValid(datum.base)"}],
        "encoding": {"x": x, "y": {**y, "stack": None}, "y2": {"field": "base"}, "detail": {"field": "name"}},
    }
    rules = {
        "mark": {"type": "rule", "color": INK, "opacity": 0.25, "aria": False},
        "transform": [{"filter": "isValid(datum.k)"}],
        "encoding": {"y": keys},
    }
    written = {"type": "text", "baseline": "bottom", "dy": -1, "fontSize": 10.5, "aria": False}
    peaks = [
        {
            "mark": written | {"align": side},
            "transform": [{"filter": {"field": "side", "equal": side}}],
            "encoding": {"x": x, "y": y, "text": {"field": "t", "type": "nominal"}},
        }
        for side in ("left", "right")
    ]
    sentence = (
        "Share of the load of each window; the number is the key's peak. All rows have one scale, 0 to"
        f" {human(top, share)}."
    )
    body = {
        "height": max(60, _ROW * len(lines)),
        "layer": [areas, rules, *peaks],
        "resolve": {"scale": {"y": "independent"}},
    }
    return chart("Hot keys over time", body, points, sentence, table)


def _life_line(name: str, line: Records, table: Table, base: int, scale: float) -> Records:
    """The edges of a key's area above its base, and the label of its peak, away from the sides of the chart."""
    start, share = column_of(table, "start"), column_of(table, "share")
    edges = [row["start"] / 1000 for row in line]
    edges.append(2 * edges[-1] - edges[-2])
    heights = [base + scale * row["share"] for row in line]
    points: Records = [
        {"x": edge, "y": height, "base": base, "name": name}
        | {"d": f"{name}, {human(row['start'], start)}: {human(row['share'], share)}"}
        for edge, height, row in zip(edges, [*heights, heights[-1]], [*line, line[-1]], strict=True)
    ]
    peak = heights.index(max(heights))
    is_late = 2 * peak >= len(line)
    spot = {"side": "right" if is_late else "left", "x": edges[peak + is_late], "y": heights[peak]}
    return [*points, {"k": name, "t": human(line[peak]["share"], share), **spot}]
