"""Short labels for charts, and line breaks in column names."""

import re
from collections.abc import Sequence

from adapt.core.table import Cell, Column, Kind, Table
from adapt.core.values import EMPTY, visible

_LONGEST = 32
_UNITS_IN_VALUES = (Kind.SHARE, Kind.BYTES, Kind.SECONDS, Kind.TIME)


def label(cell: Cell) -> str:
    """A cell as a label: escapes visible, long texts cut."""
    text = "(null)" if cell is None else EMPTY if cell == "" else visible(str(cell)[: 2 * _LONGEST])
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def as_today(today: Cell) -> str:
    """The label of today's placement, with what places the keys."""
    return f"today ({today})"


def today_in(compared: Table) -> Cell:
    """What places keys today, of the schemes compared.

    None unless the first scheme has moved from itself.
    """
    first = next(iter(compared.records()), {})
    return first["scheme"] if first.get("keys_moved") is not None else None


def distinct(labels: Sequence[str]) -> list[str]:
    """The labels, made distinct by numbers."""
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


def breakable(name: str) -> list[str]:
    """The pieces of a column's name between line breaks.

    A single letter, as in `r_best` and `build_s`, stays with its neighbor.
    """
    pieces = [""]
    for piece in re.findall(r"[^_ ]*[_ ]+|[^_ ]+", name):
        if min(len(pieces[-1].strip("_ ")), len(piece.strip("_ "))) < 2:
            pieces[-1] += piece
        else:
            pieces.append(piece)
    return pieces


def headed(column: Column) -> str:
    """The column's name with its unit, unless redundant."""
    has_unit = column.unit and column.unit != column.name and column.kind not in _UNITS_IN_VALUES
    return visible(f"{column.name} ({column.unit})" if has_unit else column.name)
