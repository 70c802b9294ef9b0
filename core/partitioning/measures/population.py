"""The keys that a partitioner is judged by: those that were listed, and stand-ins for those that were not."""

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
"""Stand-ins at most; of more unlisted keys each stands for several. A million of them, on ten channels, leave the load
of one uncertain by a third of a percent of its unlisted part."""


@dataclass(frozen=True, slots=True)
class Population:
    """The keys of a stream for a partitioner to route: the listed ones, then stand-ins for the unlisted ones.

    A lossy counter lists the heavier keys and leaves the weight of the others in one sum. Stand-ins are as many made-up
    keys, of equal weight, that carry this sum. A partitioner routes them as it would the real ones, so that loads and
    migration have the noise that hashing many light keys has: of the same size, though not the same to the digit. For
    exact counts there are none.

    Equal weights are a decision of ours: the unlisted keys of a Zipf stream really fall by a power of their rank, but
    stand-ins that do so, being other keys than the real ones, add more noise of their own than they mend. What a lossy
    counter missed of its listed keys is in the sum too, and so is spread with it. Of a measured column, the stand-ins
    share evenly what is on unlisted keys.

    Attributes:
        keys: The listed keys, then the stand-ins; those of `frequencies` themselves if it is exact. Shape (keys,).
        unlisted: The keys that were not listed, at least one where weight is left for them.
        unlisted_weight: What each of them weighs.
    """

    frequencies: Frequencies
    keys: pa.Array
    unlisted: int
    unlisted_weight: float

    @classmethod
    def from_counts(cls, counted: "Counted") -> "Population":
        """The population of counted keys; a population is its own."""
        if isinstance(counted, Population):
            return counted
        unlisted, weight = _unlisted(counted)
        if not unlisted:
            return cls(counted, counted.keys, 0, 0.0)
        stand_ins = stand_in_keys(counted.keys.type, min(unlisted, MOST_STAND_INS))
        return cls(counted, pa.concat_arrays([counted.keys, stand_ins]), unlisted, weight / unlisted)

    @property
    def listed(self) -> int:
        """How many keys, from the first, are listed."""
        return len(self.frequencies.keys)

    @property
    def represented(self) -> Floats | None:
        """How many keys each key is, shape (keys,): a stand-in may be several, whole or not; None if each is 1."""
        return self._with_stand_ins(np.ones(self.listed), self._each) if self._each > 1 else None

    def loads(self, load: Load) -> Floats:
        """The load of each key, a stand-in's times the keys that it is; shape (keys,).

        Raises:
            UsageError: it was not measured.
        """
        return self._with_stand_ins(listed_loads(self.frequencies, load), self._each * self._unlisted_load(load))

    def heaviest(self, load: Load, most: int) -> Floats:
        """The load of the heaviest keys, falling, each by itself; all of them or `most`.

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
        """How many keys a stand-in is."""
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
"""Counted keys, with or without the stand-ins that go with them; who judges several partitioners makes these once."""


def _unlisted(frequencies: Frequencies) -> tuple[int, float]:
    """How many keys are not listed, and what they weigh together.

    Their number is the estimate of the distinct keys less the listed ones, within what is certain: no unlisted key
    weighs more than `complete_above`, and where rows are counted none weighs less than 1. Where the weight that is left
    is all that was missed of listed keys, it still goes to a stand-in, as the counts do not say whose it is. Where a
    column adds up to more than on the listed keys, there is at least one that is not listed.
    """
    if frequencies.epsilon == 0:
        return 0, 0.0
    weight = frequencies.total - float(frequencies.count_low.sum())
    # Costs that are added in another order give another last digit; such a crumb is nobody's weight.
    weight = weight if weight > 1e-9 * frequencies.total else 0.0
    measured = any(column.unlisted > 0 for column in frequencies.measured)
    if frequencies.complete_above == 0 and weight == 0 and not measured:
        return 0, 0.0
    estimated = max(frequencies.distinct - len(frequencies.keys), 0)
    if frequencies.weight is Weight.COUNT and np.issubdtype(frequencies.count_low.dtype, np.integer):
        estimated = min(estimated, int(weight))
    return max(estimated, _fewest(weight, frequencies.complete_above), int(measured)), weight


def _fewest(weight: float, most_each: float) -> int:
    """The fewest keys that weigh this together if none weighs more than `most_each` (0 if that is not known)."""
    if weight == 0:
        return 0
    return math.ceil(weight / most_each) if most_each else 1
