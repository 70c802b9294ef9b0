"""Charts of a query network that sheds load: its planners beside each other, tick by tick."""

from dataclasses import replace

from adapt.core.report.chart import Chart
from adapt.core.report.of_stage import lines_of_cases
from adapt.core.report.points import is_real
from adapt.core.table import Table

_DRAWN = (
    ("Score", ("score", "optimum"), "What the outputs gave with each planner, and dashed the best for what came"),
    ("Kept", ("kept",), "The share of what came that each planner let in"),
    ("Waiting", ("wait_max",), "The time that the node or link with the longest queue needs for it"),
    (
        "Latency",
        ("latency_max", "latency"),
        "The longest from when a row comes until its results are read, dashed the mean",
    ),
)
"""Title, columns and sentence of each chart of ticks."""


def shedding_charts(ticks: Table, nodes: Table) -> tuple[Chart, ...]:
    """Score, share kept, queues and latency over time, then how busy each node is with each planner."""
    cases = _as_cases(ticks)
    charts = [lines_of_cases(cases, *each) for each in _told(ticks)]
    names = list(dict.fromkeys(nodes.values("node")))
    return (*charts, *(_busy(nodes, str(name)) for name in names))


def _told(ticks: Table) -> list[tuple[str, tuple[str, ...], str]]:
    """Those of which there is anything to draw."""
    return [each for each in _DRAWN if any(is_real(cell) for cell in ticks.values(each[1][0]))]


def _busy(nodes: Table, name: str) -> Chart:
    at = [column.name for column in nodes.columns].index("node")
    of_node = replace(nodes, rows=tuple(row for row in nodes.rows if row[at] == name))
    sentence = f"How busy {name} is with each planner"
    return lines_of_cases(_as_cases(of_node), f"Utilization of {name}", ("utilization",), sentence)


def _as_cases(table: Table) -> Table:
    """The same, a planner being a case."""
    columns = tuple(replace(column, name="case") if column.name == "planner" else column for column in table.columns)
    return replace(table, columns=columns)
