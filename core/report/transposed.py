"""One row of many columns, turned upright for people: a line a value, with what it means beside it."""

from adapt.core.labels import headed
from adapt.core.table import Column, Table
from adapt.core.values import human

MOST_ACROSS = 4
"""A single row of no more columns than this is left lying."""


def upright(table: Table) -> Table:
    """The table as people read it best: a single wide row becomes a column of named values; others stay as they are."""
    if len(table.rows) != 1 or len(table.columns) <= MOST_ACROSS:
        return table
    (row,) = table.rows
    pairs = zip(table.columns, row, strict=True)
    lines = [(headed(column), human(cell, column), column.about) for column, cell in pairs]
    columns = [Column("what"), Column("value")]
    if any(column.about for column in table.columns):
        columns.append(Column("meaning"))
    return Table.from_rows(table.title, columns, [line[: len(columns)] for line in lines], table.note)
