"""Charts of mechanisms compared on one stream: what they cost against what they give, and what they sustain."""

from collections.abc import Mapping
from typing import Any

from adapt.core.charts.axes import colours, column_of, powers, shapes, spans_magnitudes, ticks
from adapt.core.charts.bars import written_bars
from adapt.core.charts.chart import Chart, Records, chart
from adapt.core.charts.points import is_real, set_apart
from adapt.core.charts.theme import INK, PALETTE
from adapt.core.labels import label
from adapt.core.table import Table
from adapt.core.values import human

LOSS = 0.01
"""From this share on, dropping rows is told in the chart."""

_KINDS = ("not beaten", "beaten", "drops rows")


def comparison_charts(tables: Mapping[str, Table]) -> tuple[Chart, ...]:
    """Cost against latency, what each sustains and the demand curves, as far as these were asked for."""
    charts = [cost_against_latency(tables["scenarios"])]
    if "sustained" in tables:
        charts += [sustained_by_scenario(tables["sustained"]), demand_curves(tables["demand"])]
    return tuple(charts)


def cost_against_latency(scenarios: Table, cost: str = "worker_time", latency: str = "p99") -> Chart:
    """A point a scenario: to the left is cheap, below is fast; those that none beats are named."""
    points: Records = []
    for record in scenarios.records():
        x, y, shed = record[cost], record[latency], record["shed"]
        if is_real(x) and is_real(y):
            name = label(record["scenario"])
            told = f"{name}: {human(x, column_of(scenarios, cost))}, {human(y, column_of(scenarios, latency))}"
            is_front = record["pareto"] == "yes"
            loses = is_real(shed) and shed > LOSS
            if loses:
                told += f", {human(shed, column_of(scenarios, 'shed'))} shed"
            kind = _KINDS[2] if loses else _KINDS[0] if is_front else _KINDS[1]
            named = name if is_front or not points else ""
            points.append({"x": x, "y": y, "series": kind, "t": named, "d": told})
    set_apart(points)
    names = [kind for kind in _KINDS if any(point["series"] == kind for point in points)]
    at = {_KINDS[0]: PALETTE[0], _KINDS[1]: PALETTE[-1], _KINDS[2]: PALETTE[1]}
    colour = {**colours(names), "scale": {"domain": names, "range": [at[name] for name in names]}}
    encoding = {"x": _axis(scenarios, cost, points, "x"), "y": _axis(scenarios, latency, points, "y")}
    dots = {"type": "point", "filled": True, "size": 80, "opacity": 1}
    text = {"type": "text", "align": "left", "dx": 8, "color": INK, "aria": False}
    layers = [
        {"mark": dots, "encoding": {"color": colour, "shape": shapes(names), "description": {"field": "d"}}},
        {"mark": text, "encoding": {"text": {"field": "t"}, "y": {**encoding["y"], "field": "at"}}},
    ]
    sentence = (
        "The latency that 99% of the rows do not exceed against the time of all workers together: the lower left is"
        " best. Named are the first scenario, and those that no other beats in all of cost, latency and loss; triangles"
        " drop more than 1% of the rows."
    )
    body = {"height": 340, "encoding": encoding, "layer": layers}
    return chart("Cost against latency", body, points, sentence, scenarios)


def sustained_by_scenario(sustained: Table) -> Chart:
    """The largest rate that each sustains, with the channels of the comparison."""
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
    sentence = "The largest rate, in rows a second, at which lag stays bounded with each scenario."
    return written_bars("Sustainable throughput", list(pairs.items()), column, sentence, sustained)


def demand_curves(demand: Table) -> Chart:
    """How many workers each scenario needs against the rate of the stream."""
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
    sentence = "The fewest workers, of the numbers that were tried, with which each scenario sustains a rate."
    return chart("Demand", {"height": 300, "encoding": encoding, "layer": layers}, points, sentence, demand)


def _axis(table: Table, name: str, points: Records, field: str) -> dict[str, Any]:
    """A quantitative axis, logarithmic where its values span magnitudes."""
    values = [point[field] for point in points]
    spans = spans_magnitudes(values)
    scale = {"type": "log", "padding": 12} if spans else {"zero": False, "padding": 12}
    axis = ticks(table, name) | (powers(values) if spans else {})
    return {"field": field, "type": "quantitative", "scale": scale, "axis": axis}
