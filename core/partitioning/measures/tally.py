"""Tallies: loads of a slice of a stream, which add up exactly."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled
from adapt.core.counting.exact import KeyCounts, check_counts
from adapt.core.counting.frequencies import Counts
from adapt.core.errors import BadInput
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.measures.floors import floor_keys, r_best_pinned
from adapt.core.partitioning.measures.metrics import Metrics, Migration, metrics_of
from adapt.core.partitioning.measures.resources import Load, Measured, Resources, load_of
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner, placed_at_random
from adapt.core.partitioning.schemes.split_map import SplitPartitioner

_LIMB_BITS = 32
_LOW_BITS = 2**_LIMB_BITS - 1
_EXPONENTS = 0x7FF
_SHIFTED = 13
_FIRST_BIT = 1088
"""A float is m 2^(e - 1075), with its exponent field e; that is m 2^(e + 13) of 2^-1088, and 1088 is 34 limbs."""


@dataclass(frozen=True, slots=True)
class ExactSums:
    """Exact sums of numbers from 0 up, by group.

    Sums over the same groups can be added.

    Numbers are added in 32-bit limbs, from the last bit of the smallest to the first of the largest. `totals` and
    `whole` round once, to the nearest float.

    Source: Kulisch's long accumulator, cut to what is needed.
    """

    limbs: NDArray[np.int64]  # the limbs of each sum, the lowest first, each in [0, 2^32); shape (groups, limbs)
    lowest: int = 0  # the lowest limb is in units of 2^(32 lowest - 1088)

    @classmethod
    def from_groups(cls, groups: NDArray[np.int32], values: Floats, number: int) -> "ExactSums":
        """The sums of numbers by group.

        Args:
            groups: The group of each number, shape (numbers,), each in [0, `number`).
            values: Finite numbers from 0 up, fewer than 2^29; same shape.
        """
        bits = np.ascontiguousarray(values, np.float64).view(np.uint64)
        exponents = (bits[bits != 0] >> np.uint64(52)).astype(np.int64) & _EXPONENTS
        if not len(exponents):
            return cls(np.zeros((number, 0), np.int64))
        lowest, highest = ((int(end) + _SHIFTED) // _LIMB_BITS for end in (exponents.min(), exponents.max()))
        limbs = np.zeros((number, highest - lowest + 3), np.int64)
        _add(np.ascontiguousarray(groups, np.int32), bits, limbs, lowest)
        return cls(limbs, lowest)._carried()

    def plus(self, other: "ExactSums") -> "ExactSums":
        """The sums of the numbers of both."""
        if not other.limbs.shape[1]:
            return self
        if not self.limbs.shape[1]:
            return other
        lowest = min(self.lowest, other.lowest)
        end = max(each.lowest + each.limbs.shape[1] for each in (self, other))
        limbs = np.zeros((len(self.limbs), end - lowest), np.int64)
        for each in (self, other):
            limbs[:, each.lowest - lowest :][:, : each.limbs.shape[1]] += each.limbs
        return replace(self, limbs=limbs, lowest=lowest)._carried()

    def totals(self) -> Floats:
        """Each sum, rounded once; infinite on overflow. Shape (groups,)."""
        shift = _LIMB_BITS * self.lowest - _FIRST_BIT
        return np.array([_rounded(limbs, shift) for limbs in self.limbs.astype("<u4")], np.float64)

    def whole(self) -> float:
        """The sum of all groups, rounded once."""
        return float(replace(self, limbs=self.limbs.sum(axis=0, keepdims=True))._carried().totals()[0])

    def _carried(self) -> "ExactSums":
        """The same sums, with every limb in its range."""
        limbs = np.pad(self.limbs, ((0, 0), (0, 1)))
        for at in range(limbs.shape[1] - 1):
            limbs[:, at + 1] += limbs[:, at] >> _LIMB_BITS
            limbs[:, at] &= _LOW_BITS
        return replace(self, limbs=limbs if limbs[:, -1].any() else limbs[:, :-1])


def _rounded(limbs: NDArray[np.uint32], shift: int) -> float:
    """The float nearest to a whole number times 2^shift, as Python divides whole numbers."""
    whole = int.from_bytes(limbs.tobytes(), "little")
    try:
        return float(whole << shift) if shift >= 0 else whole / (1 << -shift)
    except OverflowError:
        return float("inf")


@compiled
def _add(groups: NDArray[np.int32], bits: NDArray[np.uint64], limbs: NDArray[np.int64], lowest: int) -> None:
    low = np.uint64(_LOW_BITS)
    for row in range(len(groups)):
        exponent = np.int64(bits[row] >> np.uint64(52)) & _EXPONENTS
        fraction = bits[row] & np.uint64(2**52 - 1)
        if exponent:
            fraction |= np.uint64(2**52)
        else:
            exponent = np.int64(1)  # numbers below the normal ones have the least exponent and no leading bit
        place = exponent + _SHIFTED
        at = place // _LIMB_BITS - lowest
        shift = np.uint64(place % _LIMB_BITS)
        first = (fraction & low) << shift
        second = (fraction >> np.uint64(_LIMB_BITS)) << shift
        sums = limbs[groups[row]]
        sums[at] += np.int64(first & low)
        sums[at + 1] += np.int64((first >> np.uint64(_LIMB_BITS)) + (second & low))
        sums[at + 2] += np.int64(second >> np.uint64(_LIMB_BITS))


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
