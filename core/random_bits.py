"""Counter-based random bits: SplitMix64 of seed, purpose and number.

A draw does not depend on batches, order or other draws.

Source: Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA 2014.
"""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined

Indices = NDArray[np.int64]
Words = TypeVar("Words", np.uint64, NDArray[np.uint64])

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""The step of SplitMix64: 2^64 over the golden ratio."""

MIX1 = np.uint64(0xBF58476D1CE4E5B9)
MIX2 = np.uint64(0x94D049BB133111EB)

_OF_53_BITS = 2.0**-53


def mix(words: Words) -> Words:
    """The output function of SplitMix64, a bijection, of one or many words."""
    words = (words ^ (words >> np.uint64(30))) * MIX1
    words = (words ^ (words >> np.uint64(27))) * MIX2
    return words ^ (words >> np.uint64(31))


mixed = inlined(mix)
"""`mix` in kernels."""


@inlined
def output(seed: np.uint64, number: np.uint64) -> np.uint64:
    """SplitMix64's output number `number` from a seed, in kernels."""
    return mixed(seed + (number + np.uint64(1)) * GOLDEN)


@inlined
def uniform(bits: np.uint64) -> float:
    """Random bits as a number in [0, 1), in kernels."""
    return np.float64(bits >> np.uint64(11)) * _OF_53_BITS


def substream(seed: int, purpose: int) -> np.uint64:
    """The seed for one purpose, from a seed below 2^64."""
    return np.uint64(_substream(np.uint64(seed), np.uint64(purpose)))


def uniforms(stream: np.uint64, numbers: Indices) -> Floats:
    """Draws of a substream by number, in [0, 1); shape (numbers,)."""
    drawn = np.empty(len(numbers))
    _uniforms(np.uint64(stream), np.ascontiguousarray(numbers, np.int64), drawn)
    return drawn


@compiled
def _substream(seed: np.uint64, purpose: np.uint64) -> np.uint64:
    return output(mixed(seed + GOLDEN), purpose)


@compiled
def _uniforms(stream: np.uint64, numbers: Indices, drawn: Floats) -> None:
    for at in range(len(numbers)):
        drawn[at] = uniform(output(stream, np.uint64(numbers[at])))
