"""Population of keys: the listed ones, and stand-ins for the others."""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Frequencies
from adapt.core.partitioning.measures.key_loads import listed_loads
from adapt.core.partitioning.measures.resources import Load, Measured
from adapt.core.partitioning.measures.stand_ins import stand_in_keys
from adapt.core.stream import Weight

MOST_STAND_INS = 1 << 20
"""Most stand-ins; of more unlisted keys each represents several. With a million of them on ten channels, the load of
one is uncertain by a third of a percent of its unlisted part."""


@dataclass(frozen=True, slots=True)
class Population:
    """The keys to route: listed ones, then stand-ins for others.

    A lossy counter lists the hot keys and leaves the weight of the others in one sum. Stand-ins are as many made-up
    keys, of equal weight, that carry this sum. A partitioner routes them as it would the real ones, so loads and
    migration show the noise of hashing many rare keys: of the same size, though not the same to the digit. Exact counts
    need no stand-ins.

    Equal weights are a decision of ours: the unlisted keys of a Zipf stream really fall by a power of their rank, but
    stand-ins that do so, being other keys than the real ones, would add more noise than they remove. What a lossy
    counter missed of its listed keys is in the sum too, and is spread with it. Of a measured column, the stand-ins
    share evenly the part on unlisted keys.

    Attributes:
        keys: The listed keys, then the stand-ins; shape (keys,).
        unlisted: Number of keys that were not listed; at least one if they have weight.
        unlisted_weight: The weight of each of them.
    """

    frequencies: Frequencies
    keys: pa.Array
    unlisted: int
    unlisted_weight: float

    @classmethod
    def from_counts(cls, counted: "Counted") -> "Population":
        """The population of counted keys; a population is returned as is."""
        if isinstance(counted, Population):
            return counted
        unlisted, weight = _unlisted(counted)
        if not unlisted:
            return cls(counted, counted.keys, 0, 0.0)
        stand_ins = stand_in_keys(counted.keys.type, min(unlisted, MOST_STAND_INS))
        return cls(counted, pa.concat_arrays([counted.keys, stand_ins]), unlisted, weight / unlisted)

    @property
    def listed(self) -> int:
        """Number of listed keys; they come first."""
        return len(self.frequencies.keys)

    @property
    def represented(self) -> Floats | None:
        """Number of keys that each key represents; None if all 1.

        Shape (keys,), whole or not.
        """
        return self._with_stand_ins(np.ones(self.listed), self._each) if self._each > 1 else None

    def loads(self, load: Load) -> Floats:
        """The load of each key, or of all that it represents.

        Shape (keys,).

        Raises:
            UsageError: it was not measured.
        """
        return self._with_stand_ins(listed_loads(self.frequencies, load), self._each * self._unlisted_load(load))

    def heaviest(self, load: Load, most: int) -> Floats:
        """The loads of the hottest keys, falling; all of them or `most`.

        Raises:
            UsageError: it was not measured.
        """
        if isinstance(load, Measured):
            listed = np.sort(listed_loads(self.frequencies, load))[::-1][:most]
        else:
            listed = load.costs(self.frequencies.count_low[:most])
        if not self.unlisted:
            return listed
        others = np.full(min(self.unlisted, most), self._unlisted_load(load))
        return np.sort(np.concatenate((listed, others)))[::-1][:most]

    @property
    def _each(self) -> float:
        """Number of keys that a stand-in represents."""
        stand_ins = len(self.keys) - self.listed
        return self.unlisted / stand_ins if stand_ins else 1.0

    def _unlisted_load(self, load: Load) -> float:
        """The load of one key that is not listed."""
        if isinstance(load, Measured):
            return self.frequencies.column(load.source).unlisted / self.unlisted if self.unlisted else 0.0
        return float(load.costs(self.unlisted_weight))

    def _with_stand_ins(self, listed: Floats, stand_in: float) -> Floats:
        """The value of each listed key, then that of the stand-ins."""
        if not self.unlisted:
            return listed
        return np.concatenate((listed, np.full(len(self.keys) - self.listed, stand_in)))


Counted: TypeAlias = Frequencies | Population
"""Counted keys, with or without their stand-ins; measuring several partitioners makes stand-ins once."""


def _unlisted(frequencies: Frequencies) -> tuple[int, float]:
    """Number of keys that are not listed, and their total weight.

    The number is the estimate of distinct keys less the listed ones, within what is certain: no unlisted key weighs
    more than `complete_above`, and if rows are counted, none less than 1. Weight missed of listed keys also goes to a
    stand-in, as the counts do not say whose it is. If a column adds up to more than on the listed keys, at least one
    key is not listed.
    """
    if frequencies.epsilon == 0:
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
