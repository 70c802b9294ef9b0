"""Charts of load shedding: planners compared, tick by tick."""

from dataclasses import replace

from adapt.core.charts.axes import column_of
from adapt.core.charts.bars import written_bars
from adapt.core.charts.chart import Chart
from adapt.core.charts.points import is_real
from adapt.core.labels import label
from adapt.core.stage.charts import lines_of_cases
from adapt.core.table import Table

_DRAWN = (
    (
        "Score",
        ("score", "optimum"),
        "Weighted output rate of each planner; dashed: the best possible for the offered rates",
    ),
    ("Dropped", ("dropped",), "Share of the offered tuples that each planner drops at the inputs"),
    ("Waiting", ("wait_max",), "Time to drain the longest queue of a node or link"),
    (
        "Latency",
        ("latency_max", "latency"),
        "Longest time from arrival of a row to its results; dashed: mean",
    ),
)
"""Title, columns and caption of each chart of ticks."""


def shedding_charts(planners: Table, ticks: Table, nodes: Table) -> tuple[Chart, ...]:
    """Planners compared; score, drop rate, queues, latency and utilization over time."""
    cases = _as_cases(ticks)
    charts = [lines_of_cases(cases, *each) for each in _drawn(ticks)]
    names = list(dict.fromkeys(nodes.values("node")))
    return (_beside_each_other(planners), *charts, *(_busy(nodes, str(name)) for name in names))


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
    """Score of each planner as a share of the best, over overloaded ticks if there are any."""
    full = any(is_real(share) for share in planners.values("optimum_share_full"))
    column = column_of(planners, "optimum_share_full" if full else "optimum_share")
    pairs = [
        (label(name), share)
        for name, share in zip(planners.values("planner"), planners.values(column.name), strict=True)
        if is_real(share)
    ]
    ticks = "in overloaded ticks" if full else "in all ticks"
    return written_bars(
        "Planners",
        pairs,
        column,
        f"Score of each planner as a share of the best possible, {ticks} ({column.name}).",
        planners,
    )


def _drawn(ticks: Table) -> list[tuple[str, tuple[str, ...], str]]:
    """The charts that have data."""
    return [each for each in _DRAWN if any(is_real(cell) for cell in ticks.values(each[1][0]))]


def _busy(nodes: Table, name: str) -> Chart:
    at = [column.name for column in nodes.columns].index("node")
    of_node = replace(nodes, rows=tuple(row for row in nodes.rows if row[at] == name))
    sentence = f"Utilization of {name} with each planner"
    return lines_of_cases(_as_cases(of_node), f"Utilization of {name}", ("utilization",), sentence)


def _as_cases(table: Table) -> Table:
    """The same table, with planners as cases."""
    columns = tuple(replace(column, name="case") if column.name == "planner" else column for column in table.columns)
    return replace(table, columns=columns)
