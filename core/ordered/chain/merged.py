"""Rows of several inputs, merged by time."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.errors import BadInput

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
