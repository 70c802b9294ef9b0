"""Coins that depend on what they are for and on nothing else: not on batches, order or other coins."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)
_OF_53_BITS = 2.0**-53


def stream_of(seed: int, purpose: int) -> np.uint64:
    """The stream of coins of one purpose, such as an arc; any seed from 0 to 2^64 - 1."""
    return np.uint64(_stream(np.uint64(seed), np.uint64(purpose)))


def coins(stream: np.uint64, numbers: Indices) -> Floats:
    """The coin of each number in a stream, in [0, 1); shape (numbers,).

    A number's coin is the output of splitmix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators,
    OOPSLA 2014) after that many steps.
    """
    drawn = np.empty(len(numbers))
    _coins(np.uint64(stream), np.ascontiguousarray(numbers, np.int64), drawn)
    return drawn


@inlined
def _mixed(word: np.uint64) -> np.uint64:
    word = (word ^ (word >> np.uint64(30))) * _MIX1
    word = (word ^ (word >> np.uint64(27))) * _MIX2
    return word ^ (word >> np.uint64(31))


@compiled
def _stream(seed: np.uint64, purpose: np.uint64) -> np.uint64:
    return _mixed(_mixed(seed + _GOLDEN) + (purpose + np.uint64(1)) * _GOLDEN)


@compiled
def _coins(stream: np.uint64, numbers: Indices, drawn: Floats) -> None:
    for at in range(len(numbers)):
        word = _mixed(stream + (np.uint64(numbers[at]) + np.uint64(1)) * _GOLDEN)
        drawn[at] = np.float64(word >> np.uint64(11)) * _OF_53_BITS
