"""Charts of load shedding: planners compared, tick by tick."""

from dataclasses import replace
from math import ceil, floor, log10

from adapt.core.charts.axes import INK, colours, column_of, has, is_real, set_apart, shapes, ticks
from adapt.core.charts.chart import Chart, Records, chart, written_bars
from adapt.core.labels import label
from adapt.core.stage.charts import lines_of_cases
from adapt.core.table import Column, Table
from adapt.core.values import human

_DRAWN = (
    (
        "Score",
        ("score", "optimum"),
        "Weighted output rate of each planner; dashed: the best possible for the offered rates",
    ),
    ("Dropped", ("drop_rate",), "Share of the offered tuples that each planner drops at the inputs"),
    ("Waiting", ("wait_max",), "Time to drain the longest queue of a node or link"),
    (
        "Latency",
        ("latency_max", "latency"),
        "Longest time from arrival of a row to its results; dashed: mean",
    ),
)
"""Title, columns and caption of each chart of ticks."""


def shedding_charts(planners: Table, over_time: Table, nodes: Table) -> tuple[Chart, ...]:
    """Planners compared; score, drop rate, queues, latency and utilization over time."""
    cases = _as_cases(over_time)
    charts = [lines_of_cases(cases, *each) for each in _drawn(over_time)]
    names = list(dict.fromkeys(nodes.values("node")))
    first = (_beside_each_other(planners), *_against_traffic(planners))
    return (*first, *charts, *(_busy(nodes, str(name)) for name in names))


def _against_traffic(planners: Table) -> tuple[Chart, ...]:
    """Scatter chart of score against traffic; nothing if no planner sends a message, as in runs of older versions."""
    if not has(planners, "bytes_per_s") or not any(planners.values("bytes_per_s")):
        return ()
    share, sent = _share_of_best(planners), column_of(planners, "bytes_per_s")
    points: Records = []
    for row in planners.records():
        x, y, name = row["bytes_per_s"], row[share.name], label(row["planner"])
        if is_real(x) and is_real(y):
            text = f"{name}: {human(y, share)} with {human(x, sent)} bytes/s"
            points.append({"x": x, "y": y, "series": row["coordination"], "t": name, "d": text})
    set_apart(points)
    some = [point["x"] for point in points if point["x"] > 0]
    least, most = floor(log10(min(some))), ceil(log10(max(some)))
    step = max(1, (most - least) // 4)
    marks = [0, *(10.0**power for power in range(least, most + 1, step))]
    scale = {"type": "symlog", "constant": 10.0**least, "domain": [0, 10.0**most], "nice": False, "padding": 12}
    axis = ticks(planners, "bytes_per_s") | {"values": marks, "tickCount": len(marks)}
    encoding = {
        "x": {"field": "x", "type": "quantitative", "scale": scale, "axis": axis},
        "y": {
            "field": "y",
            "type": "quantitative",
            "scale": {"zero": False, "padding": 12},
            "axis": ticks(planners, share.name),
        },
    }
    kinds = list(dict.fromkeys(point["series"] for point in points))
    dots = {"type": "point", "filled": True, "size": 80, "opacity": 1}
    names = {"type": "text", "align": "left", "dx": 8, "color": INK, "aria": False}
    described = {"description": {"field": "d"}}
    layers = [
        {"mark": dots, "encoding": {"color": colours(kinds), "shape": shapes(kinds), **described}},
        {"mark": names, "encoding": {"text": {"field": "t"}, "y": {**encoding["y"], "field": "at"}}},
    ]
    sentence = (
        f"Score as a share of the best possible ({share.name}) against the traffic that coordination takes; the upper"
        " left is best. At 0, every node decides for itself."
    )
    body = {"height": 300, "encoding": encoding, "layer": layers}
    return (chart("Score against traffic", body, points, sentence, planners),)


def _share_of_best(planners: Table) -> Column:
    """Score as a share of the best, over overloaded ticks if there are any."""
    full = any(is_real(share) for share in planners.values("optimum_share_full"))
    return column_of(planners, "optimum_share_full" if full else "optimum_share")


def statistics_charts(errors: Table) -> tuple[Chart, ...]:
    """How wrong the costs and selectivities were that plans used, over time."""
    cases = _as_cases(errors)
    charts = [
        ("Errors of costs", ("cost_error",), "Relative error of the costs that each planner's plans use"),
        ("Errors of selectivities", ("selectivity_error",), "Relative error of the selectivities that plans use"),
        ("Errors of estimates", ("estimate_error",), "Relative error of the nodes' estimates"),
    ]
    known = [each for each in charts if any(is_real(cell) for cell in errors.values(each[1][0]))]
    return tuple(lines_of_cases(cases, *each) for each in known)


def _beside_each_other(planners: Table) -> Chart:
    """Score of each planner as a share of the best."""
    column = _share_of_best(planners)
    pairs = [
        (f"{label(row['planner'])}{f', {sample}' if (sample := row.get('sample')) else ''}", share)
        for row in planners.records()
        if is_real(share := row[column.name])
    ]
    among = "in overloaded ticks" if column.name == "optimum_share_full" else "in all ticks"
    return written_bars(
        "Planners",
        pairs,
        column,
        f"Score of each planner as a share of the best possible, {among} ({column.name}).",
        planners,
    )


def _drawn(over_time: Table) -> list[tuple[str, tuple[str, ...], str]]:
    """The charts that have data."""
    return [each for each in _DRAWN if any(is_real(cell) for cell in over_time.values(each[1][0]))]


def _busy(nodes: Table, name: str) -> Chart:
    at = [column.name for column in nodes.columns].index("node")
    of_node = replace(nodes, rows=tuple(row for row in nodes.rows if row[at] == name))
    sentence = f"Utilization of {name} with each planner"
    return lines_of_cases(_as_cases(of_node), f"Utilization of {name}", ("utilization",), sentence)


def _as_cases(table: Table) -> Table:
    """The same table, with planners as cases."""
    columns = tuple(replace(column, name="case") if column.name == "planner" else column for column in table.columns)
    return replace(table, columns=columns)
