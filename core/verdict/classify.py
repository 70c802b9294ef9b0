"""Into which class of verdict skewed loads fall."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.measures.floors import imbalance_floor
from adapt.core.partitioning.measures.imbalance import max_over_mean
from adapt.core.partitioning.measures.population import Population
from adapt.core.verdict.packing import packed, room_of, sticking_out
from adapt.core.verdict.verdict_class import MOST_SPLIT, Cure

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Skewed:
    """The loads of keys, and what would even them out.

    Attributes:
        imbalance: The fullest channel over the average, as placed.
        imbalance_floor: No placement of whole keys has less.
        busy_keys: Keys with a load.
        split: The heaviest keys, by row, that must be split; none in the first two classes.
        split_share: What they carry, in [0, 1].
        proved: Whether no placement is known to exist where none was found.
    """

    cure: Cure
    imbalance: float
    imbalance_floor: float
    busy_keys: int
    split: tuple[int, ...] = ()
    split_share: float = 0.0
    proved: bool = True


def classify(
    population: Population, loads: Floats, placed: Channels, capacities: Floats, limit: float
) -> Skewed | None:
    """The class of keys placed so; None where there is no load.

    Even already: imbalance <= limit. Placement cures it: some placement of whole keys keeps the limit, be it that the
    imbalance_floor does. Else another key is needed where fewer keys have a load than there are channels, or where the
    fewest keys that must be split carry more than `MOST_SPLIT` of the load: these are the heaviest, as many as it takes
    for the others to be placed within the limit, since a key that is split can be poured into what room they leave.
    Otherwise splitting them cures it.

    Args:
        population: The keys; those that were not listed have stand-ins.
        loads: Of each key of the population, shape (keys,).
        placed: The channel of each now, shape (keys,).
        capacities: Of each channel, shape (channels,); 1 where all are alike.
        limit: The most imbalance that will do, from 1.
    """
    total, channels = float(loads.sum()), len(capacities)
    imbalance = max_over_mean(np.bincount(placed, loads, channels).astype(np.float64), capacities)
    if imbalance is None or total <= 0:
        return None
    # Stand-ins are many keys each; the loads of listed ones decide, with that of the heaviest key that is not listed.
    listed = loads[: population.listed]
    heaviest = np.sort(listed)[::-1][:channels]
    floor = imbalance_floor(heaviest, total, channels, capacities) or 1.0
    busy = int(np.count_nonzero(listed)) + population.unlisted
    if imbalance <= limit * (1 + _ROUNDING):
        return Skewed(Cure.NONE_NEEDED, imbalance, floor, busy)
    heavy = sticking_out(listed, total, capacities, limit)
    room = room_of(total, capacities, limit)
    packing = packed(listed[heavy], room)
    if packing.channels is not None:
        return Skewed(Cure.PLACEMENT, imbalance, floor, busy)
    fewest = _fewest_split(listed[heavy], room)
    share = float(listed[heavy[:fewest]].sum()) / total
    is_other = busy < channels or share > MOST_SPLIT
    split = tuple(heavy[:fewest].tolist())
    return Skewed(
        Cure.ANOTHER_KEY if is_other else Cure.SPLITTING, imbalance, floor, busy, split, min(share, 1.0), packing.known
    )


def _fewest_split(heavy: Floats, room: Floats) -> int:
    """How many of the heaviest keys must be split for the rest to be packed; at least one.

    Keys weigh less the further one goes, and so do the rest: what is packed with some split is with more.
    """
    low, high = max(int(np.count_nonzero(heavy > room.max())), 1), len(heavy)
    while low < high:
        middle = (low + high) // 2
        if packed(heavy[middle:], room).channels is None:
            low = middle + 1
        else:
            high = middle
    return low
