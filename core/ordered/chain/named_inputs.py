"""Inputs of a chain in one trace, named by a column."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from adapt.core.errors import BadInput
from adapt.core.ordered.chain.chain import Chain
from adapt.core.ordered.chain.roles import TIME

_SHOWN = 3
"""Values that a sentence names."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Rows whose value in the input column is not an input."""

    column: str  # the input column
    total: int  # rows that were read
    values: Mapping[str | None, int] = field(default_factory=dict)  # skipped rows by value, most first; None for null

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(self.values.values())

    def sentence(self) -> str:
        """Which rows were skipped, and why; empty without any."""
        if not self.values:
            return ""
        return (
            f"Skipped {self.rows:,} of {self.total:,} rows, whose {self.column!r} is not an input of the chain: "
            f"{_shown(self.values)}."
        )


def named_inputs(values: pa.ChunkedArray, column: str) -> pa.ChunkedArray:
    """The input that each row names, as texts."""
    kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
    if not (pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_integer(kind)):
        raise BadInput(f"input_column: column {column!r} must hold texts or integers (its type is {kind})")
    return values.cast(kind).cast(pa.string())


def split_inputs(
    chain: Chain, column: str, columns: Mapping[str, pa.ChunkedArray]
) -> tuple[list[dict[str, pa.ChunkedArray]], Skipped]:
    """Columns of each input of a chain, and the rows of none.

    A column that is null in all rows of an input is one that this input does not have; `ts` and keys are kept.

    Args:
        column: Names the input of each row.
        columns: Columns of the trace, the input column among them.
    """
    names, rows, inputs = named_inputs(columns[column], column), pa.table(dict(columns)), chain.graph.inputs
    counted = sorted(
        ((each["values"].as_py(), each["counts"].as_py()) for each in names.value_counts()),
        key=lambda value: (-value[1], value[0] or ""),
    )
    kept, split = {TIME, *(each.key for each in chain.operators)}, []
    for name in inputs:
        part = rows.filter(pc.equal(names, name))
        if not part.num_rows:
            raise BadInput(f"no row of input {name!r}; column {column!r} has {_shown(dict(counted))}")
        there = zip(part.column_names, part.columns, strict=True)
        split.append({each: found for each, found in there if each in kept or found.null_count < part.num_rows})
    return split, Skipped(column, rows.num_rows, {name: count for name, count in counted if name not in inputs})


def _shown(values: Mapping[str | None, int]) -> str:
    """The most frequent values with their rows."""
    shown = [
        f"{'null' if name is None else repr(name)} ({count:,} {'row' if count == 1 else 'rows'})"
        for name, count in list(values.items())[:_SHOWN]
    ]
    others = len(values) - len(shown)
    return ", ".join(shown) + (f" and {others:,} other values" if others else "")
