"""Tolerance (alpha) from a least utilization or a channel's capacity."""

import math

from adapt.core.errors import UsageError
from adapt.core.table import Cell, Column, Kind, Table


def tolerance_for_utilization(utilization: float) -> float:
    """The alpha that keeps a least utilization on every channel.

    Relative to the busiest one.

    Source: partitioning functions, section 3.1, discussion.
    """
    if not 0 < utilization <= 1:
        raise UsageError(f"--utilization must be above 0 and at most 1, such as 0.9 (got {utilization:g})")
    return 1 / utilization


def tolerance_for_capacity(total: float, capacity: float, channels: int) -> float:
    """The alpha at which the busiest channel is just full.

    Infinite if one channel can hold everything.

    Args:
        total: x, the load of all channels together.
        capacity: y, the capacity of one channel.

    Source: partitioning functions, section 3.1, discussion: (N - 1) y / (x - y).
    """
    if not (0 < total < math.inf and 0 < capacity < math.inf):
        raise UsageError(f"--total and --capacity must be above 0, in the same unit (got {total:g} and {capacity:g})")
    if channels * capacity < total:
        raise UsageError(
            f"{channels} channels of capacity {capacity:g} cannot hold a load of {total:g}; use at least"
            f" {math.ceil(total / capacity)} channels, or a capacity of {total / channels:.3g}"
        )
    return (channels - 1) * capacity / (total - capacity) if capacity < total else math.inf


def suggested_tolerances(
    channels: int, *, utilization: float | None = None, total: float | None = None, capacity: float | None = None
) -> Table:
    """Suggested tolerances, each with the utilization that it keeps."""
    rows: list[list[Cell]] = []
    if utilization is not None:
        alpha = tolerance_for_utilization(utilization)
        rows.append([f"every channel is utilized at least {utilization:.0%} when one is full", alpha, utilization])
    if (total is None) != (capacity is None):
        raise UsageError("--total and --capacity go together: the load of all channels, and the capacity of one")
    if total is not None and capacity is not None:
        alpha = tolerance_for_capacity(total, capacity, channels)
        condition = f"the busiest of {channels} channels has at most {capacity:g} of {total:g}"
        rows.append([condition, None if alpha == math.inf else alpha, 0.0 if alpha == math.inf else 1 / alpha])
    if not rows:
        raise UsageError("give --utilization, or --total and --capacity; e.g. --utilization 0.9")
    return Table.from_rows("Suggested tolerance", _COLUMNS, rows, note=_NOTE)


_COLUMNS = (
    Column("condition"),
    Column("tolerance", Kind.RATIO, about="max/min load ratio; empty if any will do"),
    Column("utilization", Kind.SHARE, about="of the least loaded channel when the busiest is full"),
)

_NOTE = "Pass it as --tolerance: one for all resources, or three (state, computation, network)."
