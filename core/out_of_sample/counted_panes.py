"""Counted keys of consecutive windows of a stream."""

from dataclasses import dataclass

from adapt.core.counting.frequencies import Frequencies

MOST_PANES = 12
"""Most windows of a stream."""

ROWS_A_PANE = 500
"""Fewest rows of a window, so that noise does not look like change."""


@dataclass(frozen=True, slots=True)
class CountedPane:
    """A window and its counted keys.

    Attributes:
        start_us: Time of its first row, in microseconds since 1970.
    """

    start_us: int
    frequencies: Frequencies


def rows_a_pane(rows: int) -> int | None:
    """Rows of each window; None if the stream is too short."""
    panes = min(MOST_PANES, rows // ROWS_A_PANE)
    return -(-rows // panes) if panes > 1 else None
