"""Exact sums of floats by group, independent of order and partitioning."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled

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
