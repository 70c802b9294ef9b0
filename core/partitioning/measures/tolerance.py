"""Which imbalance can be tolerated: alpha from a utilisation to keep, or from what a channel can hold."""

import math

from adapt.core.errors import UsageError
from adapt.core.table import Cell, Column, Kind, Table


def tolerance_for_utilisation(utilisation: float) -> float:
    """alpha such that no channel is utilised less than this part of the fullest one.

    Raises:
        UsageError: it is not in (0, 1].

    Source: partitioning functions, section 3.1, discussion.
    """
    if not 0 < utilisation <= 1:
        raise UsageError(f"--utilisation {utilisation:g} is not a part in (0, 1]; e.g. 0.9")
    return 1 / utilisation


def tolerance_for_capacity(total: float, capacity: float, channels: int) -> float:
    """alpha at which the fullest channel is just full, if all others have the same; infinite if one can hold it all.

    Args:
        total: x, what all channels need together.
        capacity: y, what one channel has.

    Raises:
        UsageError: the channels together cannot hold it, or a number is not above 0.

    Source: partitioning functions, section 3.1, discussion: (N - 1) y / (x - y).
    """
    if not (0 < total < math.inf and 0 < capacity < math.inf):
        raise UsageError(f"--total {total:g} and --capacity {capacity:g} are to be numbers above 0, in one unit")
    if channels * capacity < total:
        raise UsageError(
            f"{channels} channels of {capacity:g} cannot hold {total:g}: give {math.ceil(total / capacity)} channels or"
            f" more, or {total / channels:.3g} each"
        )
    return (channels - 1) * capacity / (total - capacity) if capacity < total else math.inf


def suggested_tolerances(
    channels: int, *, utilisation: float | None = None, total: float | None = None, capacity: float | None = None
) -> Table:
    """The tolerances that follow from what is known, and for each the utilisation that it keeps.

    Raises:
        UsageError: nothing is known, or as in the functions above.
    """
    rows: list[list[Cell]] = []
    if utilisation is not None:
        alpha = tolerance_for_utilisation(utilisation)
        rows.append([f"no channel is utilised less than {utilisation:.0%} when one is full", alpha, utilisation])
    if (total is None) != (capacity is None):
        raise UsageError("--total and --capacity go together: what all channels need, and what one has")
    if total is not None and capacity is not None:
        alpha = tolerance_for_capacity(total, capacity, channels)
        held = f"the fullest of {channels} channels holds {capacity:g} of {total:g} at most"
        rows.append([held, None if alpha == math.inf else alpha, 0.0 if alpha == math.inf else 1 / alpha])
    if not rows:
        raise UsageError("give --utilisation, or --total and --capacity; e.g. --utilisation 0.9")
    return Table.from_rows("Suggested tolerance", _COLUMNS, rows, note=_NOTE)


_COLUMNS = (
    Column("so_that"),
    Column("tolerance", Kind.RATIO, about="for --tolerance; none where any will do"),
    Column("utilisation", Kind.SHARE, about="of the emptiest channel when the fullest is full"),
)

_NOTE = "Give it to --tolerance, one for all resources or three (state, computation, network)."
