"""Transpose a single wide row into a column of named values."""

from adapt.core.labels import headed
from adapt.core.table import Column, Table
from adapt.core.values import human

MOST_ACROSS = 4
"""A single row with at most this many columns is not transposed."""


def upright(table: Table) -> Table:
    """The table, transposed if it is a single wide row."""
    if len(table.rows) != 1 or len(table.columns) <= MOST_ACROSS:
        return table
    (row,) = table.rows
    pairs = zip(table.columns, row, strict=True)
    lines = [(headed(column), human(cell, column), column.about) for column, cell in pairs]
    columns = [Column("name"), Column("value")]
    if any(column.about for column in table.columns):
        columns.append(Column("meaning"))
    return Table.from_rows(table.title, columns, [line[: len(columns)] for line in lines], table.note)
