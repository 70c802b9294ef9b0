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
from adapt.core.partitioning.splitting.choices import Choices, choices_of, hashed_choice
from adapt.core.partitioning.splitting.names import Splitting
from adapt.core.partitioning.splitting.split import CHOICES
from adapt.core.stage.conditions.arrivals import Chunk
from adapt.core.stage.input.mini_partitions import OTHER, MiniPartitions

_PART = np.dtype([("key", "<u8"), ("worker", "<i4"), ("group", "<i4"), ("home", "<i4")])
"""A partial result: first word of the key's hash, worker, group there, and the key's first worker."""


@dataclass(frozen=True, slots=True)
class SplitKeys:
    """How keys are split over workers.

    Attributes:
        splitting: How many workers a key may use.
        heavy: Hot keys that may use more than two workers, for d-choices and w-choices.
        merge_s: Interval between merges of partial results.
        choices: d of d-choices.

    Raises:
        UsageError: The interval is not above 0, or there are fewer than 2 choices.
    """

    splitting: Splitting
    heavy: pa.Array
    merge_s: float
    choices: int = CHOICES

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
        self._parts: list[NDArray[np.void]] = []
        self._rows, self._cost_s = 0, 0.0

    def dealt(self, keys: pa.Array, rows: Chunk) -> Chunk:
        """Route the rows of a chunk, and insert merge tuples.

        Args:
            keys: Key of each row, plain or dictionary-encoded; null is a key.
            rows: The rows with producers and arrival times; their groups are ignored.
        """
        assert rows.due_s is not None, "merging needs arrival times"
        plain = keys.dictionary_decode() if pa.types.is_dictionary(keys.type) else keys
        encoded = pc.dictionary_encode(plain, "encode")
        names, codes = encoded.dictionary, encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        places = self._places(names)
        costs = np.ones(len(codes)) if rows.cost_s is None else np.asarray(rows.cost_s, np.float64)
        workers = np.empty(len(codes), np.int32)
        _deal(codes, costs, np.asarray(rows.producers, np.int64), places.channels, places.offsets, self._sent, workers)
        within = HASHES[OTHER[self._partitions.hash]].modulo(names, self._partitions.per_worker)
        groups = workers * np.int32(self._partitions.per_worker) + within[codes]
        self._rows, self._cost_s = self._rows + len(codes), self._cost_s + float(costs.sum())
        parts = np.empty(len(codes), _PART)
        parts["key"] = HASHES[self._partitions.hash].positions(names)[0][codes]
        parts["worker"], parts["group"] = workers, groups
        parts["home"] = hashed_choice(names, 0, self._partitions.workers, self._partitions.hash)[codes]
        return self._with_merges(Chunk(groups, rows.producers, rows.due_s, rows.cost_s), parts)

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

    def _with_merges(self, rows: Chunk, parts: NDArray[np.void]) -> Chunk:
        """Rows of each period, followed by its merge tuples."""
        assert rows.due_s is not None
        periods = np.floor(rows.due_s / self._split.merge_s).astype(np.int64)
        starts = np.flatnonzero(np.diff(periods, prepend=self._period))
        pieces: list[Chunk] = []
        first = 0
        for start in starts.tolist():
            self._parts.append(np.unique(parts[first:start]))
            pieces += [rows.part(first, start), self._merges(rows.cost_s is not None)]
            first, self._period = start, int(periods[start])
        self._parts.append(np.unique(parts[first:]))
        return _joined([*pieces, rows.part(first, len(parts))]) if pieces else rows

    def _merges(self, costed: bool) -> Chunk:
        """Merge tuples of the finished period, at the mean cost of a row."""
        parts = np.unique(np.concatenate([*self._parts, np.empty(0, _PART)]))
        self._parts = []
        after_home = (parts["worker"] - parts["home"]) % self._partitions.workers
        parts = parts[np.lexsort((after_home, parts["key"]))]
        firsts = np.flatnonzero(np.diff(parts["key"], prepend=~parts["key"][:1]))
        sent = np.ones(len(parts), np.bool_)
        sent[firsts] = False
        to = np.repeat(parts["group"][firsts], np.diff(firsts, append=len(parts)))
        due_s = np.full(int(sent.sum()), (self._period + 1) * self._split.merge_s)
        cost_s = np.full(len(due_s), self._cost_s / self._rows) if costed else None
        return Chunk(to[sent], parts["worker"][sent].astype(np.int32), due_s, cost_s)


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
