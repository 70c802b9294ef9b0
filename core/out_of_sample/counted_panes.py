"""Counted keys of consecutive windows of a stream."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Frequencies
from adapt.core.partitioning.plans.plan import Plan

MOST_PANES = 12
"""Most windows of a stream."""

ROWS_A_PANE = 500
"""Fewest rows of a window, so that noise does not look like change."""


@dataclass(frozen=True, slots=True)
class CountedPane:
    """A window and its counted keys."""

    start_us: int  # time of its first row, in microseconds since 1970
    frequencies: Frequencies


RoutedLoads: TypeAlias = Callable[[Plan], Floats | None]
"""Load of each channel in each window of a stream, for a placement; shape (channels, windows)."""


@dataclass(frozen=True, slots=True)
class CountedPanes:
    """The windows of a stream."""

    panes: tuple[CountedPane, ...] = ()  # in order; empty for counts without times
    # routes every row of the windows, as needed where they do not list every key; None if rows are gone
    routed: RoutedLoads | None = None


def rows_a_pane(rows: int) -> int | None:
    """Rows of each window; None if the stream is too short."""
    panes = min(MOST_PANES, rows // ROWS_A_PANE)
    return -(-rows // panes) if panes > 1 else None
