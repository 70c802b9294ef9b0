"""Charts of compared scenarios: cost against latency, sustainable throughput, demand."""

from collections.abc import Mapping
from typing import Any

from adapt.core.charts.axes import (
    INK,
    PALETTE,
    colours,
    column_of,
    is_real,
    powers,
    set_apart,
    shapes,
    spans_magnitudes,
    ticks,
)
from adapt.core.charts.chart import Chart, Records, chart, written_bars
from adapt.core.labels import label
from adapt.core.mechanisms.recommendation import real
from adapt.core.stage.outcome import queues_in
from adapt.core.table import Cell, Table
from adapt.core.values import human

LOSS = 0.01
"""Drop rate above which the chart marks a scenario."""

_KINDS = ("Pareto-optimal", "dominated", "drops rows")


def comparison_charts(tables: Mapping[str, Table]) -> tuple[Chart, ...]:
    """Charts of cost against latency, and of loads and rates where measured."""
    if "over_seeds" in tables:
        charts = [cost_against_latency(at_given_point(tables["over_seeds"], tables["scenarios"]))]
        charts += by_load(tables["over_seeds"], tables["points"])
    else:
        charts = [cost_against_latency(tables["scenarios"])]
    if "sustained" in tables:
        charts += [sustained_by_scenario(tables["sustained"]), demand_curves(tables["demand"])]
    return tuple(charts)


def cost_against_latency(scenarios: Table) -> Chart:
    """Scatter chart of cost and latency; Pareto-optimal scenarios are named."""
    points: Records = []
    for record in scenarios.records():
        x, y, dropped = record["worker_time"], record["latency_p99"], record["drop_rate"]
        if is_real(x) and is_real(y):
            name = label(record["scenario"])
            measured = (("worker_time", x), ("latency_p99", y))
            text = f"{name}: {', '.join(human(value, column_of(scenarios, each)) for each, value in measured)}"
            is_front = record["pareto"] == "yes"
            loses = is_real(dropped) and dropped > LOSS
            if loses:
                text += f", {human(dropped, column_of(scenarios, 'drop_rate'))} of the rows dropped"
            kind = _KINDS[2] if loses else _KINDS[0] if is_front else _KINDS[1]
            named = name if is_front or not points else ""
            points.append({"x": x, "y": y, "series": kind, "t": named, "d": text})
    set_apart(points)
    names = [kind for kind in _KINDS if any(point["series"] == kind for point in points)]
    at = {_KINDS[0]: PALETTE[0], _KINDS[1]: PALETTE[-1], _KINDS[2]: PALETTE[1]}
    colour = {**colours(names), "scale": {"domain": names, "range": [at[name] for name in names]}}
    encoding = {"x": _axis(scenarios, "worker_time", points, "x"), "y": _axis(scenarios, "latency_p99", points, "y")}
    dots = {"type": "point", "filled": True, "size": 80, "opacity": 1}
    names_mark = {"type": "text", "align": "left", "dx": 8, "color": INK, "aria": False}
    layers = [
        {"mark": dots, "encoding": {"color": colour, "shape": shapes(names), "description": {"field": "d"}}},
        {"mark": names_mark, "encoding": {"text": {"field": "t"}, "y": {**encoding["y"], "field": "at"}}},
    ]
    sentence = (
        f"p99 latency{queues_in(scenarios)} against worker time; the lower left is best. Names mark the first scenario"
        " and the Pareto-optimal ones: no other is at least as good in cost, latency and drop rate. Triangles drop more"
        " than 1% of the rows."
    )
    body = {"height": 340, "encoding": encoding, "layer": layers}
    return chart("Cost against latency", body, points, sentence, scenarios)


def at_given_point(over_seeds: Table, scenarios: Table) -> Table:
    """Scenarios at the given load, with any number of workers."""
    records = over_seeds.records()
    first = records[0]
    near = [row for row in records if row["offered"] == first["offered"]]
    queueing = scenarios.values("queueing")[0]
    rows = [
        (_at_workers(row, first), row["worker_time"], row["latency_p99"], row["drop_rate"], queueing, row["pareto"])
        for row in near
    ]
    columns = [
        column_of(scenarios, name) for name in ("scenario", "worker_time", "latency_p99", "drop_rate", "queueing")
    ]
    return Table.from_rows(scenarios.title, [*columns, column_of(over_seeds, "pareto")], rows)


def by_load(over_seeds: Table, points: Table) -> list[Chart]:
    """Line chart of p99 with its interval against load.

    Its series are the scenarios that are recommended at a load and the first one, with any number of workers.
    None with one load.
    """
    records, first = over_seeds.records(), over_seeds.records()[0]
    chosen = {(row["workers"], row["scenario"]) for row in points.records()}
    chosen.add((first["workers"], first["scenario"]))
    near = [row for row in records if (row["workers"], row["scenario"]) in chosen]
    near = [row for row in sorted(near, key=lambda row: real(row["offered"])) if is_real(row["latency_p99"])]
    if len({row["offered"] for row in near}) < 2:
        return []
    p99 = column_of(over_seeds, "latency_p99")
    dots: Records = []
    for row in near:
        ends = [
            row[name] if is_real(row[name]) else row["latency_p99"] for name in ("latency_p99_low", "latency_p99_high")
        ]
        name = _at_workers(row, first)
        text = f"{name}: {human(row['latency_p99'], p99)} ({human(ends[0], p99)} to {human(ends[1], p99)})"
        dots.append(
            {"x": row["offered"], "y": row["latency_p99"], "low": ends[0], "high": ends[1], "series": name, "d": text}
        )
    names = list(dict.fromkeys(str(dot["series"]) for dot in dots))
    y = _axis(over_seeds, "latency_p99", dots, "y")
    x = {"field": "x", "type": "quantitative", "scale": {"zero": False, "padding": 12}}
    encoding = {"x": x | {"axis": ticks(over_seeds, "offered") | {"title": "load"}}, "color": colours(names)}
    whisker = {"y": {**y, "field": "low"}, "y2": {"field": "high"}}
    layers = [
        {"mark": {"type": "rule", "strokeWidth": 2, "aria": False}, "encoding": whisker},
        {"mark": {"type": "line", "aria": False}, "encoding": {"y": y}},
        {
            "mark": {"type": "point", "filled": True, "size": 50, "opacity": 1},
            "encoding": {"y": y, "shape": shapes(names), "description": {"field": "d"}},
        },
    ]
    sentence = (
        "p99 latency of what is recommended at some load, and of the first scenario, against the load; bars are its"
        " interval over seeds at 95 % confidence."
    )
    return [chart("p99 by load", {"height": 300, "encoding": encoding, "layer": layers}, dots, sentence, over_seeds)]


def _at_workers(row: Mapping[str, Cell], first: Mapping[str, Cell]) -> str:
    """A scenario's name, with the number of workers where it is not the given one."""
    name = label(row["scenario"])
    return name if row["workers"] == first["workers"] else f"{name}, {row['workers']} workers"


def sustained_by_scenario(sustained: Table) -> Chart:
    """Bar chart of sustained rates with the comparison's channels."""
    records = sustained.records()
    first = [int(record["channels"] or 0) for record in records if record["scenario"] == records[0]["scenario"]]
    at = first.index(sorted(first)[len(first) // 2]) if first else 0
    pairs: dict[str, float] = {}
    for name in dict.fromkeys(str(record["scenario"]) for record in records):
        own = [record for record in records if record["scenario"] == name]
        rate = own[min(at, len(own) - 1)]["sustainable"]
        if is_real(rate):
            pairs[label(name)] = float(rate)
    column = column_of(sustained, "sustainable")
    sentence = "The highest rate, in rows/s, at which lag stays bounded, per scenario."
    return written_bars("Sustainable throughput", list(pairs.items()), column, sentence, sustained)


def demand_curves(demand: Table) -> Chart:
    """Line chart of workers needed against the arrival rate."""
    rate = column_of(demand, "rate")
    points: Records = [
        {
            "x": record["rate"],
            "y": record["workers"],
            "series": label(record["scenario"]),
            "d": f"{record['scenario']}: {record['workers']} workers for {human(record['rate'], rate)}",
        }
        for record in demand.records()
        if is_real(record["workers"])
    ]
    names = list(dict.fromkeys(point["series"] for point in points))
    workers = ticks(demand, "workers", whole=True)
    encoding = {
        "x": {"field": "x", "type": "quantitative", "scale": {"zero": False}, "axis": ticks(demand, "rate")},
        "y": {"field": "y", "type": "quantitative", "scale": {"zero": True}, "axis": workers},
    }
    layers = [
        {"mark": {"type": "line", "interpolate": "step-before"}, "encoding": {"color": colours(names)}},
        {
            "mark": {"type": "point", "filled": True, "size": 40, "opacity": 1},
            "encoding": {"color": colours(names), "shape": shapes(names), "description": {"field": "d"}},
        },
    ]
    sentence = "The fewest workers, of the numbers tried, with which a scenario sustains a rate."
    return chart("Demand", {"height": 300, "encoding": encoding, "layer": layers}, points, sentence, demand)


def _axis(table: Table, name: str, points: Records, field: str) -> dict[str, Any]:
    """A quantitative axis, logarithmic where its values span magnitudes."""
    values = [point[field] for point in points]
    spans = spans_magnitudes(values)
    scale = {"type": "log", "padding": 12} if spans else {"zero": False, "padding": 12}
    axis = ticks(table, name) | (powers(values) if spans else {})
    return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}
