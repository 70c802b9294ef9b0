"""Metrics by the name in a limit, and their tables."""

from adapt.core.errors import UsageError, near_miss
from adapt.core.metrics import METRICS, RENAMED, Metric, Of
from adapt.core.table import Column, Kind, Table


def metric_named(name: str) -> Metric:
    """The metric with that name."""
    if name in METRICS:
        return METRICS[name]
    if new := RENAMED.get(name):
        by_unit = METRICS[new].column.kind is Kind.SECONDS and not METRICS[new].bare
        takes = f", and takes a unit, as in {new}<=500ms" if by_unit else ""
        raise UsageError(f"metric {name!r} is now {new}{takes}")
    raise UsageError(f"metric {name!r} does not exist{near_miss(name, METRICS)} (`adapt check --metrics` lists all)")


def metrics_tables() -> list[Table]:
    """The metrics as tables, one per set of artefacts."""
    groups: dict[str, list[Metric]] = {}
    for each in METRICS.values():
        groups.setdefault(", ".join(kind.value for kind in Of if kind in each.places), []).append(each)
    columns = (
        Column("metric"),
        Column("better"),
        Column("bare number", about="unit of a number written without one; empty: it needs one"),
        Column("meaning"),
    )
    return [
        Table.from_rows(
            f"Metrics of {of}",
            columns,
            [(each.name, each.better.value, each.bare, each.column.about) for each in metrics],
        )
        for of, metrics in groups.items()
    ]
