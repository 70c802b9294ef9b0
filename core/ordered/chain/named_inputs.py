"""Inputs of a chain, named by a column and merged by time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import BadInput
from adapt.core.ordered.chain.chain import TIME, Chain

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


Column: TypeAlias = pa.Array | pa.ChunkedArray


class Merged(Mapping[str, Column]):
    """Columns of all inputs by name.

    A column has the rows of the inputs that have it, one input after the other; `spread` brings its words into the
    order of time, in which rows of one time are ordered by input.

    Attributes:
        inputs: Columns of each input.
        rows: Number of rows.
        places: Places of each input's rows in the order of time.
    """

    def __init__(self, names: Sequence[str], inputs: Sequence[Mapping[str, Column]], by: str) -> None:
        """Merge inputs by a column of ascending times; a single input stays as it is."""
        self._names, self.inputs = names, inputs
        lengths = [max((len(column) for column in columns.values()), default=0) for columns in inputs]
        self.rows = sum(lengths)
        self.places: list[NDArray[np.int64]] = [np.arange(self.rows)]
        if len(inputs) > 1:
            times = np.concatenate([_micros(columns[by]) for columns in inputs])
            place = np.empty(self.rows, np.int64)
            place[np.argsort(times, kind="stable")] = np.arange(self.rows)
            self.places = np.split(place, np.cumsum(lengths)[:-1])

    def __getitem__(self, name: str) -> Column:
        """A column."""
        found = [(at, columns[name]) for at, columns in enumerate(self.inputs) if name in columns]
        if not found:
            raise KeyError(name)
        if len(found) == 1:
            return found[0][1]
        plain = [(at, _plain(column)) for at, column in found]
        for at, column in plain[1:]:
            if column.type != plain[0][1].type:
                raise BadInput(
                    f"column {name!r} is {plain[0][1].type} in input {self._names[plain[0][0]]!r} and {column.type} in "
                    f"input {self._names[at]!r}; ingest both with one type"
                )
        return pa.chunked_array([chunk for _, column in plain for chunk in column.chunks], plain[0][1].type)

    def __iter__(self) -> Iterator[str]:
        """Names of all columns."""
        return iter(dict.fromkeys(name for columns in self.inputs for name in columns))

    def __len__(self) -> int:
        """Number of columns."""
        return len(list(iter(self)))

    def spread(self, name: str, words: NDArray[np.int64], default: int = 0) -> NDArray[np.int64]:
        """Words of a column in the order of time.

        A default for inputs that do not have it.
        """
        if len(self.inputs) == 1:
            return words
        spread = np.full(self.rows, default, np.int64)
        places = [place for place, columns in zip(self.places, self.inputs, strict=True) if name in columns]
        spread[np.concatenate(places)] = words
        return spread


def _plain(column: Column) -> pa.ChunkedArray:
    """A column without dictionary, integers with 64 bits, times in microseconds."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_integer(column.type):
        column = column.cast(pa.int64())
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", column.type.tz))
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def _micros(column: Column) -> NDArray[np.int64]:
    return np.asarray(_plain(column).cast(pa.int64()).to_numpy(), np.int64)
