"""Names short enough for a chart."""

from collections.abc import Sequence

from adapt.core.report.values import human, visible
from adapt.core.table import Cell, Column, Kind

_LONGEST = 32


def label(cell: Cell) -> str:
    """A key or a scheme as an axis or a legend shows it: escapes visible, long ones cut."""
    text = "(null)" if cell is None else "(empty)" if cell == "" else visible(str(cell)[: 2 * _LONGEST])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def distinct(labels: Sequence[str]) -> list[str]:
    """The labels, later ones of the same text numbered, so that two bars never fall in one place."""
    taken: set[str] = set()
    result = []
    for text in labels:
        unlike, number = text, 1
        while unlike in taken:
            number += 1
            unlike = f"{text} [{number}]"
        taken.add(unlike)
        result.append(unlike)
    return result


def count(things: int) -> str:
    """A number of things, grouped."""
    return human(things, Column("count", Kind.COUNT))
