"""The least imbalance that is possible at all: bounds that no placement of whole keys can pass.

Every floor is a true lower bound, so a measured ratio near its floor cannot be improved by moving keys about;
only splitting keys can.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from adapt.core.arrays import Floats


def imbalance_floor(heavy: ArrayLike, total: float, channels: int, capacities: Floats | None = None) -> float | None:
    """The least max/mean load: the heaviest key sits somewhere, whole. max(1, N f1); None without any load.

    Args:
        heavy: Loads of the heaviest keys, falling; the heaviest one suffices where all channels are alike.
        capacities: Of each channel, where they differ, shape (channels,): loads are then utilisations, the mean that of
            all capacity together.
    """
    if total <= 0:
        return None
    each = np.ones(channels) if capacities is None else capacities
    return max(1.0, float(each.sum()) * _least_peak(np.atleast_1d(np.asarray(heavy, np.float64)), each) / total)


def r_floor(heavy: Floats, total: float, channels: int, capacities: Floats | None = None) -> float | None:
    """The least max/min load over all placements of whole keys; None where a channel must stay empty.

    The k heaviest keys fill at most k channels, so some other channel has at most an even part of what is left:
    max/min >= f1 (N - k) / (1 - f1 - ... - fk) for every k, and the largest of these is the bound. Where channels
    differ in capacity, these k are that of the heaviest key, which takes the one for which the bound is least, and the
    largest others.

    Args:
        heavy: Loads of the heaviest keys, falling; the N - 1 heaviest suffice.
        capacities: Of each channel, where they differ, shape (channels,): loads are then utilisations.
    """
    if not len(heavy):
        return None
    each = np.ones(channels) if capacities is None else capacities
    sticking = heavy[: channels - 1]
    left = total - np.concatenate(([0.0], np.cumsum(sticking)))
    peak = _least_peak(heavy, each)
    bounds = []
    for home in np.unique(each):
        others = np.cumsum(np.sort(_without(each, home)))  # of the smallest
        room = np.concatenate(([each.sum()], others[::-1]))[: len(left)]
        # Subtracting can leave a crumb where nothing is left; a channel lighter than that is empty.
        bounds.append(_over(max(float(heavy[0] / home), peak), float((left / room).min()), total))
    return min((bound for bound in bounds if bound is not None), default=None)


def r_floor_pair(tracked: Floats, residual: Floats, capacities: Floats | None = None) -> float | None:
    """The least max/min load when only the tracked keys may be placed and the rest lies where the ring puts it.

    With the heaviest key on a given channel, k keys that stick out fill at most the k channels that lack most, and
    the other tracked load, spread like water over the rest, cannot lift all of it above its level. The heaviest
    key takes the channel for which this is best.

    Args:
        tracked: Loads of the tracked keys, falling.
        residual: Load of the untracked keys of each channel, shape (channels,).
        capacities: Of each channel, where they differ, shape (channels,): loads are then utilisations.

    Returns:
        The bound; None where a channel must stay empty.
    """
    total = float(tracked.sum() + residual.sum())
    each = np.ones(len(residual)) if capacities is None else capacities
    fullest = float((residual / each).max())
    if not len(tracked):
        return _over(fullest, float((residual / each).min()), total)
    everywhere = water_level(residual, each, float(tracked.sum()))
    channels = np.unique(np.stack((residual, each)), axis=1)  # of channels that are alike, one
    peaks = np.maximum((tracked[0] + channels[0]) / channels[1], max(fullest, _least_peak(tracked, each)))
    best: float | None = None
    for at in np.argsort(peaks, kind="stable"):
        highest = float(peaks[at])
        if best is not None and highest >= best * everywhere:
            break  # no home left is better, since no level is higher
        home = int(np.flatnonzero((residual == channels[0, at]) & (each == channels[1, at]))[0])
        beside = _level_beside(tracked, np.delete(residual, home), np.delete(each, home))
        bound = _over(highest, min(everywhere, beside), total)
        best = bound if best is None or (bound is not None and bound < best) else best
    return best


def _least_peak(heavy: Floats, capacities: Floats) -> float:
    """What the most utilised channel has at least, by the keys that stick out.

    If one of the j heaviest keys is on none of the k largest channels, its channel has at least fj over the capacity of
    the next one; if none is, those k have at least the sum of the j over theirs. The best j is sought for each k; k = 0
    is the heaviest key on the largest channel.
    """
    if not len(heavy):
        return 0.0
    falling = np.sort(capacities)[::-1]
    together, together_capacity = np.cumsum(heavy), np.cumsum(falling)
    peak = float(heavy[0] / falling[0])
    for k in np.flatnonzero(np.diff(falling)) + 1:
        beyond, within = heavy / falling[k], together / together_capacity[k - 1]
        peak = max(peak, float(np.minimum(beyond, within).max()))
    return peak


def _level_beside(tracked: Floats, others: Floats, capacities: Floats) -> float:
    """The highest level that the tracked keys can give to every one of `others`, if the first key is elsewhere.

    Each number of sticking keys gives a bound; the search ends at the first that does not lower it.
    """
    left = float(tracked.sum() - tracked[0])
    level = math.inf
    for key in range(1, len(others) + 1):
        bound = highest_level(others, capacities, left, key - 1)
        if bound >= level:
            break
        level = bound
        left = max(left - float(tracked[key]), 0.0) if key < len(tracked) else 0.0
    return level


def highest_level(residual: Floats, capacities: Floats, water: float, sticking: int) -> float:
    """The highest level that `water` can give to all channels but `sticking` ones, whichever these are.

    Args:
        residual: What lies on each channel before, shape (channels,).
        capacities: How wide each is, shape (channels,).
        water: What is poured over them.
        sticking: How many are left out, fewer than there are.

    Where they are those that lack most up to a level, and the water gives that level to the rest, it is the highest.
    """
    level = water_level(*_but_for(-residual / capacities, residual, capacities, sticking), water)
    while sticking:
        lacking = np.maximum(level * capacities - residual, 0.0)
        higher = water_level(*_but_for(lacking, residual, capacities, sticking), water)
        if higher <= level * (1 + _ROUNDING):
            break
        level = higher
    return level


def _but_for(score: Floats, residual: Floats, capacities: Floats, sticking: int) -> tuple[Floats, Floats]:
    """Residual and capacity of all channels but those of highest score."""
    kept = np.argsort(-score, kind="stable")[sticking:]
    return residual[kept], capacities[kept]


def water_level(residual: Floats, capacities: Floats, water: float) -> float:
    """The level that `water` reaches over channels as wide as their capacities, on a floor of what they have."""
    rising = np.argsort(residual / capacities, kind="stable")
    levels = (water + np.cumsum(residual[rising])) / np.cumsum(capacities[rising])
    return float(levels.min())


def _without(values: Floats, value: float) -> Floats:
    """All values but one that equals `value`."""
    return np.delete(values, int(np.flatnonzero(values == value)[0]))


def _over(highest: float, lowest: float, total: float) -> float | None:
    """At least 1; None if `lowest` is nothing but what is left of `total` by rounding."""
    return max(1.0, highest / lowest) if lowest > 1e-14 * total else None


_ROUNDING = 1e-12
"""A level within this part of another is the same."""
