"""Two streams in one trace: the rows of either side of a join, told apart by a column, and their keys by number."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import BadInput
from adapt.core.keys.hashes import HashedKeys
from adapt.core.keys.key_index import KeyIndex
from adapt.core.keys.names import HashName
from adapt.core.stage.conditions.join import NEITHER
from adapt.core.stage.input.mini_partitions import MiniPartitions, words_of

SHOWN = 5
"""Values that a message names."""


@dataclass(frozen=True, slots=True)
class Sides:
    """The two streams of a trace.

    Attributes:
        column: Whose two values tell them apart.
        values: These, in order; rows of the first are side 0. Shape (2,).
        keys: All keys of the trace, distinct; a key is known by where it stands here. Shape (keys,).
        index: Finds them.
    """

    column: str
    values: pa.Array
    keys: pa.Array
    index: KeyIndex

    @classmethod
    def from_batches(cls, column: str, key: str, batches: Iterable[pa.RecordBatch]) -> "Sides":
        """What a trace has.

        Args:
            column: Which says the side.
            key: The column of keys.

        Raises:
            BadInput: a row has no side, or there are not two of them; they are named.
        """
        found, keys, rows = None, [], 0
        for batch in batches:
            sides = batch.column(column)
            if sides.null_count:
                raise BadInput(
                    f"{sides.null_count:,} rows after row {rows:,} have no {column!r}, which is to say their side of"
                    " the join; leave them out of the trace, or give them one"
                )
            values = _distinct(sides)
            found = values if found is None else pc.unique(pa.concat_arrays([found, values]))
            keys.append(_distinct(batch.column(key)))
            rows += batch.num_rows
            if len(found) > SHOWN:
                break
        if found is None or len(found) != 2:
            raise BadInput(_not_two(column, [] if found is None else sorted(found.to_pylist())))
        known = pc.unique(pa.concat_arrays(keys))
        return cls(column, found.take(pc.array_sort_indices(found)), known, KeyIndex(known))

    def groups_of(self, keys: pa.Array) -> NDArray[np.int32]:
        """The number of each key of a column, which may be encoded by a dictionary, shape (rows,)."""
        words, codes = words_of(keys)
        return np.asarray(self.index.rows_of(HashedKeys.from_column(words, HashName.MURMUR3))[codes])

    def sides_of(self, sides: pa.Array, keys: pa.Array) -> NDArray[np.int8]:
        """0 or 1 by a column, or neither where there is no key, since what is missing equals nothing; shape (rows,)."""
        words, codes = words_of(sides)
        found = pc.index_in(words, value_set=self.values).fill_null(NEITHER).to_numpy(zero_copy_only=False)
        which = found.astype(np.int8)[codes]
        if keys.null_count:
            which = np.where(keys.is_null().to_numpy(zero_copy_only=False), np.int8(NEITHER), which)
        return np.asarray(which)

    def partitions_by(self, partitions: MiniPartitions) -> NDArray[np.int32]:
        """The partition of each key, shape (keys,)."""
        return partitions.partitions_of(self.keys)


def _distinct(column: pa.Array) -> pa.Array:
    """The values of a column, each once."""
    distinct = pc.unique(column)
    return distinct.dictionary_decode() if isinstance(distinct, pa.DictionaryArray) else distinct


def _not_two(column: str, values: list[Any]) -> str:
    """What is wrong with the sides that there are."""
    named = ", ".join(repr(value) for value in values[:SHOWN])
    if len(values) <= 1:
        return (
            f"column {column!r} is {named or 'empty'} in all rows; a join has two sides, so give it a column with two"
        )
    more = " and more" if len(values) > SHOWN else ""
    return (
        f"column {column!r} has the values {named}{more}; a join has two sides, so ingest the trace with a column that"
        " says which of two a row is, such as --stream \"if(EXPRESSION, 'left', 'right')\""
    )
