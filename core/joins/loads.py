"""Rows and pairs of a join by key and by task."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.counting.exact import KeyCounts
from adapt.core.errors import BadInput
from adapt.core.phrases import counted
from adapt.core.stream import KeyType, several
from adapt.core.values import visible

_WIDTHS = (KeyType.INT8, KeyType.INT16, KeyType.INT32, KeyType.INT64)


@dataclass(frozen=True, slots=True)
class Side:
    """One input of a join, counted by key."""

    name: str  # of the source
    key: tuple[str, ...]  # columns of the key
    key_type: KeyType
    counted: KeyCounts  # rows by key, none of which is null
    nulls: int = 0  # rows without a key
    bytes: int | None = None  # of all rows, if known
    stored: int | None = None  # bytes of its files, if known
    files: int = 1
    columns: tuple[str, ...] = ()  # of the source, if known
    notes: tuple[str, ...] = ()  # how it was read, in words

    @property
    def rows(self) -> int:
        """All rows."""
        return self.counted.rows + self.nulls

    @property
    def bytes_a_row(self) -> float | None:
        """Mean size of a row, if known."""
        return None if self.bytes is None else self.bytes / max(1, self.rows)

    @property
    def is_unique(self) -> bool:
        """Whether no key occurs twice."""
        return len(self.counted.counts) == self.counted.rows

    def as_data(self) -> dict[str, Any]:
        """JSON data."""
        told = {"name": self.name, "key": list(self.key), "key_type": self.key_type.value, "rows": self.rows}
        keys = {"null_keys": self.nulls, "keys": len(self.counted.counts), "unique": self.is_unique}
        return {**told, **keys, "bytes": self.bytes}


@dataclass(frozen=True)
class Join:
    """Keys of an inner join with the rows of both inputs."""

    left: Side
    right: Side
    keys: pa.Array  # distinct keys of both inputs; shape (keys,)
    loads: NDArray[np.int64]  # rows of the left and of the right input, and pairs, by key; shape (3, keys)

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both inputs."""
        return self.left, self.right

    @property
    def pairs(self) -> Any:
        """Rows that the join writes, by key; shape (keys,)."""
        return self.loads[2]


@dataclass(frozen=True, slots=True)
class Tasks:
    """What the tasks of a stage read and write."""

    loads: NDArray[np.float64]  # left rows, right rows, pairs of each task; shape (3, tasks)

    @classmethod
    def of(cls, loads: NDArray[Any], hashes: NDArray[np.int32], tasks: int) -> "Tasks":
        """The tasks of a shuffle, by load and hash of each key."""
        channels = np.mod(hashes, np.int32(tasks))
        return cls(np.stack([np.bincount(channels, each, tasks) for each in loads]))

    @property
    def rows(self) -> Any:
        """Rows that each task reads; shape (tasks,)."""
        return self.loads[0] + self.loads[1]

    @property
    def pairs(self) -> Any:
        """Rows that each task writes; shape (tasks,)."""
        return self.loads[2]

    @property
    def work(self) -> Any:
        """Rows read and pairs written by each task; shape (tasks,)."""
        return self.loads.sum(axis=0)


def join_of(left: Side, right: Side) -> Join:
    """The join of two counted inputs; refuses 2^63 pairs or more."""
    left, right = _alike(left, right)
    mine, others = left.counted, right.counted
    at = pc.index_in(mine.keys, value_set=others.keys).fill_null(-1).to_numpy()
    met = at >= 0
    if not met.any():
        raise BadInput(f"no key of {left.name} is in {right.name}: the join is empty; check --key and --right-key")
    places = at[met]
    right_rows = np.zeros(len(at), np.int64)
    right_rows[met] = others.counts[places]
    alone = np.ones(len(others.counts), np.bool_)
    alone[places] = False
    _refuse_many(left, right, mine.counts[met], others.counts[places], mine.keys.filter(pa.array(met)))
    lone = others.keys.filter(pa.array(alone))
    left_rows = np.concatenate([mine.counts, np.zeros(len(lone), np.int64)])
    right_rows = np.concatenate([right_rows, others.counts[alone]])
    loads = np.stack([left_rows, right_rows, left_rows * right_rows])
    return Join(left, right, pa.concat_arrays([mine.keys, lone]), loads)


def _refuse_many(left: Side, right: Side, mine: NDArray[np.int64], others: NDArray[np.int64], keys: pa.Array) -> None:
    rough = mine.astype(np.float64) * others
    if rough.sum() < 2**62:
        return
    pairs = sum(int(a) * int(b) for a, b in zip(mine.tolist(), others.tolist(), strict=True))
    if pairs >= 2**63:
        hot = int(rough.argmax())
        most, key = int(mine[hot]) * int(others[hot]), visible(str(keys[hot].as_py()))
        raise BadInput(
            f"{left.name} and {right.name} make {pairs:,} pairs, 2^63 or more, of which key {key} {most:,}; aggregate"
            " one input by key first"
        )


def _alike(left: Side, right: Side) -> tuple[Side, Side]:
    kinds = [each.key_type.columns or (each.key_type,) for each in (left, right)]
    if len(kinds[0]) != len(kinds[1]):
        raise BadInput(
            f"the key has {counted(len(kinds[0]), 'column')} in {left.name} and {len(kinds[1])} in {right.name}; name"
            " as many by --right-key"
        )
    found = [
        max(pair, key=_WIDTHS.index) if {*pair} <= {*_WIDTHS} else pair[0] if pair[0] is pair[1] else None
        for pair in zip(*kinds, strict=True)
    ]
    both = [each for each in found if each is not None]
    if len(both) < len(found):
        at = found.index(None)
        raise BadInput(
            f"key {left.key[at]} is {kinds[0][at]} in {left.name}, but {right.key[at]} is {kinds[1][at]} in"
            f" {right.name}, which Spark would cast; cast one of them, and give that"
        )
    kind = type_of_columns(both)
    return replace(left, key_type=kind), replace(right, key_type=kind)


def type_of_columns(kinds: Sequence[KeyType]) -> KeyType:
    """The type of a key of these columns."""
    return kinds[0] if len(kinds) == 1 else KeyType(several(kinds))
