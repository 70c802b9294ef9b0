"""Titled tables of typed columns with units."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from html import escape
from itertools import accumulate
from textwrap import fill
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

_MOST_ROWS, _WIDEST, _LONGEST_CELL = 20, 100, 60
"""What a console shows of a table."""

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


class Tabular:
    """Anything that is a table at heart, as a data frame."""

    __slots__ = ()

    def to_arrow(self) -> "pa.Table":
        """It as an Arrow table."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """It as a pandas data frame."""
        return self.to_arrow().to_pandas()


@dataclass(frozen=True, slots=True, repr=False)
class Table(Tabular):
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
        """The cells of one column, top to bottom."""
        names = [column.name for column in self.columns]
        if name not in names:
            raise KeyError(f"table {self.title!r} has no column {name!r}; available: {', '.join(names)}")
        at = names.index(name)
        return [row[at] for row in self.rows]

    def records(self) -> list[dict[str, Cell]]:
        """One dictionary per row, keyed by column name."""
        names = [column.name for column in self.columns]
        return [dict(zip(names, row, strict=True)) for row in self.rows]

    def only(self, names: str) -> "Table":
        """Some of its columns, as `name` or `name: heading`; empty ones never."""
        at = {column.name: place for place, column in enumerate(self.columns)}
        wanted = [each.strip().partition(": ") for each in names.split(",")]
        kept = [
            (at[name], heading or name)
            for name, _, heading in wanted
            if name in at and any(row[at[name]] is not None for row in self.rows)
        ]
        columns = tuple(replace(self.columns[place], name=heading) for place, heading in kept)
        return replace(self, columns=columns, rows=tuple(tuple(row[place] for place, _ in kept) for row in self.rows))

    def without_zeros(self, names: Container[str]) -> "Table":
        """The table without those of some columns that are all 0."""
        kept = [
            at for at, each in enumerate(self.columns) if each.name not in names or any(row[at] for row in self.rows)
        ]
        rows = tuple(tuple(row[at] for at in kept) for row in self.rows)
        return replace(self, columns=tuple(self.columns[at] for at in kept), rows=rows)

    def to_arrow(self) -> "pa.Table":
        """The cells as columns; times are timestamps, bytes and seconds numbers."""
        import pyarrow as pa

        types = {Kind.NUMBER: pa.float64(), Kind.RATIO: pa.float64(), Kind.SHARE: pa.float64()}
        types |= {Kind.SECONDS: pa.float64(), Kind.TIME: pa.timestamp("us", "UTC")}
        return pa.table({each.name: pa.array(self.values(each.name), types.get(each.kind)) for each in self.columns})

    def __repr__(self) -> str:
        rows = [[_text(cell, column.kind) for cell, column in zip(row, self.columns, strict=True)] for row in self.rows]
        names = [column.name for column in self.columns]
        if len(rows) == 1:
            wide = max(map(len, names))
            pairs = zip(names, rows[0], strict=True)
            lines = [
                fill(f"{name:<{wide}}  {cell}", _WIDEST, subsequent_indent=" " * (wide + 2)) for name, cell in pairs
            ]
        else:
            kept = [names, *([_shortened(cell) for cell in row] for row in rows[:_MOST_ROWS])]
            wides = [max(map(len, column)) for column in zip(*kept, strict=True)]
            shown = sum(width <= _WIDEST for width in accumulate(2 + wide for wide in wides)) or 1
            cells = [zip(row[:shown], wides[:shown], strict=True) for row in kept]
            lines = ["  ".join(f"{cell:>{wide}}" for cell, wide in row) for row in cells]
            hidden = {"rows": len(rows) - _MOST_ROWS, "columns": len(names) - shown}
            told = [f"{count:,} more {what}" for what, count in hidden.items() if count > 0]
            lines += [f"and {' and '.join(told)}"] if told else []
        return "\n".join([self.title, *lines])

    def _repr_html_(self) -> str:
        """The table for a notebook, every cell escaped."""
        head = "".join(f"<th>{escape(column.name)}</th>" for column in self.columns)
        rows = (zip(row, self.columns, strict=True) for row in self.rows)
        cells = ("".join(f"<td>{escape(_text(cell, column.kind))}</td>" for cell, column in row) for row in rows)
        body = "".join(f"<tr>{row}</tr>" for row in cells)
        return f"<table><caption>{escape(self.title)}</caption><tr>{head}</tr>{body}</table>"


class Displayed(Tabular):
    """A result that shows itself in notebooks and consoles."""

    __slots__ = ()

    @property
    def said(self) -> Sequence[str]:
        """Sentences before the tables, the headline first."""
        return ()

    @property
    def pasted(self) -> str:
        """Code to paste; empty without any."""
        return ""

    def displayed(self) -> Sequence[Table]:
        """Its tables, the most important first."""
        return ()

    def to_arrow(self) -> "pa.Table":
        """The first table."""
        return self.displayed()[0].to_arrow()

    def _repr_html_(self) -> str:
        headline = "".join(f"<p><b>{escape(each)}</b></p>" for each in self.said[:1])
        words = "".join(f"<p>{escape(each)}</p>" for each in self.said[1:])
        code = f"<pre>{escape(self.pasted)}</pre>" if self.pasted else ""
        return f"{headline}{words}{''.join(table._repr_html_() for table in self.displayed())}{code}"

    def __repr__(self) -> str:
        tables = self.displayed()
        parts = ["\n".join(fill(each, _WIDEST) for each in self.said), *map(repr, tables[:1])]
        parts += [f"More in displayed(): {', '.join(table.title for table in tables[1:])}"] if tables[1:] else []
        return "\n\n".join(filter(None, [*parts, self.pasted]))


def _text(cell: Cell, kind: Kind) -> str:
    """A cell in a console."""
    if cell is None:
        return ""
    if kind is Kind.TIME and isinstance(cell, int):
        return str(datetime.fromtimestamp(cell / 1e6, UTC).replace(tzinfo=None))
    text = f"{cell:,}" if type(cell) is int else f"{cell:.4g}" if isinstance(cell, float) else str(cell)
    text = text.replace("\u202f", " ")
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST_CELL else f"{text[: _LONGEST_CELL - 3]}..."
