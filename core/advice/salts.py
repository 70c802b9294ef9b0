"""How many salts a heavy key needs: into how many keys it must be split so that it no longer overfills a channel."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.keys.partitioner import Partitioner

MOST_SALTS = 1 << 14
"""A key with more salts than this is better left out of the keyed part of a job."""


@dataclass(frozen=True, slots=True)
class Salts:
    """What it takes to bring one key under a limit.

    Attributes:
        placed: The least salts that do where salted keys can be put on channels of one's choice.
        hashed: The least that do where an engine hashes KEY#0, KEY#1, ...: some of these meet on one channel. None if
            none up to `MOST_SALTS` do.
        merged: The channels on which the key then lies: so many partial results are to be merged for each of its own.
    """

    placed: int
    hashed: int | None
    merged: int | None


def salts_needed(key: str, load: int, total: int, partitioner: Partitioner, tolerance: Fraction) -> Salts:
    """The least salts with which a key alone puts no channel above `tolerance` times the mean load.

    Rows take salts in turn or at random, so that each salted key has an equal part of them. What else lies on a channel
    is not counted: to even that out is for a plan.

    Args:
        load: What it weighs.
        total: What all keys weigh.
        partitioner: The engine's own, over N channels.
        tolerance: T: the most load of a channel over the mean.

    Raises:
        UsageError: the load is not in [0, total] or the total not above 0, or T is below 1.
    """
    if not 0 <= load <= total or total < 1 or tolerance < 1:
        raise UsageError(
            f"a load of {load} in {total} within {float(tolerance):g} times the mean: a key weighs no more than all do,"
            " and a limit is 1 or more"
        )
    channels = partitioner.channels
    if load * channels <= tolerance * total:
        return Salts(1, 1, 1)
    placed = -(-load * channels * tolerance.denominator // (tolerance.numerator * total))
    at = partitioner.channels_of(pa.array([f"{key}#{salt}" for salt in range(MOST_SALTS)])).astype(np.int64)
    fullest, used = fullest_so_far(at), used_so_far(at)
    for salts in range(placed, MOST_SALTS + 1):  # fewer do not even if each has a channel of its own
        if load * int(fullest[salts - 1]) * channels <= tolerance * total * salts:
            return Salts(placed, salts, int(used[salts - 1]))
    return Salts(placed, None, None)


def fullest_so_far(channels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The most of the first 1, 2, ... keys that lie on one channel; shape as `channels`."""
    order = np.argsort(channels, kind="stable")
    by_channel = channels[order]
    starts = np.flatnonzero(np.diff(by_channel, prepend=-1))
    place = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    nth = np.empty_like(place)
    nth[order] = place + 1
    return np.maximum.accumulate(nth)


def used_so_far(channels: NDArray[np.int64]) -> NDArray[np.int64]:
    """The channels on which the first 1, 2, ... keys lie; shape as `channels`."""
    firsts = np.zeros(len(channels), np.int64)
    firsts[np.unique(channels, return_index=True)[1]] = 1
    return np.cumsum(firsts)
