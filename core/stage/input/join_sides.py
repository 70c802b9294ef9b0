"""The two sides of a join in one trace."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import BadInput
from adapt.core.stage.conditions.growth import NEITHER
from adapt.core.stage.input.key_groups import KeyGroups, distinct
from adapt.core.stage.input.mini_partitions import words_of

SHOWN = 5
"""Values listed in an error."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The two sides of a join."""

    column: str
    values: pa.Array  # its two values, sorted; the first is side 0. Shape (2,)
    groups: KeyGroups  # the keys of the trace

    @classmethod
    def from_batches(cls, column: str, key: str, batches: Iterable[pa.RecordBatch]) -> "Sides":
        """Read sides and keys of a trace.

        Args:
            column: The column with the side.
            key: The column of keys.
        """
        found, keys, rows = None, [], 0
        for batch in batches:
            sides = batch.column(column)
            if sides.null_count:
                raise BadInput(
                    f"{sides.null_count:,} rows after row {rows:,} have no {column!r}, so no side of the join; remove"
                    " them from the trace, or fill the column"
                )
            values = distinct(sides)
            found = values if found is None else pc.unique(pa.concat_arrays([found, values]))
            keys.append(distinct(batch.column(key)))
            rows += batch.num_rows
            if len(found) > SHOWN:
                break
        if found is None or len(found) != 2:
            raise BadInput(_not_two(column, [] if found is None else sorted(found.to_pylist())))
        return cls(column, found.take(pc.array_sort_indices(found)), KeyGroups.from_columns(keys))

    def sides_of(self, sides: pa.Array, keys: pa.Array) -> NDArray[np.int8]:
        """Side of each row, or neither without a key; shape (rows,)."""
        words, codes = words_of(sides)
        found = pc.index_in(words, value_set=self.values).fill_null(NEITHER).to_numpy(zero_copy_only=False)
        which = found.astype(np.int8)[codes]
        if keys.null_count:
            which = np.where(keys.is_null().to_numpy(zero_copy_only=False), np.int8(NEITHER), which)
        return np.asarray(which)


def _not_two(column: str, values: list[Any]) -> str:
    """Error message for a column without exactly two values."""
    named = ", ".join(repr(value) for value in values[:SHOWN])
    if len(values) <= 1:
        return f"a join needs a column with two values; {column!r} is {named or 'empty'} in all rows"
    more = " and more" if len(values) > SHOWN else ""
    return (
        f"a join needs a column with two values; {column!r} has {named}{more}. Ingest the trace with a column of two"
        " values, such as --stream \"if(EXPRESSION, 'left', 'right')\""
    )
