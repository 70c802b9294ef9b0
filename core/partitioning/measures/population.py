"""Population of keys: the listed ones, and the others in sums."""

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Frequencies
from adapt.core.keys.columns import Words, key_type_of
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.measures.cells import WEIGHT, Cells, Hasher, RestSums, base_of
from adapt.core.partitioning.measures.resources import Load, Measured, ResourceFunction, Resources, listed_loads
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.random_bits import mix
from adapt.core.stream import KeyType, Weight

_PREFIX = "\x1astand-in\x1a"
"""Prefix of the 16 hex digits of a text; its control characters are rare in real keys."""

_OFFSET = np.uint64(0x243F6A8885A308D3)
"""Pi, so that no other mixed numbers from 0 up are the same."""


@lru_cache(maxsize=2)
def stand_in_keys(kind: pa.DataType, number: int) -> pa.Array:
    """Distinct keys of an Arrow type, always the same.

    A longer list begins with a shorter one.

    That one of them is a real key is as unlikely as a hit of a random 64-bit number.

    Args:
        kind: string, int64 or binary, with offsets of 32 or 64 bits.
        number: How many; shape (number,). Cached, since a chain of plans is measured on the same keys.
    """
    words = mix(np.arange(number, dtype=np.uint64) + _OFFSET)
    if key_type_of(kind) is KeyType.INT64:
        return pa.array(words.view(np.int64))
    return _as_texts(words, kind)


def _as_texts(words: Words, kind: pa.DataType) -> pa.Array:
    """Each number as the prefix and 16 hex digits."""
    prefix = np.frombuffer(_PREFIX.encode(), np.uint8)
    width = len(prefix) + 16
    letters = np.empty((len(words), width), np.uint8)
    letters[:, : len(prefix)] = prefix
    numbers = words.astype(">u8").view(np.uint8).reshape(-1, 8)
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    letters[:, len(prefix) :: 2], letters[:, len(prefix) + 1 :: 2] = digits[numbers >> 4], digits[numbers & 15]
    offsets = np.arange(len(words) + 1, dtype=np.int64) * width
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
    return pa.LargeBinaryArray.from_buffers(pa.large_binary(), len(words), buffers).cast(kind)


MOST_STAND_INS = 1 << 20
"""Most stand-ins; of more unlisted keys each represents several. With a million of them on ten channels, the load of
one is uncertain by a third of a percent of its unlisted part."""


@dataclass(frozen=True, slots=True)
class Population:
    """What partitioners place: listed keys, then the rest.

    A lossy counter lists the hot keys and leaves the weight of the others in one sum. Where the rows of the stream are
    at hand, the rest is the cells of the partitioners in question (`Cells`): the true load of all other keys on each
    channel, and of each pair of channels before and after a step. Then linear and measured loads, their migration and
    floors are exact. A constant or quadratic load of keys that are not listed is an estimate: as if they were all
    equal.

    Otherwise all of the rest is an estimate, by stand-ins: as many made-up keys, of equal weight, that partitioners
    place as they would the real ones. So loads and migration show the noise of hashing many rare keys: of the same
    size, though not the same to the digit. What a lossy counter missed of its listed keys is in the rest too. Exact
    counts have no rest.
    """

    frequencies: Frequencies
    keys: pa.Array  # the listed keys, then any stand-ins; shape (keys,)
    unlisted: int  # number of keys that were not listed; at least one if they have weight
    unlisted_weight: float  # their mean weight
    rest: Cells | None = None  # the cells of the rest; None with stand-ins, or without any
    sums: RestSums | None = None  # makes the cells of other partitioners; None without cells
    _routes: list[tuple[Hasher, Channels]] = field(default_factory=list, init=False, repr=False, compare=False)

    @classmethod
    def from_counts(cls, counted: "Counted", *partitioners: Hasher) -> "Population":
        """The population of counted keys, as some partitioners place it.

        A population is returned as is, unless these need other cells.
        """
        if isinstance(counted, Population):
            return counted._over(partitioners)
        unlisted, weight = _unlisted(counted)
        if not unlisted:
            return cls(counted, counted.keys, 0, 0.0)
        stand_ins = stand_in_keys(counted.keys.type, min(unlisted, MOST_STAND_INS))
        return cls(counted, pa.concat_arrays([counted.keys, stand_ins]), unlisted, weight / unlisted)

    @classmethod
    def with_sums(cls, frequencies: Frequencies, sums: RestSums) -> "Population":
        """The population whose rest is summed by cell."""
        unlisted, weight = _unlisted(frequencies)
        if not unlisted:
            return cls(frequencies, frequencies.keys, 0, 0.0)
        return cls(frequencies, frequencies.keys, unlisted, weight / unlisted, sums.over(()), sums)

    @classmethod
    def on_channels(cls, frequencies: Frequencies, partitioner: Partitioner, loads: Floats) -> "Population":
        """The population of known channel loads, shape (channels,)."""
        listed = np.bincount(partitioner.channels_of(frequencies.keys), frequencies.count_low, partitioner.channels)
        cells = Cells(
            (base_of(partitioner),), np.arange(partitioner.channels), {WEIGHT: np.maximum(loads - listed, 0.0)}
        )
        return cls.with_sums(frequencies, RestSums(lambda _: (), [cells]))

    @property
    def listed(self) -> int:
        """Number of listed keys; they come first."""
        return len(self.frequencies.keys)

    @property
    def entries(self) -> int:
        """Number of keys and of cells of the rest."""
        return len(self.keys) + (0 if self.rest is None else len(self.rest.at))

    def is_estimate(self, resources: Resources) -> bool:
        """Whether some load of unlisted keys on a channel is estimated."""
        by_key = any(load in (ResourceFunction.CONSTANT, ResourceFunction.QUADRATIC) for load in resources.loads)
        return self.unlisted > 0 and (self.rest is None or by_key)

    def as_counted(self, resources: Resources) -> dict[str, Any]:
        """How the keys were counted, as JSON data."""
        return self.frequencies.as_counted() | ({"estimate": True} if self.is_estimate(resources) else {})

    @property
    def represented(self) -> Floats | None:
        """Number of keys that each entry represents; None if all 1.

        Shape (entries,), whole or not.
        """
        if self.rest is None and self.unlisted <= MOST_STAND_INS:
            return None
        return np.concatenate((np.ones(self.listed), self._rest_keys))

    def placed(self, partitioner: Hasher) -> Channels:
        """The channel of each key, then of each cell.

        Shape (entries,). The last three are kept: a step's partitioner is the next one's before, and the base of both,
        which alone places the keys that are not listed.
        """
        for known, places in self._routes:
            if known is partitioner or (isinstance(partitioner, ConsistentHash) and known == partitioner):
                return places
        if isinstance(partitioner, HybridPartitioner):
            places = self.placed(partitioner.base).copy()
            places[: self.listed] = partitioner.channels_of(self.keys[: self.listed])
        else:
            places = partitioner.channels_of(self.keys)
            if self.rest is not None:
                places = np.concatenate((places, self.rest.placed(partitioner)))
        self._routes[:] = [*self._routes[-2:], (partitioner, places)]
        return places

    def rest_on(self, partitioner: Hasher, load: Load) -> Floats:
        """The load of unlisted keys on each channel, shape (channels,)."""
        if not self.unlisted:
            return np.zeros(partitioner.channels)
        stand_ins = self.keys[self.listed :]
        placed = partitioner.channels_of(stand_ins) if self.rest is None else self.rest.placed(base_of(partitioner))
        return np.bincount(placed, self._rest_loads(load), partitioner.channels).astype(np.float64)

    def loads(self, load: Load) -> Floats:
        """The load of each key, then of each cell; shape (entries,)."""
        listed = listed_loads(self.frequencies, load)
        return np.concatenate((listed, self._rest_loads(load))) if self.unlisted else listed

    def heaviest(self, load: Load) -> Floats:
        """The loads of the listed keys, falling, without stand-ins.

        Without a listed key, that of a key without load: floors then know of none.
        """
        if not self.frequencies.real and (self.unlisted or self.listed):
            return np.zeros(1)
        return np.sort(listed_loads(self.frequencies, load)[: self.frequencies.real])[::-1]

    def _over(self, partitioners: tuple[Hasher, ...]) -> "Population":
        """The same keys with cells that cover some partitioners."""
        hashers = [base_of(each) for each in partitioners]
        if self.rest is None or self.sums is None or all(self.rest.covers(each) for each in hashers):
            return self
        return replace(self, rest=self.sums.over(hashers))

    @property
    def _rest_keys(self) -> Floats:
        """Number of keys of each cell, in proportion to its weight, or of each stand-in."""
        if self.rest is None:
            stand_ins = len(self.keys) - self.listed
            return np.full(stand_ins, self.unlisted / max(stand_ins, 1))
        weights = self.rest.loads[WEIGHT]
        weights = weights if weights.sum() > 0 else np.ones(len(weights))
        return np.asarray(self.unlisted * weights / max(weights.sum(), 1e-300))

    def _rest_loads(self, load: Load) -> Floats:
        """The load of each cell or stand-in."""
        if self.rest is not None and isinstance(load, Measured):
            return self.rest.loads[load.source]
        if self.rest is not None and load is ResourceFunction.LINEAR:
            return self.rest.loads[WEIGHT]
        if isinstance(load, Measured):
            return self._rest_keys * (self.frequencies.column(load.source).unlisted / self.unlisted)
        return self._rest_keys * float(load.costs(self.unlisted_weight))


Counted: TypeAlias = Frequencies | Population
"""Counted keys, with or without the load of the others; measuring several partitioners finds it once."""


def frequencies_in(counted: Counted) -> Frequencies:
    """The listed keys of either."""
    return counted.frequencies if isinstance(counted, Population) else counted


def _unlisted(frequencies: Frequencies) -> tuple[int, float]:
    """Number of keys that are not listed, and their total weight.

    The number is the estimate of distinct keys less the listed ones, within what is certain: no unlisted key weighs
    more than `complete_above`, and if rows are counted, none less than 1. Weight missed of listed keys also goes to a
    stand-in, as the counts do not say whose it is. If a column adds up to more than on the listed keys, at least one
    key is not listed.
    """
    if frequencies.epsilon == 0 and frequencies.complete_above == 0:
        return 0, 0.0
    weight = frequencies.total - float(frequencies.count_low.sum())
    # Costs added in another order differ in the last digit; such a rounding error is not weight.
    weight = weight if weight > 1e-9 * frequencies.total else 0.0
    measured = any(column.unlisted > 0 for column in frequencies.measured)
    if frequencies.complete_above == 0 and weight == 0 and not measured:
        return 0, 0.0
    estimated = max(frequencies.distinct - len(frequencies.keys), 0)
    if frequencies.weight is Weight.COUNT and np.issubdtype(frequencies.count_low.dtype, np.integer):
        estimated = min(estimated, int(weight))
    return max(estimated, _fewest(weight, frequencies.complete_above), int(measured)), weight


def _fewest(weight: float, most_each: float) -> int:
    """The fewest keys with this total weight if none weighs more than `most_each` (0 if unknown)."""
    if weight == 0:
        return 0
    return math.ceil(weight / most_each) if most_each else 1
