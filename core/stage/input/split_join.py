"""Keys of a windowed join in parts, the other side broadcast."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import BadInput
from adapt.core.stage.conditions.arrivals import Chunk, Rows


@dataclass(frozen=True, slots=True, eq=False)
class SplitJoin:
    """Groups of a join in parts; every pair meets in exactly one.

    Rows of the split side go to the parts in turn; each row of the other side goes to all of them. Further parts are
    groups after the others.
    """

    parts: NDArray[np.int64]  # parts of each group, at least 1; shape (groups,)
    side: NDArray[np.int8]  # side that is split, of groups in several parts; shape (groups,)

    def __post_init__(self) -> None:
        if len(self.parts) != len(self.side) or (len(self.parts) and self.parts.min() < 1):
            raise BadInput("each group of a split join needs at least 1 part, and a side")

    @classmethod
    def of_hot(cls, rows: NDArray[np.int64], workers: int) -> "SplitJoin":
        """Hot keys in parts.

        A key is hot if it has more than a worker's mean of all rows or of all pairs; it gets as many parts as that
        takes.

        Args:
            rows: Rows of each side by group, shape (2, groups).
        """
        loads = [np.asarray(load, np.float64) for load in (rows.sum(axis=0), rows[0].astype(np.float64) * rows[1])]
        share = np.max([load / max(load.sum(), 1.0) for load in loads], axis=0)
        parts = np.clip(np.ceil(share * workers), 1, workers).astype(np.int64)
        return cls(parts, rows.argmax(axis=0).astype(np.int8))

    def partition_of(self, partition_of: NDArray[np.int32], workers: int) -> NDArray[np.int32]:
        """Partition of each part.

        The parts of a group begin on different workers.
        """
        apart, partitions = _within(self.parts - 1) + 1, int(partition_of.max()) + 1
        stride = max(1, partitions // workers)
        further = (np.repeat(partition_of, self.parts - 1) + apart * stride) % partitions
        return np.concatenate([partition_of, further]).astype(np.int32)

    def rows(self, rows: Rows) -> Rows:
        """The rows of a stream by part."""
        return Rows(lambda: self._chunks(rows.chunks()))

    def _chunks(self, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        turns = np.zeros(len(self.parts), np.int64)
        further = len(self.parts) + np.cumsum(self.parts - 1) - (self.parts - 1) - 1
        for chunk in chunks:
            if chunk.sides is None:
                raise BadInput("a split join needs a side for every row")
            groups = np.asarray(chunk.groups, np.int64)
            copies = np.where(chunk.sides == 1 - self.side[groups], self.parts[groups], 1)
            order = np.argsort(groups, kind="stable")
            dealt = copies[order] * (self.parts[groups[order]] > 1) * (chunk.sides[order] == self.side[groups[order]])
            before = np.cumsum(dealt) - dealt
            firsts = np.searchsorted(groups[order], groups[order])
            part = np.zeros(len(groups), np.int64)
            part[order] = (turns[groups[order]] + before - before[firsts]) * dealt
            np.add.at(turns, groups[order], dealt)
            taken = chunk.taken(np.repeat(np.arange(len(groups)), copies))
            part = (np.repeat(part, copies) + _within(copies)) % self.parts[taken.groups]
            yield replace(taken, groups=np.where(part == 0, taken.groups, further[taken.groups] + part))


def _within(copies: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of each copy among those of its row."""
    return np.arange(int(copies.sum())) - np.repeat(np.cumsum(copies) - copies, copies)
