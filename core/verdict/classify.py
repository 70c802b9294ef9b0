"""Classify skewed loads: balanced, fixable by pinning, needs splitting, needs another key."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.measures.floors import best_possible
from adapt.core.partitioning.measures.imbalance import max_over_mean
from adapt.core.partitioning.measures.population import Population
from adapt.core.verdict.packing import packed, room_of, sticking_out
from adapt.core.verdict.verdict_class import MOST_SPLIT, VerdictClass

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Skewed:
    """Skew of a set of key loads, and its verdict class."""

    verdict_class: VerdictClass
    imbalance: float  # busiest channel over the mean, as placed
    best_possible: float  # best possible imbalance with whole keys
    busy_keys: int  # keys with a load
    split: tuple[int, ...] = ()  # rows of the hottest keys that must be split; empty in the first two classes
    split_share: float = 0.0  # their share of the load, in [0, 1]
    proved: bool = True  # where no placement was found, whether it is certain that none exists


def classify(
    population: Population, loads: Floats, placed: Channels, capacities: Floats, limit: float
) -> Skewed | None:
    """Verdict class of placed keys; None without load.

    Balanced: imbalance <= limit. Fixable by pinning: some placement of whole keys is within the limit. Needs another
    key: fewer keys have a load than there are channels, or the fewest keys that must be split carry more than
    `MOST_SPLIT` of the load. These are the hottest ones, as many as it takes for the others to be placed within the
    limit, since a split key can fill whatever room they leave. Needs splitting: otherwise.

    Args:
        loads: Load of each entry of the population, shape (entries,).
        placed: Current channel of each, shape (entries,).
        capacities: Capacity of each channel, shape (channels,); 1 if all are equal.
        limit: Tolerated imbalance, from 1.
    """
    total, channels = float(loads.sum()), len(capacities)
    imbalance = max_over_mean(np.bincount(placed, loads, channels).astype(np.float64), capacities)
    if imbalance is None or total <= 0:
        return None
    # Other entries represent many keys, so the loads of the listed keys decide.
    listed = loads[: population.listed]
    whole = np.sort(listed[: population.frequencies.real])[::-1]  # stand-ins can be divided
    unequal = capacities if np.ptp(capacities) else None
    floor = best_possible(whole, total, channels, unequal) or 1.0
    busy = int(np.count_nonzero(listed)) + population.unlisted
    if imbalance <= limit * (1 + _ROUNDING):
        return Skewed(VerdictClass.BALANCED, imbalance, floor, busy)
    heavy = sticking_out(listed, total, capacities, limit)
    room = room_of(total, capacities, limit)
    packing = packed(listed[heavy], room)
    if packing.channels is not None:
        return Skewed(VerdictClass.PINNING, imbalance, floor, busy)
    fewest = _fewest_split(listed[heavy], room)
    share = float(listed[heavy[:fewest]].sum()) / total
    is_other = busy < channels or share > MOST_SPLIT
    split = tuple(heavy[:fewest].tolist())
    verdict_class = VerdictClass.ANOTHER_KEY if is_other else VerdictClass.SPLITTING
    return Skewed(verdict_class, imbalance, floor, busy, split, min(share, 1.0), packing.known)


def _fewest_split(heavy: Floats, room: Floats) -> int:
    """Fewest of the hottest keys to split so that the rest can be packed; at least one.

    Found by bisection: loads fall along the array, so if the rest can be packed with k keys split, it can with k + 1.
    """
    low, high = max(int(np.count_nonzero(heavy > room.max())), 1), len(heavy)
    while low < high:
        middle = (low + high) // 2
        if packed(heavy[middle:], room).channels is None:
            low = middle + 1
        else:
            high = middle
    return low
