"""Time series and charts of a stage, case by case."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.charts.axes import (
    DASHED,
    PALETTE,
    across,
    bin_size,
    column_of,
    highest_of_neighbours,
    is_real,
    named,
    powers,
    spans_magnitudes,
    ticks,
    up,
)
from adapt.core.charts.chart import Chart, Records, chart
from adapt.core.phrases import percent
from adapt.core.stage.input.offered_load import Bounds
from adapt.core.stage.outcome import Outcome
from adapt.core.table import Column, Kind, Table
from adapt.core.values import human, number

MOST_POINTS = 240
"""Points per line."""

MOST_MARKS = 150
"""Move marks per case."""

MOST_SPANS = 90
"""Time spans in the chart of workers."""

MOST_WORKERS = 32
"""Lines in the chart of workers."""

_LEVELS = 8
_STATIC = PALETTE[-1]
_POLICIES = PALETTE[:-1]


def stage_charts(intervals: Table, workers: Table, moves: Table, queues: str = "") -> tuple[Chart, ...]:
    """Charts of a run: throughput, latency, queues, spilling and workers.

    Args:
        queues: Whose queues the latencies are from, in brackets.
    """
    charts = [throughput_over_time(intervals, moves), latency_over_time(intervals, queues), held_over_time(intervals)]
    if _any(intervals, "source_queue"):
        waiting = "Rows that had arrived and waited for their producer"
        charts.append(lines_of_cases(intervals, "Rows waiting at the source", ["source_queue"], waiting))
    if _any(intervals, "on_disk"):
        spilled = "Partitions spilled to disk"
        charts.append(lines_of_cases(intervals, "Partitions on disk", ["on_disk"], spilled))
    if _grows(workers):
        charts += [state_of_workers(workers, case) for case in _cases(workers)]
    return (*charts, *(utilization_of_workers(workers, case) for case in _cases(workers)))


def elastic_charts(
    intervals: Table, workers: Table, moves: Table, steps: Table | None = None, queues: str = ""
) -> tuple[Chart, ...]:
    """Charts of an elastic run: workers, shedding, and those of any stage.

    Args:
        steps: Rescales, marked on the line of workers.
        queues: As in `stage_charts`.
    """
    charts = [workers_over_time(intervals, steps)]
    if _any(intervals, "rows_dropped"):
        charts.append(lines_of_cases(intervals, "Rows shed", ["rows_dropped"], "Rows dropped by load shedding"))
    if "answers" in [column.name for column in intervals.columns]:
        charts.append(lines_of_cases(intervals, "Answers", ["answers"], "Matches of the join per interval"))
    uneven = "Rows of the busiest worker over the mean of all workers"
    charts.append(lines_of_cases(intervals, "Imbalance", ["imbalance"], uneven))
    return (*charts, *stage_charts(intervals, workers, moves, queues))


def dag_charts(intervals: Table, workers: Table) -> tuple[Chart, ...]:
    """Charts of a DAG: throughput and latency by stage, and workers."""
    charts = []
    for stage in dict.fromkeys(intervals.values("stage")):
        rows = zip(intervals.rows, intervals.values("stage"), strict=True)
        part = replace(intervals, rows=tuple(row for row, of in rows if of == stage))
        throughput = f"{named(part, 'throughput').capitalize()} of stage {stage} in each case"
        charts.append(lines_of_cases(part, f"Throughput of {stage}", ["throughput"], throughput))
        waited = f"99th percentile of latency up to stage {stage}, and dashed the median"
        charts.append(lines_of_cases(part, f"Latency of {stage}", ["latency_p99", "latency_p50"], waited))
    if _any(intervals, "on_disk"):
        charts += [state_of_workers(workers, case) for case in _cases(workers)]
    return (*charts, *(utilization_of_workers(workers, case) for case in _cases(workers)))


def workers_over_time(intervals: Table, steps: Table | None = None) -> Chart:
    """Number of workers, with a mark per rescale or new plan."""
    lines = lines_of_cases(intervals, "Workers", ["workers"], "Number of workers in each interval")
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
    told = " Triangles mark scale-out and scale-in decisions, squares new plans."
    return replace(lines, spec=spec, sentence=lines.sentence + told)


_STEP_SHAPES = {"scale out": "triangle-up", "scale in": "triangle-down", "rebuild": "square"}


def _steps(steps: Table) -> Records:
    """Rescales of each case, thinned out if there are too many."""
    points: Records = []
    for case in _cases(steps):
        rows = [row for row in steps.records() if row["case"] == case and is_real(row["decided"])]
        points += [
            {"x": row["decided"], "y": row["after"], "series": case, "name": "", "moved": False, "why": row["why"]}
            | {"d": f"{case}, {number(float(row['decided'] or 0))} s: {row['why']}, {row['before']} to {row['after']}"}
            for row in rows[:: bin_size(len(rows), MOST_MARKS)]
        ]
    return points


def throughput_over_time(intervals: Table, moves: Table) -> Chart:
    """Throughput of each case, the capacity, and the moves."""
    points, said = _points(intervals, ["throughput"])
    highest = max((point["y"] for point in points if is_real(point["y"])), default=0)
    bound, _ = _points(intervals, ["capacity"], cases=_cases(intervals)[:1])
    shows_bound = bool(bound) and min(point["y"] for point in bound if is_real(point["y"])) <= 2 * highest
    marks = _moves(moves)
    sentence = f"{named(intervals, 'throughput').capitalize()} of each case"
    if shows_bound:
        sentence += "; the dashed line is the capacity of all workers"
        points += [{**point, "series": "capacity"} for point in bound]
    if marks:
        sentence += "; ticks at the bottom mark decisions to move partitions"
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


def latency_over_time(intervals: Table, queues: str = "") -> Chart:
    """Median and 99th percentile of latency, on a logarithmic scale."""
    sentence = f"99th percentile of latency{queues} per interval, and dashed the median"
    return lines_of_cases(intervals, "Latency", ["latency_p99", "latency_p50"], sentence)


def held_over_time(intervals: Table) -> Chart:
    """Rows in producer buffers and in connections."""
    sentence = "Rows in the buffers of producers, and dashed those in connections, at the end of each interval"
    return lines_of_cases(intervals, "Rows between source and workers", ["in_pools", "in_connections"], sentence)


def utilization_of_workers(workers: Table, case: str) -> Chart:
    """Heat map of worker utilization over time in one case."""
    sentence = f"Utilization of each worker with {case}: the darker, the busier, in steps of {percent(1 / _LEVELS)}"
    return _heat_map(workers, case, "utilization", f"Workers, {case}", sentence)


def state_of_workers(workers: Table, case: str) -> Chart:
    """Heat map of the workers' memory in use in one case."""
    column = column_of(workers, "state")
    most = max((cell for cell in workers.values("state") if is_real(cell)), default=0)
    sentence = f"State in memory of each worker with {case}: the darker, the more, up to {human(most, column)}"
    return _heat_map(workers, case, "state", f"Memory, {case}", sentence, float(most))


def _grows(workers: Table) -> bool:
    """Whether the state of all workers changes by more than moves in progress do."""
    if "state" not in [column.name for column in workers.columns]:
        return False
    rows = workers.records()
    ends = {(row["case"], row["end"]) for row in rows}
    sums = dict.fromkeys(ends, 0.0)
    for row in rows:
        sums[row["case"], row["end"]] += float(row["state"] or 0) + float(row["state_on_disk"] or 0)
    return max(sums.values(), default=0.0) > min(sums.values(), default=0.0) or _any(workers, "state_on_disk")


def _heat_map(workers: Table, case: str, name: str, title: str, sentence: str, most: float = 1.0) -> Chart:
    """A line of shades per worker, by a column up to `most`."""
    rows = [row for row in workers.records() if row["case"] == case]
    numbers = sorted({int(row["worker"] or 0) for row in rows})
    if not rows or most <= 0:
        return chart(title, {"mark": "rect"}, [], f"{sentence}.", workers)
    busy = np.array([float(row[name] or 0) for row in rows]).reshape(-1, len(numbers)) / most
    ends = [float(row["end"] or 0) for row in rows[:: len(numbers)]]
    together, spans = bin_size(len(numbers), MOST_WORKERS), bin_size(len(ends), MOST_SPANS)
    points = _spans(busy, [0.0, *ends], together, spans)
    if together > 1:
        sentence += f"; a line is the darkest of {together:,} adjacent workers"
    if spans > 1:
        sentence += f"; each cell is the mean of {spans:,} adjacent intervals"
    last = max(float(end) for end in workers.values("end") if is_real(end))
    axis = {"axis": {"title": "worker", "labelOverlap": True}, "scale": {"domain": [*range(0, len(numbers), together)]}}
    shade = {"legend": None, "scale": {"domain": [0, 1], "range": [0.04, 1]}}
    encoding = {
        "x": {**across(workers, "end"), "scale": {"domain": [0, last], "nice": False}},
        "x2": {"field": "until"},
        "y": {"field": "k", "type": "ordinal", **axis},
        "opacity": {"field": "y", "type": "quantitative", **shade},
    }
    mark = {"type": "rect", "color": PALETTE[0], "aria": False}
    height = min(260, max(120, 14 * -(-len(numbers) // together)))
    return chart(title, {"height": height, "mark": mark, "encoding": encoding}, points, f"{sentence}.", workers)


def _spans(busy: NDArray[np.float64], edges: Sequence[float], together: int, spans: int) -> Records:
    """Spans of equal shade: adjacent workers and intervals binned, then equal neighbors merged."""
    by_time = np.array([busy[first : first + spans].mean(axis=0) for first in range(0, len(busy), spans)])
    shades = np.round(by_time * _LEVELS) / _LEVELS
    starts = [*edges[:-1:spans], edges[-1]]
    points: Records = []
    for first in range(0, busy.shape[1], together):
        line = shades[:, first : first + together].max(axis=1)
        cuts = [0, *(np.flatnonzero(np.diff(line)) + 1).tolist(), len(line)]
        points += [
            {"x": starts[begin], "until": starts[end], "k": first, "y": float(line[begin])}
            | {"d": f"worker {first}, {number(starts[begin])} s to {number(starts[end])} s: {percent(line[begin])}"}
            for begin, end in pairwise(cuts)
            if line[begin] > 0
        ]
    return points


def lines_of_cases(intervals: Table, title: str, names: Sequence[str], sentence: str) -> Chart:
    """Line chart with a line per case and column.

    The second column is dashed. The axis is logarithmic if values span magnitudes.
    """
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
    """Points of some columns per case, binned to the maximum if there are too many."""
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
    told = f" Each point is the maximum of {longest:,} adjacent rows of the table." if longest > 1 else ""
    return points, told


def _moves(moves: Table) -> Records:
    """Times of moves per case, thinned out if there are too many."""
    points: Records = []
    for case in _cases(moves):
        at = sorted({round(float(row["decided"] or 0), 3) for row in moves.records() if row["case"] == case})
        points += [
            {"x": time, "y": 0, "series": case, "moved": True, "d": f"{case}, {number(time)} s: partitions moved"}
            for time in at[:: bin_size(len(at), MOST_MARKS)]
        ]
    return points


def _coloured(intervals: Table) -> dict[str, Any]:
    """Color of each case: gray for the static one."""
    cases = _cases(intervals)
    given = [_STATIC, *(_POLICIES[at % len(_POLICIES)] for at in range(len(cases) - 1))]
    legend = {} if len(cases) > 1 else {"legend": None}
    colour = {"field": "series", "type": "nominal", "scale": {"domain": cases, "range": given[: len(cases)]}, **legend}
    return {"encoding": {"color": colour}}


def _lines(names: Sequence[str], encoding: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A line per name, the second dashed."""
    dashed = {"strokeDash": [4, 3], "strokeWidth": 1.3}
    marks = [{"type": "line", **(dashed if at else {})} for at in range(len(names))]
    shown = zip(marks, names, strict=True)
    return [{"mark": each, **_where(f"datum.name == '{name}'"), **encoding} for each, name in shown]


def _cases(table: Table) -> list[str]:
    return list(dict.fromkeys(str(case) for case in table.values("case")))


def _any(intervals: Table, name: str) -> bool:
    return any(is_real(cell) and cell > 0 for cell in intervals.values(name))


def _where(condition: str) -> Mapping[str, Any]:
    return {"transform": [{"filter": condition}]}


CASE = Column("case", about="static (do nothing: no moves), or the rebalancing policy")


def series_tables(outcomes: Sequence[Outcome], bounds: Bounds) -> dict[str, Table]:
    """Tables `intervals` (with capacity), `workers`, `moves` and `crashes` of all cases."""
    tables = [(outcome.case, outcome.simulated.tables()) for outcome in outcomes]
    names = ("intervals", "workers", "moves", "crashes")
    joined = {name: _joined([(case, each[name]) for case, each in tables]) for name in names}
    intervals = joined["intervals"]
    possible = [
        (bounds.capacity.by(one.end_s) - bounds.capacity.by(one.start_s)) / bounds.row_s / (one.end_s - one.start_s)
        for outcome in outcomes
        for one in outcome.simulated.intervals
    ]
    column = Column("capacity", Kind.NUMBER, "rows/s", "of all workers, for rows of mean cost")
    rows = [(*row, rate) for row, rate in zip(intervals.rows, possible, strict=True)]
    return joined | {"intervals": replace(intervals, columns=(*intervals.columns, column), rows=tuple(rows))}


def _joined(tables: Sequence[tuple[str, Table]]) -> Table:
    """Concatenated tables, with the case as the first column."""
    first = tables[0][1]
    rows = tuple((case, *row) for case, table in tables for row in table.rows)
    return replace(first, columns=(CASE, *first.columns), rows=rows)
