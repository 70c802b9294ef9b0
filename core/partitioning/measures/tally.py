"""Tallies: loads of a part of a stream's keys, which add up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.counting.exact import KeyCounts, check_counts
from adapt.core.counting.frequencies import Counts
from adapt.core.errors import BadInput
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.measures.exact_sums import ExactSums
from adapt.core.partitioning.measures.floors import floor_keys, r_best_pinned
from adapt.core.partitioning.measures.metrics import Metrics, Migration, metrics_of
from adapt.core.partitioning.measures.resources import Load, Measured, Resources, load_of
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner, placed_at_random
from adapt.core.partitioning.schemes.split_map import SplitPartitioner


@dataclass(frozen=True, slots=True)
class Tally:
    """Loads of some keys on each channel; disjoint tallies merge.

    Memory grows with the channels and the pinned keys, not with the tallied keys. Sums are exact, so the total does not
    depend on how keys were split into tallies.
    """

    keys: int
    loads: Mapping[Load, ExactSums]  # their loads on each channel, by kind of load
    heaviest: Floats  # the network loads of the hottest keys, falling; all or `floor_keys`
    tracked: NDArray[np.int32]  # the pinned ones: the row of each in the explicit map, rising. Shape (tracked,)
    tracked_loads: Floats  # their network loads, shape (tracked,)
    # number of keys with another channel than under the partitioner before; None without one
    moved_keys: int | None = None
    moved: ExactSums | None = None  # their state, as the one group of the sums

    def plus(self, other: "Tally") -> "Tally":
        """The tally of the keys of both."""
        tracked = np.concatenate((self.tracked, other.tracked))
        order = np.argsort(tracked)
        both_moved = None
        if self.moved is not None and other.moved is not None:
            both_moved = self.moved.plus(other.moved)
        channels = len(next(iter(self.loads.values())).limbs)
        return Tally(
            self.keys + other.keys,
            {load: sums.plus(other.loads[load]) for load, sums in self.loads.items()},
            _falling(np.concatenate((self.heaviest, other.heaviest)), floor_keys(channels)),
            tracked[order],
            np.concatenate((self.tracked_loads, other.tracked_loads))[order],
            None if self.moved_keys is None or other.moved_keys is None else self.moved_keys + other.moved_keys,
            both_moved,
        )

    def channel_loads(self, resources: Resources) -> Floats:
        """The loads of every channel, shape (3, channels), by the tallied resources."""
        of = {load: sums.totals() for load, sums in self.loads.items()}
        return np.stack([of[load] for load in resources.loads])

    def metrics(self, partitioner: Partitioner, resources: Resources, capacities: Floats | None = None) -> Metrics:
        """The partitioner's metrics on the tallied keys, as by `evaluate`.

        The resources have the same loads as the tallied ones.
        """
        loads = self.channel_loads(resources)
        moved = None
        if self.moved is not None and self.moved_keys is not None:
            ideal = self.loads[resources.state].whole() / partitioner.channels
            moved = Migration(self.moved_keys, self.moved.whole(), ideal)
        mapped = partitioner if isinstance(partitioner, HybridPartitioner) else None
        whole = partitioner.whole if isinstance(partitioner, SplitPartitioner) else partitioner
        pinned = len(whole.explicit) if isinstance(whole, HybridPartitioner) else 0
        return metrics_of(
            loads,
            resources,
            total=self.loads[resources.network].whole(),
            heavy=self.heaviest,
            pair_floor=None if mapped is None else self._pair_floor(mapped, loads[2], capacities),
            pinned_keys=pinned,
            moved=moved,
            capacities=capacities,
        )

    def _pair_floor(self, partitioner: HybridPartitioner, network: Floats, capacities: Floats | None) -> float | None:
        owners = partitioner.explicit.channels[self.tracked]
        explicit = np.bincount(owners, weights=self.tracked_loads, minlength=partitioner.channels)
        return r_best_pinned(np.sort(self.tracked_loads)[::-1], np.maximum(network - explicit, 0.0), capacities)


def tallies(
    partitioners: Sequence[Partitioner],
    keys: pa.Array,
    counts: Counts,
    resources: Resources,
    columns: Mapping[str, Counts] = MappingProxyType({}),
) -> list[Tally]:
    """Tally keys under successive partitioners, with the migration between them.

    Args:
        keys: Distinct keys, shape (keys,).
        counts: Their exact weights; same shape.
        columns: Their measured columns, by source; same shape.
    """
    check_counts(KeyCounts(keys, counts, len(keys)))
    weighed = {load: _weighed(keys, load, counts, columns) for load in dict.fromkeys(resources.loads)}
    placed = [partitioner.channels_of(keys) for partitioner in partitioners]
    before = [None, *placed[:-1]]
    dealt = [
        _dealt(partitioner, keys, counts, columns, weighed, now)
        for partitioner, now in zip(partitioners, placed, strict=True)
    ]
    return [
        _tally(partitioner, keys, weighed, resources, now, was, parts)
        for partitioner, now, was, parts in zip(partitioners, placed, before, dealt, strict=True)
    ]


def _dealt(
    partitioner: Partitioner,
    keys: pa.Array,
    counts: Counts,
    columns: Mapping[str, Counts],
    weighed: Mapping[Load, Floats],
    placed: Channels,
) -> dict[Load, ExactSums]:
    """Sums by channel, the records of split keys in equal parts."""
    if not isinstance(partitioner, SplitPartitioner):
        free = placed_at_random(partitioner, keys)
        return {load: _sums(placed, each, free, partitioner.channels) for load, each in weighed.items()}
    dealing = partitioner.deal(keys)
    free = placed_at_random(partitioner.whole, keys)[dealing.rows] & (dealing.share == 1)
    parts = {source: column[dealing.rows] * dealing.share for source, column in columns.items()}
    shares = counts[dealing.rows] * dealing.share
    return {
        load: _sums(dealing.channels, load_of(load, shares, parts.__getitem__), free, partitioner.channels)
        for load in weighed
    }


def _weighed(keys: pa.Array, load: Load, counts: Counts, columns: Mapping[str, Counts]) -> Floats:
    """The load of each key, checked to be finite and at least 0."""
    with np.errstate(over="ignore"):
        loads = load_of(load, counts, columns.__getitem__)
    wrong = np.flatnonzero(~(np.isfinite(loads) & (loads >= 0)))
    if len(wrong):
        what = load.source if isinstance(load, Measured) else f"load {load.value}"
        key, amount = keys[int(wrong[0])].as_py(), loads[wrong[0]]
        raise BadInput(f"key {key!r} has a {what} of {amount:g}; loads must be finite and at least 0")
    return loads


def _tally(
    partitioner: Partitioner,
    keys: pa.Array,
    weighed: Mapping[Load, Floats],
    resources: Resources,
    placed: Channels,
    before: Channels | None,
    loads: dict[Load, ExactSums],
) -> Tally:
    partitioner = partitioner.whole if isinstance(partitioner, SplitPartitioner) else partitioner
    free = placed_at_random(partitioner, keys)
    rows = np.full(len(keys), -1, np.int32)
    if isinstance(partitioner, HybridPartitioner):
        rows = partitioner.explicit.rows_of(keys)
    met = np.flatnonzero(rows >= 0)
    met = met[np.argsort(rows[met])]
    network = weighed[resources.network]
    heaviest = _falling(network[~free], floor_keys(partitioner.channels))
    if before is None:
        return Tally(len(keys), loads, heaviest, rows[met], network[met])
    moving = (placed != before) & ~free
    moved = ExactSums.from_groups(np.zeros(int(moving.sum()), np.int32), weighed[resources.state][moving], 1)
    return Tally(len(keys), loads, heaviest, rows[met], network[met], int(moving.sum()), moved)


def _sums(placed: Channels, loads: Floats, free: NDArray[np.bool_], channels: int) -> ExactSums:
    """Sums by channel, with the loads of keys without a fixed channel spread evenly."""
    if not free.any():
        return ExactSums.from_groups(placed, loads, channels)
    spread = np.full(channels, loads[free].sum() / channels)
    every = np.arange(channels, dtype=np.int32)
    return ExactSums.from_groups(np.append(placed[~free], every), np.append(loads[~free], spread), channels)


def _falling(loads: Floats, most: int) -> Floats:
    """The largest loads, falling; all of them or `most`."""
    top = loads if len(loads) <= most else np.partition(loads, len(loads) - most)[len(loads) - most :]
    return np.sort(top)[::-1]
