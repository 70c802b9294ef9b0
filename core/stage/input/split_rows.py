"""Routing and merging of the rows of split keys.

A row goes to the least loaded of its key's workers. At the end of every period, each worker with a partial result of a
key sends it as one tuple to the first of the key's workers: one merge tuple per key, extra worker and period. The last,
unfinished period is not merged.

Source: Nasir et al., The Power of Both Choices (ICDE 2015); When Two Choices Are Not Enough (ICDE 2016).
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.errors import UsageError
from adapt.core.keys.hashes import HASHES
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.partitioning.splitting.split import CHOICES, Choices, choices_of, hashed_choice
from adapt.core.stage.conditions.arrivals import Chunk
from adapt.core.stage.input.mini_partitions import OTHER, MiniPartitions, words_of


@dataclass(frozen=True, slots=True, eq=False)
class _Names:
    """The distinct keys of a chunk."""

    rank: NDArray[np.int64]  # rank of each key by the first word of its hash, shape (keys,)
    key: NDArray[np.uint64]  # that word by rank, ascending
    home: NDArray[np.int32]  # first worker of each key, by rank
    within: NDArray[np.int32]  # partition of each key within a worker, by rank

    @classmethod
    def of(cls, names: pa.Array, partitions: MiniPartitions) -> "_Names":
        """The keys of a dictionary; null is a key."""
        key, first, rank = np.unique(
            HASHES[partitions.hash].positions(names)[0], return_index=True, return_inverse=True
        )
        home = hashed_choice(names, 0, partitions.workers, partitions.hash)
        within = HASHES[OTHER[partitions.hash]].modulo(names, partitions.per_worker)
        return cls(rank, key, home[first], within[first])


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """Partial results of keys on workers, each once.

    They are sorted by the key's hash, and then from its first worker on.
    """

    key: NDArray[np.uint64]
    after_home: NDArray[np.int64]
    worker: NDArray[np.int32]
    group: NDArray[np.int32]

    @classmethod
    def of(cls, codes: NDArray[np.int64], names: _Names, partitions: MiniPartitions) -> "_Parts":
        """The parts with these codes.

        A code is the rank of the key times the workers, plus the distance from its first worker.
        """
        codes = np.sort(codes)
        rank, after_home = np.divmod(codes[np.diff(codes, prepend=-1) > 0], partitions.workers)
        worker = ((names.home[rank] + after_home) % partitions.workers).astype(np.int32)
        group = worker * np.int32(partitions.per_worker) + names.within[rank]
        return cls(names.key[rank], after_home, worker, group)

    @classmethod
    def together(cls, parts: "list[_Parts]") -> "_Parts":
        """The parts of several chunks."""
        if len(parts) == 1:
            return parts[0]
        columns = [
            np.concatenate([getattr(each, name) for each in parts]) for name in ("key", "after_home", "worker", "group")
        ]
        order = np.lexsort((columns[1], columns[0]))
        key, after_home, worker, group = (column[order] for column in columns)
        first = np.append(True, (key[1:] != key[:-1]) | (after_home[1:] != after_home[:-1]))[: len(key)]
        return cls(key[first], after_home[first], worker[first], group[first])


@dataclass(frozen=True, slots=True)
class SplitKeys:
    """How keys are split over workers."""

    splitting: Splitting  # how many workers a key may use
    heavy: pa.Array  # hot keys that may use more than two workers, for d-choices and w-choices
    merge_s: float  # interval between merges of partial results
    choices: int = CHOICES  # d of d-choices

    def __post_init__(self) -> None:
        if not 0 < self.merge_s < np.inf:
            raise UsageError(f"the interval between merges must be above 0 (got {self.merge_s:g} s)")
        if self.choices < 2:
            raise UsageError(f"splitting keys needs at least 2 choices (got {self.choices})")


class Dealer:
    """Routes rows of split keys in one pass over a stream."""

    def __init__(self, split: SplitKeys, partitions: MiniPartitions) -> None:
        """Start with empty counts.

        Args:
            split: How keys are split.
            partitions: Partitions per worker, among which a key is hashed.
        """
        self._split = split
        self._partitions = partitions
        self._sent = np.zeros((partitions.workers, partitions.workers))
        self._period = 0
        self._parts: list[_Parts] = []
        self._rows, self._cost_s = 0, 0.0

    def dealt(self, keys: pa.Array, rows: Chunk) -> Chunk:
        """Route the rows of a chunk, and insert merge tuples.

        Args:
            keys: Key of each row, plain or dictionary-encoded; null is a key.
            rows: The rows with producers and arrival times; their groups are ignored.
        """
        assert rows.due_s is not None, "merging needs arrival times"
        encoded = keys if pa.types.is_dictionary(keys.type) else pc.dictionary_encode(keys, "encode")
        names, codes = words_of(encoded)
        codes = codes.astype(np.int64)
        places, known, workers = self._places(names), _Names.of(names, self._partitions), self._partitions.workers
        costs = np.ones(len(codes)) if rows.cost_s is None else np.asarray(rows.cost_s, np.float64)
        to = np.empty(len(codes), np.int32)
        _deal(codes, costs, np.asarray(rows.producers, np.int64), places.channels, places.offsets, self._sent, to)
        rank = known.rank[codes]
        groups = to * np.int32(self._partitions.per_worker) + known.within[rank]
        self._rows, self._cost_s = self._rows + len(codes), self._cost_s + float(costs.sum())
        parts = rank * workers + (to - known.home[rank]) % workers
        return self._with_merges(Chunk(groups, rows.producers, rows.due_s, rows.cost_s), parts, known)

    def _places(self, names: pa.Array) -> Choices:
        """The workers that each key may use."""
        split, workers = self._split, self._partitions.workers
        known = pc.is_in(names, value_set=split.heavy.cast(names.type)) if len(split.heavy) else None
        heavy = np.zeros(len(names), np.bool_) if known is None else known.to_numpy(zero_copy_only=False)
        most = {Splitting.ONE_CHOICE: 1, Splitting.PKG: 2, Splitting.D_CHOICES: min(split.choices, workers)}.get(
            split.splitting, workers
        )
        of_each = np.where(heavy, most, min(most, 2))
        return choices_of(names, of_each, heavy & (most == workers), workers, self._partitions.hash)

    def _with_merges(self, rows: Chunk, parts: NDArray[np.int64], names: _Names) -> Chunk:
        """Rows of each period, followed by its merge tuples; `parts` as in `_Parts.of`."""
        assert rows.due_s is not None
        periods = np.floor(rows.due_s / self._split.merge_s).astype(np.int64)
        starts = np.flatnonzero(np.diff(periods, prepend=self._period))
        pieces: list[Chunk] = []
        first = 0
        for start in starts.tolist():
            self._parts.append(_Parts.of(parts[first:start], names, self._partitions))
            pieces += [rows.part(first, start), self._merges(rows.cost_s is not None)]
            first, self._period = start, int(periods[start])
        self._parts.append(_Parts.of(parts[first:], names, self._partitions))
        return _joined([*pieces, rows.part(first, len(parts))]) if pieces else rows

    def _merges(self, costed: bool) -> Chunk:
        """Merge tuples of the finished period, at the mean cost of a row."""
        parts = _Parts.together([each for each in self._parts if len(each.key)] or self._parts[:1])
        self._parts = []
        sent = np.append(False, parts.key[1:] == parts.key[:-1])[: len(parts.key)]
        firsts = np.flatnonzero(~sent)
        to = np.repeat(parts.group[firsts], np.diff(firsts, append=len(sent)))
        due_s = np.full(int(sent.sum()), (self._period + 1) * self._split.merge_s)
        cost_s = np.full(len(due_s), self._cost_s / self._rows) if costed else None
        return Chunk(to[sent], parts.worker[sent], due_s, cost_s)


def _joined(pieces: list[Chunk]) -> Chunk:
    groups, producers = [one.groups for one in pieces], [one.producers for one in pieces]
    due_s = [one.due_s for one in pieces if one.due_s is not None]
    costs = [one.cost_s for one in pieces if one.cost_s is not None]
    cost_s = np.concatenate(costs) if costs else None
    return Chunk(np.concatenate(groups), np.concatenate(producers), np.concatenate(due_s), cost_s)


@compiled
def _deal(
    keys: NDArray[np.int64],
    costs: NDArray[np.float64],
    producers: NDArray[np.int64],
    channels: NDArray[np.int32],
    offsets: NDArray[np.int64],
    sent: NDArray[np.float64],
    workers: NDArray[np.int32],
) -> None:
    """Fill `workers`: for each row the key's worker to which its producer has sent least (first on ties)."""
    for row in range(len(keys)):
        known = sent[producers[row]]
        best = offsets[keys[row]]
        for place in range(best + 1, offsets[keys[row] + 1]):
            if known[channels[place]] < known[channels[best]]:
                best = place
        known[channels[best]] += costs[row]
        workers[row] = channels[best]
