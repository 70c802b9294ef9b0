"""Tolerance (alpha) from a least utilization or a channel's capacity."""

import math

from adapt.core.errors import UsageError
from adapt.core.partitioning.measures.plan_settings import ToleranceSettings
from adapt.core.phrases import percent
from adapt.core.table import Cell, Column, Kind, Table


def tolerance_for_utilization(utilization: float) -> float:
    """The alpha that keeps a least utilization on every channel.

    Relative to the busiest one.

    Source: partitioning functions, section 3.1, discussion.
    """
    return 1 / utilization


def tolerance_for_capacity(total: float, capacity: float, channels: int) -> float:
    """The alpha at which the busiest channel is just full.

    Infinite if one channel can hold everything.

    Args:
        total: x, the load of all channels together.
        capacity: y, the capacity of one channel.

    Source: partitioning functions, section 3.1, discussion: (N - 1) y / (x - y).
    """
    if channels * capacity < total:
        raise UsageError(
            f"{channels} workers of capacity {capacity:g} cannot hold a load of {total:g}; use at least"
            f" {math.ceil(total / capacity)} workers, or a capacity of {total / channels:.3g}"
        )
    return (channels - 1) * capacity / (total - capacity) if capacity < total else math.inf


def suggested_tolerances(channels: int, known: ToleranceSettings) -> Table:
    """Suggested tolerances, each with the utilization that it keeps."""
    rows: list[list[Cell]] = []
    utilization, total, capacity = known.utilization, known.total, known.capacity
    if utilization is not None:
        alpha = tolerance_for_utilization(utilization)
        rows.append([f"every worker is utilized at least {percent(utilization)} when one is full", alpha, utilization])
    if total is not None and capacity is not None:
        alpha = tolerance_for_capacity(total, capacity, channels)
        condition = f"the busiest of {channels} workers has at most {capacity:g} of {total:g}"
        rows.append([condition, None if alpha == math.inf else alpha, 0.0 if alpha == math.inf else 1 / alpha])
    return Table.from_rows("Suggested tolerance", _COLUMNS, rows, note=_NOTE)


_COLUMNS = (
    Column("condition"),
    Column("tolerance", Kind.RATIO, about="max/min load ratio; empty if any will do"),
    Column("utilization", Kind.SHARE, about="of the least loaded worker when the busiest is full"),
)

_NOTE = "Pass it as the tolerance: one for all resources, or three (state, computation, network)."
