"""Number of salts that a hot key needs."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.keys.partitioner import Partitioner

MOST_SALTS = 1 << 14
"""Most salts; a key that needs more is better handled outside the keyed operator."""


@dataclass(frozen=True, slots=True)
class Salts:
    """Salts that bring one key within a limit."""

    placed: int  # fewest salts if the salted keys can be assigned to workers freely
    # fewest salts if an engine hashes KEY#0, KEY#1, ..., which may collide on a worker. None if more than
    # `MOST_SALTS` are needed
    hashed: int | None
    partials: int | None  # workers over which the key is then spread: partial results to merge per result


def salts_needed(key: str, load: int, total: int, partitioner: Partitioner, max_imbalance: Fraction) -> Salts:
    """Fewest salts with which a key alone overloads no worker.

    Rows get salts round-robin or at random, so each salted key has an equal share. Other keys on a worker are ignored:
    balancing them is the job of a plan.

    Args:
        load: Load of the key.
        total: Load of all keys.
        partitioner: Partitioner of the engine.
        max_imbalance: Tolerated load of a worker over the mean.
    """
    if not 0 <= load <= total or total < 1:
        raise UsageError(f"the load of a key must be between 0 and the total (got {load} of {total})")
    check_max_imbalance(max_imbalance)
    channels = partitioner.channels
    if load * channels <= max_imbalance * total:
        return Salts(1, 1, 1)
    placed = -(-load * channels * max_imbalance.denominator // (max_imbalance.numerator * total))
    at = partitioner.channels_of(pa.array([f"{key}#{salt}" for salt in range(MOST_SALTS)])).astype(np.int64)
    fullest, used = fullest_so_far(at), used_so_far(at)
    for salts in range(placed, MOST_SALTS + 1):  # fewer are not enough even with a channel each
        if load * int(fullest[salts - 1]) * channels <= max_imbalance * total * salts:
            return Salts(placed, salts, int(used[salts - 1]))
    return Salts(placed, None, None)


def check_max_imbalance(max_imbalance: Fraction) -> None:
    """Check a limit."""
    if max_imbalance < 1:
        raise UsageError(f"--max-imbalance must be at least 1 (got {float(max_imbalance):g})")


def fullest_so_far(channels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Most of the first 1, 2, ... keys on one channel."""
    order = np.argsort(channels, kind="stable")
    by_channel = channels[order]
    starts = np.flatnonzero(np.diff(by_channel, prepend=-1))
    place = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    nth = np.empty_like(place)
    nth[order] = place + 1
    return np.maximum.accumulate(nth)


def used_so_far(channels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of channels used by the first 1, 2, ... keys."""
    firsts = np.zeros(len(channels), np.int64)
    firsts[np.unique(channels, return_index=True)[1]] = 1
    return np.cumsum(firsts)
