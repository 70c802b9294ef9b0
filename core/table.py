"""Titled tables of typed columns with units."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from html import escape
from typing import Any, TypeAlias

Cell: TypeAlias = str | int | float | bool | None


class Kind(StrEnum):
    """The kind of a column's cells, which decides their format."""

    TEXT = "text"
    COUNT = "count"
    """A whole number of things."""
    NUMBER = "number"
    """A real number, shown with significant digits."""
    RATIO = "ratio"
    """A dimensionless ratio around 1, shown with three decimals."""
    SHARE = "share"
    """A share in [0, 1], shown as a percentage."""
    BYTES = "bytes"
    SECONDS = "seconds"
    TIME = "time"
    """Microseconds since 1970-01-01 UTC."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column: name, kind of cells, unit, and explanation.

    With `bar`, terminals draw a bar next to each number, scaled to the largest number of all such columns.
    """

    name: str
    kind: Kind = Kind.TEXT
    unit: str = ""
    about: str = ""
    bar: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under named columns. A null cell means "not defined", never "zero"."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if len(set(names)) != len(names):
            raise ValueError(f"table {self.title!r} has columns of the same name: {names}")
        if any(len(row) != len(names) for row in self.rows):
            raise ValueError(f"table {self.title!r} has rows that do not fit its {len(names)} columns")

    @classmethod
    def from_rows(cls, title: str, columns: Sequence[Column], rows: Iterable[Sequence[Any]], note: str = "") -> "Table":
        """A table of any iterable of rows."""
        return cls(title, tuple(columns), tuple(tuple(row) for row in rows), note)

    def values(self, name: str) -> list[Cell]:
        """The cells of one column, top to bottom.

        Raises:
            KeyError: there is no column of that name.
        """
        names = [column.name for column in self.columns]
        if name not in names:
            raise KeyError(f"table {self.title!r} has no column {name!r}; available: {', '.join(names)}")
        at = names.index(name)
        return [row[at] for row in self.rows]

    def records(self) -> list[dict[str, Cell]]:
        """One dictionary per row, keyed by column name."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def _repr_html_(self) -> str:
        """The table for a notebook, every cell escaped."""
        head = "".join(f"<th>{escape(column.name)}</th>" for column in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{'' if cell is None else escape(str(cell))}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        return f"<table><caption>{escape(self.title)}</caption><tr>{head}</tr>{body}</table>"


def told_html(heading: str, sentences: Sequence[str], tables: Iterable[Table] = ()) -> str:
    """HTML of a heading, sentences and tables, for notebooks."""
    words = "".join(f"<p>{escape(each)}</p>" for each in sentences)
    return f"<p><b>{escape(heading)}</b></p>{words}{''.join(table._repr_html_() for table in tables)}"
