"""Measure candidate keys in one pass."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.counting.sketches import DistinctSketch, Hashes, HeavySums, hashes_of
from adapt.core.keys.partitioner import Channels

SAMPLE = 2048
"""Keys of a candidate that are followed from window to window; with fewer keys, all are."""

TOGETHER = 4096
"""Values of the needed columns that are followed; with fewer values, all are."""

MOST_SEEN = 100
"""Most parts that the sampled keys are held in before they are summed by window."""

HOTTEST = 1000
"""Hottest keys that the best possible imbalance is computed from."""

_COUNT = "count"

Piece = tuple[int, slice]
"""The number of a window, and its rows in a batch."""


@dataclass(frozen=True, slots=True)
class Coded:
    """The keys of a batch, as codes of its distinct keys."""

    codes: NDArray[np.int64]  # of each row; shape (rows,)
    hashes: Hashes  # of each distinct key; shape (keys,)
    missing: NDArray[np.bool_]  # whether a key, or a column of it, is null; shape (keys,)

    @classmethod
    def of(cls, keys: pa.Array, codes: NDArray[np.int64]) -> "Coded":
        """Distinct keys, and the codes of the rows."""
        return cls(codes, hashes_of(keys), keys.is_null().to_numpy(False))

    @classmethod
    def joined(cls, first: "Coded", second: "Coded") -> tuple["Coded", NDArray[np.int64], NDArray[np.int64]]:
        """Pairs of keys, and the codes of each in both columns."""
        width = len(second.hashes)
        pairs, codes = np.unique(first.codes * width + second.codes, return_inverse=True)
        one, other = pairs // width, pairs % width
        with np.errstate(over="ignore"):
            hashes = (first.hashes[one] * np.uint64(0x9E3779B97F4A7C15) ^ second.hashes[other]) * np.uint64(
                0xD6E8FEB86659FD93
            )
        return cls(codes, hashes, first.missing[one] | second.missing[other]), one, other


@dataclass(slots=True)
class Measured:
    """What one pass finds of a candidate.

    Attributes:
        loads: Rows of each worker in each window; shape (windows, workers).
        salts: Keys that each of its keys is divided into.
        later: First of the windows that it is judged on.
    """

    loads: Floats
    later: int
    salts: int = 1
    nulls: int = 0
    _sketch: DistinctSketch = field(default_factory=lambda: DistinctSketch.empty(SAMPLE))
    _heavy: HeavySums = field(default_factory=lambda: HeavySums((_COUNT,)))
    _seen: list[tuple[int, Hashes, NDArray[np.int64]]] = field(default_factory=list)

    def add(
        self, coded: Coded, channels: Sequence[Channels], at_random: NDArray[np.bool_], pieces: Sequence[Piece]
    ) -> None:
        """Count a batch.

        Args:
            channels: The worker of each distinct key, by salt; each of shape (keys,).
            at_random: Distinct keys whose rows go to any worker; shape (keys,).
        """
        hashes, workers = coded.hashes, self.loads.shape[1]
        near = hashes
        if len(near) > 4 * SAMPLE:
            near = near[near <= np.partition(near, 2 * SAMPLE)[2 * SAMPLE]]
        self._sketch = DistinctSketch.from_hashes(np.concatenate((self._sketch.smallest, near)), SAMPLE)
        sampled = np.flatnonzero(hashes <= self._sketch.smallest[-1])
        hot = np.zeros(len(hashes), np.int64)
        for window, rows in pieces:
            counts = np.bincount(coded.codes[rows], minlength=len(hashes))
            self.nulls += int(counts[coded.missing].sum())
            own = np.where(at_random, 0, counts) / self.salts
            for each in channels:
                self.loads[window] += np.bincount(each, own, workers)
            self.loads[window] += counts[at_random].sum() / workers
            came = sampled[counts[sampled] > 0]
            self._seen.append((window, hashes[came], counts[came]))
            if window >= self.later:
                hot += counts
        if len(self._seen) > MOST_SEEN:
            self._compact()
        came = np.flatnonzero((hot > 0) & ~at_random)
        self._heavy.add(pa.array(hashes[came].view(np.int64)), {_COUNT: hot[came]}, 0)

    def _compact(self) -> None:
        """Sum the sampled keys by window, and forget those that the sample has no longer."""
        summed = []
        for window in sorted({window for window, _, _ in self._seen}):
            hashes, counts = (np.concatenate([each[at] for each in self._seen if each[0] == window]) for at in (1, 2))
            kept = hashes <= self._sketch.smallest[-1]
            known, code = np.unique(hashes[kept], return_inverse=True)
            summed.append((window, known, np.bincount(code, counts[kept], len(known)).astype(np.int64)))
        self._seen = summed

    @property
    def imbalances(self) -> Floats:
        """Imbalance of each later window; shape (windows,)."""
        later = self.loads[self.later :]
        return np.asarray(later.max(axis=1) * later.shape[1] / later.sum(axis=1))

    @property
    def drift(self) -> float | None:
        """Share of load on other workers in later windows; None in-sample."""
        if not self.later:
            return None
        past, later = self.loads[: self.later].sum(axis=0), self.loads[self.later :].sum(axis=0)
        return float(np.abs(past / past.sum() - later / later.sum()).sum() / 2)

    @property
    def keys(self) -> int:
        """Distinct keys.

        Exact below `SAMPLE`, else with a relative standard error of 2.2 %.
        """
        return self._sketch.estimate() * self.salts

    def hottest(self) -> tuple[Floats, int]:
        """Later rows of the hottest keys, and their largest error."""
        _, amounts, _ = self._heavy.top(HOTTEST)
        return np.repeat(amounts[_COUNT] / self.salts, self.salts), self._heavy.missed

    def followed(self) -> tuple[float | None, float]:
        """Share of new keys, and of rows on keys of one window.

        Both are of the sampled keys; all of them, if they are below `SAMPLE`.
        """
        self._compact()
        windows = np.concatenate([np.full(len(each), window) for window, each, _ in self._seen])
        hashes = np.concatenate([each for _, each, _ in self._seen])
        counts = np.concatenate([each for _, _, each in self._seen])
        known, code = np.unique(hashes, return_inverse=True)
        first, final = np.full(len(known), len(self.loads)), np.full(len(known), -1)
        np.minimum.at(first, code, windows)
        np.maximum.at(final, code, windows)
        rows = np.bincount(code, counts, len(known))
        came = final >= self.later
        new = float((first[came] >= self.later).mean()) if self.later and came.any() else None
        return new, float(rows[first == final].sum() / rows.sum()) if len(self.loads) > 1 else 0.0


@dataclass(slots=True)
class Together:
    """Columns that have one value for each value of the needed columns.

    Followed on the values with the smallest hashes; on all, if there are at most `TOGETHER`.
    """

    broken: set[str] = field(default_factory=set)  # columns with several values for some needed value
    is_exact: bool = True
    _known: Hashes = field(default_factory=lambda: np.zeros(0, np.uint64))
    _values: dict[str, Hashes] = field(default_factory=dict)

    def add(self, needed: Coded, columns: Mapping[str, Coded]) -> None:
        """Compare a batch with itself and those before."""
        first = np.zeros(len(needed.hashes), np.int64)
        first[needed.codes[::-1]] = np.arange(len(needed.codes))[::-1]
        chosen = np.flatnonzero(~needed.missing)
        chosen = chosen[np.argsort(needed.hashes[chosen])]
        merged = np.union1d(self._known, needed.hashes[chosen])
        self.is_exact &= len(merged) <= TOGETHER
        merged = merged[:TOGETHER]
        if not len(merged):
            return
        chosen = chosen[needed.hashes[chosen] <= merged[-1]]
        followed = np.zeros(len(needed.hashes), np.bool_)
        followed[chosen] = True
        rows = np.flatnonzero(followed[needed.codes])
        firsts = first[needed.codes[rows]]
        kept = self._known <= merged[-1]
        known = self._known[kept]
        before, now = np.searchsorted(merged, known), np.searchsorted(merged, needed.hashes[chosen])
        again = np.isin(needed.hashes[chosen], known)
        for name, each in columns.items():
            if name in self.broken:
                continue
            values, made = each.hashes[each.codes], np.zeros(len(merged), np.uint64)
            made[before] = self._values.get(name, np.zeros(0, np.uint64))[: len(kept)][kept]
            own = values[first[chosen]]
            if (values[rows] != values[firsts]).any() or (made[now[again]] != own[again]).any():
                self.broken.add(name)
            made[now] = own
            self._values[name] = made
        self._known = merged


def with_time(values: Sequence[pa.Array], places: Sequence[NDArray[np.int64]]) -> float | None:
    """Spearman's correlation of sampled values with their order.

    None if all are equal. Nulls do not count; text counts as numbers if all of it is numeric, else by characters.
    """
    column, order = pa.concat_arrays(values), np.concatenate(places)
    known = column.is_valid().to_numpy(False)
    column, order = column.filter(pa.array(known)), order[known]
    if pa.types.is_string(column.type):
        try:
            column = pc.cast(column, pa.float64())
        except pa.ArrowInvalid:
            column = column.dictionary_encode()
            order_of = pc.sort_indices(column.dictionary).to_numpy()
            ranks = np.empty(len(order_of), np.int64)
            ranks[order_of] = np.arange(len(order_of))
            column = pa.array(ranks[column.indices.to_numpy()])
    elif pa.types.is_temporal(column.type) or pa.types.is_boolean(column.type):
        column = column.cast(pa.int32() if pa.types.is_date32(column.type) else pa.int64())
    distinct, code, counts = np.unique(column.to_numpy(False), return_inverse=True, return_counts=True)
    if len(distinct) < 2:
        return None
    middles = (np.cumsum(counts) - counts / 2)[code]
    return float(np.corrcoef(middles, np.argsort(np.argsort(order)))[0, 1])
