"""Charts of a stage over time: its cases beside each other, and what moved meanwhile."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.charts.axes import DASHED, across, column_of, named, powers, spans_magnitudes, ticks, up
from adapt.core.charts.chart import Chart, Records, chart
from adapt.core.charts.points import bin_size, highest_of_neighbours, is_real
from adapt.core.charts.theme import PALETTE
from adapt.core.labels import count
from adapt.core.table import Table
from adapt.core.values import human, number

MOST_POINTS = 240
"""Of a line."""

MOST_MARKS = 150
"""Of the moves of a case."""

MOST_SPANS = 90
"""Along the time, in the chart of sites."""

MOST_SITES = 32
"""Lines of that chart."""

_LEVELS = 8
_STATIC = PALETTE[-1]
_POLICIES = PALETTE[:-1]


def stage_charts(intervals: Table, sites: Table, moves: Table) -> tuple[Chart, ...]:
    """All charts of a run: rate, latency, what waits where, what is on disk if anything, and the sites of each case."""
    charts = [throughput_over_time(intervals, moves), latency_over_time(intervals), held_over_time(intervals)]
    if _any(intervals, "source_queue"):
        waiting = "Rows that were due and not yet taken"
        charts.append(lines_of_cases(intervals, "Rows that wait to be taken", ["source_queue"], waiting))
    if _any(intervals, "on_disk"):
        spilled = "Partitions that did not fit in memory"
        charts.append(lines_of_cases(intervals, "Partitions on disk", ["on_disk"], spilled))
    return (*charts, *(utilization_of_sites(sites, case) for case in _cases(sites)))


def elastic_charts(intervals: Table, sites: Table, moves: Table, steps: Table | None = None) -> tuple[Chart, ...]:
    """The charts of a run whose workers come and go: how many there are, what they shed, and those of any stage.

    Args:
        steps: When it scaled, and why; marked on the line of workers.
    """
    charts = [workers_over_time(intervals, steps)]
    if _any(intervals, "shed"):
        charts.append(lines_of_cases(intervals, "Rows shed", ["shed"], "Rows that workers dropped as they filled up"))
    if "answers" in [column.name for column in intervals.columns]:
        charts.append(lines_of_cases(intervals, "Answers", ["answers"], "Matches that a join found in each interval"))
    uneven = "Rows of the busiest worker over the mean of all workers"
    charts.append(lines_of_cases(intervals, "Imbalance", ["imbalance"], uneven))
    return (*charts, *stage_charts(intervals, sites, moves))


def workers_over_time(intervals: Table, steps: Table | None = None) -> Chart:
    """How many workers there were, and a mark for each step: up, down, or a plan built anew."""
    lines = lines_of_cases(intervals, "Workers", ["workers"], "Workers that there were in each interval")
    marks = [] if steps is None or lines.is_empty else _steps(steps)
    if not marks:
        return lines
    shape = {"domain": list(_STEP_SHAPES), "range": list(_STEP_SHAPES.values())}
    layer = {
        "mark": {"type": "point", "filled": True, "size": 55, "opacity": 1, "aria": False},
        **_where("datum.why"),
        "encoding": _coloured(intervals)["encoding"]
        | {"shape": {"field": "why", "type": "nominal", "scale": shape, "legend": None}},
    }
    spec = dict(lines.spec)
    spec["layer"] = [*spec["layer"], layer]
    spec["data"] = {"values": [*spec["data"]["values"], *marks]}
    told = " Triangles are steps up and down, squares plans built anew, where they were decided."
    return replace(lines, spec=spec, sentence=lines.sentence + told)


_STEP_SHAPES = {"scale out": "triangle-up", "scale in": "triangle-down", "rebuild": "square"}


def _steps(steps: Table) -> Records:
    """When each case scaled, neighbours as one where there are too many."""
    points: Records = []
    for case in _cases(steps):
        rows = [row for row in steps.records() if row["case"] == case and is_real(row["decided"])]
        points += [
            {"x": row["decided"], "y": row["after"], "series": case, "name": "", "moved": False, "why": row["why"]}
            | {"d": f"{case}, {number(float(row['decided'] or 0))} s: {row['why']}, {row['before']} to {row['after']}"}
            for row in rows[:: bin_size(len(rows), MOST_MARKS)]
        ]
    return points


def trade_off_of_tau1(trade_off: Table) -> Chart:
    """False shedding against idle workers, by how full workers are to be: two lines for each policy."""
    points: Records = []
    for row in trade_off.records():
        for name in ("idle_share", "false_share"):
            tau1, height = (human(row[each], column_of(trade_off, each)) for each in ("tau1", name))
            said = f"{row['policy']}, tau1 {tau1}: {name} {height}"
            points.append({"x": row["tau1"], "y": row[name], "series": row["policy"], "name": name, "d": said})
    names = list(dict.fromkeys(str(policy) for policy in trade_off.values("policy")))
    colour = {"field": "series", "type": "nominal", "scale": {"domain": names, "range": [_STATIC, *_POLICIES]}}
    layers = _lines(("false_share", "idle_share"), {"encoding": {"color": colour}}, point=True)
    horizontal, upwards = across(trade_off, "tau1"), up(trade_off, "false_share", zero=True)
    horizontal["axis"] |= {"values": sorted({point["x"] for point in points})}
    upwards["axis"] |= {"title": "false_share, idle_share"}
    encoding = {"x": horizontal, "y": upwards}
    sentence = (
        "The share of the rows that is shed falsely, though the pool has room for all, and dashed the share of their"
        " time that workers are without work, by tau1"
    )
    return chart("Trade-off of tau1", {"encoding": encoding, "layer": layers}, points, f"{sentence}.", trade_off)


def throughput_over_time(intervals: Table, moves: Table) -> Chart:
    """What each case did in each interval, what the sites could have done, and when partitions moved."""
    points, said = _points(intervals, ["throughput"])
    highest = max((point["y"] for point in points if is_real(point["y"])), default=0)
    bound, _ = _points(intervals, ["capacity"], cases=_cases(intervals)[:1])
    shows_bound = bool(bound) and min(point["y"] for point in bound if is_real(point["y"])) <= 2 * highest
    marks = _moves(moves)
    sentence = f"The {named(intervals, 'throughput')} of each case"
    if shows_bound:
        sentence += "; the dashed line is what all sites together can do"
        points += [{**point, "series": "capacity"} for point in bound]
    if marks:
        sentence += "; the ticks at the foot are moves of partitions, where they were decided"
    layers: list[dict[str, Any]] = [
        {"mark": DASHED, **_where("datum.series == 'capacity'")},
        {"mark": "line", **_where("datum.series != 'capacity' && !datum.moved"), **_coloured(intervals)},
        {
            "mark": {"type": "tick", "orient": "vertical", "size": 9, "thickness": 1.2, "opacity": 0.8, "aria": False},
            **_where("datum.moved"),
            **_coloured(intervals),
        },
    ]
    encoding = {"x": across(intervals, "end"), "y": up(intervals, "throughput", zero=True)}
    body = {"height": 260, "encoding": encoding, "layer": layers}
    return chart("Throughput", body, [*points, *marks] if points else [], f"{sentence}.{said}", intervals)


def latency_over_time(intervals: Table) -> Chart:
    """What half and what 99 % of the rows of each interval do not exceed, on a logarithmic scale."""
    sentence = "The latency that 99 % of the rows of each interval do not exceed, and dashed that of half of them"
    return lines_of_cases(intervals, "Latency", ["latency_p99", "latency_p50"], sentence)


def held_over_time(intervals: Table) -> Chart:
    """What producers hold back, and what is in connections."""
    sentence = (
        "Rows that producers hold back in their buffers, and dashed those in connections, at the end of an interval"
    )
    return lines_of_cases(intervals, "Rows between source and sites", ["in_pools", "in_connections"], sentence)


def utilization_of_sites(sites: Table, case: str) -> Chart:
    """How busy each site was over the time of one case: a line a site, darker where busier."""
    title = f"Sites, {case}"
    rows = [row for row in sites.records() if row["case"] == case]
    numbers = sorted({int(row["site"] or 0) for row in rows})
    if not rows:
        return chart(title, {"mark": "rect"}, [], f"How busy each site was with {case}.", sites)
    busy = np.array([float(row["utilization"] or 0) for row in rows]).reshape(-1, len(numbers))
    ends = [float(row["end"] or 0) for row in rows[:: len(numbers)]]
    together, spans = bin_size(len(numbers), MOST_SITES), bin_size(len(ends), MOST_SPANS)
    points = _spans(busy, [0.0, *ends], together, spans)
    sentence = f"How busy each site was with {case}: the darker, the busier, in steps of {1 / _LEVELS:.1%} of the time"
    if together > 1:
        sentence += f"; a line is the busiest of {count(together)} neighbouring sites"
    if spans > 1:
        sentence += f"; each stretch is the mean of {count(spans)} neighbouring intervals"
    last = max(float(end) for end in sites.values("end") if is_real(end))
    axis = {"axis": {"title": "site", "labelOverlap": True}, "scale": {"domain": [*range(0, len(numbers), together)]}}
    shade = {"legend": None, "scale": {"domain": [0, 1], "range": [0.04, 1]}}
    encoding = {
        "x": {**across(sites, "end"), "scale": {"domain": [0, last], "nice": False}},
        "x2": {"field": "until"},
        "y": {"field": "k", "type": "ordinal", **axis},
        "opacity": {"field": "y", "type": "quantitative", **shade},
    }
    mark = {"type": "rect", "color": PALETTE[0], "aria": False}
    height = min(260, max(120, 14 * -(-len(numbers) // together)))
    return chart(title, {"height": height, "mark": mark, "encoding": encoding}, points, f"{sentence}.", sites)


def _spans(busy: NDArray[np.float64], edges: Sequence[float], together: int, spans: int) -> Records:
    """Stretches of the same shade: neighbouring sites and intervals as one, then equal shades in a row joined."""
    by_time = np.array([busy[first : first + spans].mean(axis=0) for first in range(0, len(busy), spans)])
    shades = np.round(by_time * _LEVELS) / _LEVELS
    starts = [*edges[:-1:spans], edges[-1]]
    points: Records = []
    for first in range(0, busy.shape[1], together):
        line = shades[:, first : first + together].max(axis=1)
        cuts = [0, *(np.flatnonzero(np.diff(line)) + 1).tolist(), len(line)]
        points += [
            {"x": starts[begin], "until": starts[end], "k": first, "y": float(line[begin])}
            | {"d": f"site {first}, {number(starts[begin])} s to {number(starts[end])} s: {line[begin]:.1%}"}
            for begin, end in pairwise(cuts)
            if line[begin] > 0
        ]
    return points


def lines_of_cases(intervals: Table, title: str, names: Sequence[str], sentence: str) -> Chart:
    """A line for each case and column, the second column dashed; logarithmic where heights span magnitudes."""
    points, said = _points(intervals, names)
    heights = [point["y"] for point in points if is_real(point["y"])]
    upwards = up(intervals, names[0], zero=True)
    if spans_magnitudes(heights):
        axis = ticks(intervals, names[0]) | powers(heights)
        upwards = {**up(intervals, names[0]), "scale": {"type": "log"}, "axis": axis}
        sentence += ", on a logarithmic scale"
    encoding = {"x": across(intervals, "end"), "y": upwards}
    body = {"encoding": encoding, "layer": _lines(names, _coloured(intervals))}
    return chart(title, body, points, f"{sentence}.{said}", intervals)


def _points(intervals: Table, names: Sequence[str], cases: Sequence[str] | None = None) -> tuple[Records, str]:
    """Points of some columns for each case, each the highest of its neighbours where there are too many."""
    points: Records = []
    longest = 1
    rows_of: dict[str, list[int]] = {}
    for row, case in enumerate(intervals.values("case")):
        rows_of.setdefault(str(case), []).append(row)
    ends, heights = intervals.values("end"), {name: intervals.values(name) for name in names}
    for case in rows_of if cases is None else cases:
        rows = rows_of.get(case, [])
        size = bin_size(len(rows), MOST_POINTS)
        longest = max(longest, size)
        for name in names:
            column = column_of(intervals, name)
            highest = highest_of_neighbours([heights[name][row] for row in rows], size)
            for row, height in zip(rows[::size], highest, strict=True):
                end = ends[row]
                if is_real(end):
                    said = f"{case}, {number(end)} s: {name} {human(height, column)}"
                    points.append({"x": end, "y": height, "series": case, "name": name, "moved": False, "d": said})
    if not any(is_real(point["y"]) for point in points):
        return [], ""
    told = f" Each point is the highest of {count(longest)} neighbouring rows of the table." if longest > 1 else ""
    return points, told


def _moves(moves: Table) -> Records:
    """When something moved in each case, neighbours as one where there are too many."""
    points: Records = []
    for case in _cases(moves):
        at = sorted({round(float(row["decided"] or 0), 3) for row in moves.records() if row["case"] == case})
        points += [
            {"x": time, "y": 0, "series": case, "moved": True, "d": f"{case}, {number(time)} s: partitions moved"}
            for time in at[:: bin_size(len(at), MOST_MARKS)]
        ]
    return points


def _coloured(intervals: Table) -> dict[str, Any]:
    """The colour of each case: grey where nothing moves."""
    cases = _cases(intervals)
    given = [_STATIC, *(_POLICIES[at % len(_POLICIES)] for at in range(len(cases) - 1))]
    legend = {} if len(cases) > 1 else {"legend": None}
    colour = {"field": "series", "type": "nominal", "scale": {"domain": cases, "range": given[: len(cases)]}, **legend}
    return {"encoding": {"color": colour}}


def _lines(names: Sequence[str], encoding: Mapping[str, Any], **mark: bool) -> list[dict[str, Any]]:
    """A line for each of some names, the second dashed."""
    dashed = {"strokeDash": [4, 3], "strokeWidth": 1.3}
    marks = [{"type": "line", **mark, **(dashed if at else {})} for at in range(len(names))]
    shown = zip(marks, names, strict=True)
    return [{"mark": each, **_where(f"datum.name == '{name}'"), **encoding} for each, name in shown]


def _cases(table: Table) -> list[str]:
    return list(dict.fromkeys(str(case) for case in table.values("case")))


def _any(intervals: Table, name: str) -> bool:
    return any(is_real(cell) and cell > 0 for cell in intervals.values(name))


def _where(condition: str) -> Mapping[str, Any]:
    return {"transform": [{"filter": condition}]}
