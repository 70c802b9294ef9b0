"""Mini-partitions: the mapping of keys to partitions of a stage."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.hashes import HASHES, HashedKeys
from adapt.core.keys.key_index import KeyIndex
from adapt.core.keys.names import HashName
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.key_groups import channels_of_groups
from adapt.core.stage.conditions.growth import NEITHER

MOST = 2**22
"""Upper limit of the number of partitions."""

OTHER = {HashName.MURMUR3: HashName.XXHASH64, HashName.XXHASH64: HashName.MURMUR3}
"""The other hash, which spreads the keys of one channel over its partitions."""


@dataclass(frozen=True, slots=True)
class MiniPartitions:
    """Mapping of keys to partitions.

    The first k partitions start on worker 0, the next k on worker 1, and so on. Without a partitioner, the hash of a
    key decides the partition. With one, its channel is the initial worker, and a second hash spreads the keys of a
    channel over its partitions; the partitioner's own hash would leave most of them empty. Keys with their own
    partition have the first ones, and other keys are hashed over the rest, or with a partitioner have that of their
    channel.
    """

    workers: int  # number of workers, n
    per_worker: int  # partitions per worker, k
    hash: HashName = HashName.MURMUR3  # hash of keys; that of the partitioner, if given
    partitioner: Partitioner | None = None  # initial worker of each key; None, by hash
    own: ExplicitMap | None = None  # keys with their own partition, mapped to 0 and up
    # partition of each key, such as Flink's key group; if given, it replaces all but `workers`
    units: Partitioner | None = None

    def __post_init__(self) -> None:
        if self.per_worker < 1:
            raise UsageError(f"a worker needs at least 1 partition (got {self.per_worker})")
        if self.count > MOST:
            raise UsageError(
                f"a stage has at most {MOST:,} partitions (got {self.workers:,} workers with {self.per_worker:,} each)"
            )

    @property
    def count(self) -> int:
        """Number of partitions."""
        return self.workers * self.per_worker if self.units is None else self.units.channels

    @property
    def owners(self) -> NDArray[np.int32]:
        """Initial worker of each partition, shape (partitions,)."""
        return channels_of_groups(np.arange(self.count, dtype=np.int32), self.workers, self.count)

    def partitions_of(self, keys: pa.Array) -> NDArray[np.int32]:
        """Partition of each key of a column; null is a key."""
        if isinstance(keys, pa.DictionaryArray):
            words, codes = words_of(keys)
            return np.asarray(self.partitions_of(words)[codes])
        if self.units is not None:
            return self.units.channels_of(keys)
        if self.own is not None:
            rows, first = self.own.rows_of(keys), len(self.own)
            rest = self.count - first
            of_rest = self.partitioner.channels_of if self.partitioner else partial(HASHES[self.hash].modulo, n=rest)
            owned = np.append(self.own.channels, -1)[rows]
            return np.asarray(np.where(rows >= 0, owned, of_rest(keys) + first), np.int32)
        if self.partitioner is None:
            return HASHES[self.hash].modulo(keys, self.count)
        within = HASHES[OTHER[self.hash]].modulo(keys, self.per_worker)
        return np.asarray(self.partitioner.channels_of(keys) * np.int32(self.per_worker) + within, np.int32)


def words_of(column: pa.Array) -> tuple[pa.Array, Any]:
    """Dictionary of a column, and the position of each row in it."""
    if not isinstance(column, pa.DictionaryArray):
        return column, slice(None)
    words, codes = column.dictionary, column.indices
    if codes.null_count:
        words = pa.concat_arrays([words, pa.nulls(1, words.type)])
        codes = codes.fill_null(pa.scalar(len(words) - 1, codes.type))
    return words, codes.to_numpy(zero_copy_only=False)


@dataclass(frozen=True, slots=True)
class KeyGroups:
    """The distinct keys of a trace, each a group."""

    keys: pa.Array  # distinct keys; a key's position is its group. Shape (keys,)
    index: KeyIndex

    @classmethod
    def from_columns(cls, columns: Iterable[pa.Array]) -> "KeyGroups":
        """Groups of the keys of several columns."""
        known = pc.unique(pa.concat_arrays([distinct(column) for column in columns]))
        return cls(known, KeyIndex(known))

    def groups_of(self, keys: pa.Array) -> NDArray[np.int32]:
        """Group of each key of a plain or dictionary-encoded column, shape (rows,)."""
        words, codes = words_of(keys)
        return np.asarray(self.index.rows_of(HashedKeys.from_column(words, HashName.MURMUR3))[codes])

    def partitions_by(self, partitions: MiniPartitions) -> NDArray[np.int32]:
        """The partition of each key, shape (keys,)."""
        return partitions.partitions_of(self.keys)


def distinct(column: pa.Array) -> pa.Array:
    """Distinct values of a column."""
    found = pc.unique(column)
    return found.dictionary_decode() if isinstance(found, pa.DictionaryArray) else found


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

    def rows_by_group(self, keys: pa.Array, sides: pa.Array) -> NDArray[np.int64]:
        """Rows of each side by group, shape (2, groups)."""
        which, groups = self.sides_of(sides, keys), self.groups.groups_of(keys)
        return np.stack([np.bincount(groups[which == side], minlength=len(self.groups.keys)) for side in (0, 1)])


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
