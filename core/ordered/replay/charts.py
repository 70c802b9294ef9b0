"""Charts of an ordered replay."""

from collections.abc import Sequence
from typing import Any

from adapt.core.charts.axes import DASHED, colours, column_of, is_real, named, powers, spans_magnitudes, ticks, up
from adapt.core.charts.chart import Chart, Records, chart
from adapt.core.labels import label
from adapt.core.table import Table
from adapt.core.values import human

_LATENCIES = ("processing_p99", "processing_p50", "end_to_end_p99", "end_to_end_p50")
REST = "no operator"


def ordered_charts(workers: Table, operators: Table, occupancy: Table, loads: Table | None = None) -> tuple[Chart, ...]:
    """All charts of a run."""
    by_workers = throughput_by_workers(workers), latency_by_workers(workers), time_by_workers(operators)
    by_load = () if loads is None else (latency_by_load(loads),)
    return *by_load, *by_workers, rings_in_use(occupancy)


def throughput_by_workers(workers: Table) -> Chart:
    """Throughput by number of workers, with linear scaling as a dashed line."""
    points = _points(workers, ["throughput"])
    sentence = f"The {named(workers, 'throughput')} by number of workers"
    if points and not any(is_real(row.get("rate")) for row in workers.records()):
        first = points[0]
        even = [{"x": point["x"], "y": first["y"] * point["x"] / first["x"], "series": "even"} for point in points]
        points = [*points, *even]
        sentence += "; the dashed line is linear scaling from the first point"
    encoding = {"x": _across(workers), "y": up(workers, "throughput", zero=True)}
    layers = [
        {"mark": DASHED, "transform": [{"filter": "datum.series == 'even'"}]},
        *({**layer, "transform": [{"filter": "datum.series != 'even'"}]} for layer in _lines(["throughput"])),
    ]
    return chart("Throughput", {"encoding": encoding, "layer": layers}, points, f"{sentence}.", workers)


def latency_by_workers(workers: Table) -> Chart:
    """Latency by number of workers.

    On a logarithmic scale if it spans magnitudes.
    """
    points = _points(workers, _LATENCIES)
    heights = [point["y"] for point in points if point["y"] > 0]
    upwards = up(workers, _LATENCIES[0], zero=True)
    sentence = (
        "Median and 99th percentile of the timed rows: processing counts from the first operator, end_to_end from the"
        " arrival"
    )
    if spans_magnitudes(heights):
        points = [point for point in points if point["y"] > 0]
        axis = {**ticks(workers, _LATENCIES[0]), "title": "seconds"} | powers(heights)
        upwards = {**up(workers, _LATENCIES[0]), "scale": {"type": "log"}, "axis": axis}
        sentence += ", on a logarithmic scale"
    upwards = {**upwards, "axis": {**upwards["axis"], "title": "latency"}}
    encoding = {"x": _across(workers), "y": upwards}
    return chart("Latency", {"encoding": encoding, "layer": _lines(_LATENCIES)}, points, f"{sentence}.", workers)


_OVER = {"sustainable": "over the sustainable rate", "capacity": "over capacity", None: "(rows/s)"}


def latency_by_load(loads: Table) -> Chart:
    """Latency from arrival to output over the rate of arrivals."""
    points: Records = []
    of = next((name for name in ("sustainable", "capacity") if all(map(is_real, loads.values(name)))), None)
    for row in loads.records():
        rate, whole = row["rate"], row[of] if of else 1.0
        for name in ("end_to_end_p99", "end_to_end_p50"):
            latency = row[name]
            if is_real(rate) and is_real(latency):
                series = f"{row['workers']} workers, {name.removeprefix('end_to_end_')}"
                said = f"{human(rate, column_of(loads, 'rate'))}: {human(latency, column_of(loads, name))}"
                across = rate / whole if is_real(whole) else rate
                points.append({"x": across, "y": latency, "series": series, "d": f"{series} at {said}"})
    names = list(dict.fromkeys(point["series"] for point in points))
    upwards, heights = up(loads, "end_to_end_p99", zero=True), [point["y"] for point in points]
    if spans_magnitudes(heights):
        axis = {**ticks(loads, "end_to_end_p99"), **powers(heights)}
        upwards = {**upwards, "scale": {"type": "log"}, "axis": axis}
    upwards = {**upwards, "axis": {**upwards["axis"], "title": "latency from arrival to output"}}
    title = f"rate of arrivals {_OVER[of]}"
    across_axis = {"title": title, "labelExpr": "format(datum.value, '.3~s')"}
    scale = {"zero": False, "nice": False, "padding": 8}
    encoding = {"x": {"field": "x", "type": "quantitative", "scale": scale, "axis": across_axis}, "y": upwards}
    sentence = f"Median and 99th percentile of the latency from arrival to output, over the {title}."
    return chart("Latency over load", {"encoding": encoding, "layer": _lines(names)}, points, sentence, loads)


def time_by_workers(operators: Table) -> Chart:
    """Share of the time of all workers by operator, and the rest."""
    column = column_of(operators, "time_share")
    names = list(dict.fromkeys(str(name) for name in operators.values("operator")))
    points: Records = []
    for workers in dict.fromkeys(operators.values("workers")):
        rows = [row for row in operators.records() if row["workers"] == workers]
        shares = {str(row["operator"]): row["time_share"] for row in rows}
        known = {name: share for name, share in shares.items() if is_real(share)}
        if known:
            known[REST] = max(1.0 - sum(known.values()), 0.0)
        for at, name in enumerate([*names, REST]):
            if name in known:
                said = f"{workers} workers, {label(name)}: {human(known[name], column)}"
                points.append({"x": str(workers), "y": known[name], "series": label(name), "at": at, "d": said})
    series = [label(name) for name in [*names, REST]]
    encoding = {
        "x": {"field": "y", "type": "quantitative", "stack": "zero", "axis": ticks(operators, "time_share")},
        "y": {"field": "x", "type": "nominal", "sort": None, "axis": {"title": "workers"}},
        "color": colours(series),
        "order": {"field": "at"},
        "description": {"field": "d"},
    }
    body = {"height": {"step": 30}, "mark": {"type": "bar", "height": 20}, "encoding": encoding}
    sentence = "How the workers spent their time, by operator; the rest is scheduling, waiting and yielding."
    return chart("Worker time", body, points, sentence, operators)


def rings_in_use(occupancy: Table) -> Chart:
    """Ring buffer occupancy of each operator with the most workers."""
    counts = [cell for cell in occupancy.values("workers") if is_real(cell)]
    most = max(counts, default=0)
    column = column_of(occupancy, "share")
    rows = [row for row in occupancy.records() if row["workers"] == most]
    names = list(dict.fromkeys(label(row["operator"]) for row in rows))
    points: Records = []
    for row in rows:
        if is_real(row["share"]) and is_real(row["up_to"]) and row["up_to"] > 0:
            name = label(row["operator"])
            said = f"{name}, up to {row['up_to']} tuples: {human(row['share'], column)}"
            points.append({"x": row["up_to"], "y": row["share"], "series": name, "d": said})
    marks = {"values": sorted({point["x"] for point in points}), "labelExpr": "format(datum.value, '~s')"}
    axis = {"title": "tuples of the ring buffer in use, up to", **marks, "labelOverlap": True}
    scale = {"type": "log", "base": 2, "nice": False}
    across = {"field": "x", "type": "quantitative", "scale": scale, "axis": axis}
    encoding = {"x": across, "y": up(occupancy, "share", zero=True)}
    sentence = (
        f"How full the ring buffer of each operator was when a chunk of tuples was claimed, with {most} "
        f"worker{'' if most == 1 else 's'}: share of its chunks, by powers of two."
    )
    return chart("Ring buffer occupancy", {"encoding": encoding, "layer": _lines(names)}, points, sentence, occupancy)


def _points(workers: Table, names: Sequence[str]) -> Records:
    points: Records = []
    for row in workers.records():
        for name in names:
            height = row[name]
            if is_real(height):
                said = f"{row['workers']} workers: {name} {human(height, column_of(workers, name))}"
                points.append({"x": row["workers"], "y": height, "series": name, "d": said})
    return points


def _across(workers: Table) -> dict[str, Any]:
    axis = {**ticks(workers, "workers", whole=True), "values": sorted(filter(is_real, workers.values("workers")))}
    scale = {"zero": False, "nice": False, "padding": 8}
    return {"field": "x", "type": "quantitative", "scale": scale, "axis": axis}


def _lines(names: Sequence[str]) -> list[dict[str, Any]]:
    """Lines with a point at each value."""
    spots = {"type": "point", "filled": True, "size": 46, "opacity": 1}
    return [
        {"mark": "line", "encoding": {"color": colours(names)}},
        {"mark": spots, "encoding": {"color": colours(names), "description": {"field": "d"}}},
    ]
