"""The least imbalance that is possible at all: bounds that no placement of whole keys can pass.

Every floor is a true lower bound, so a measured ratio near its floor cannot be improved by moving keys about;
only splitting keys can.
"""

import math

import numpy as np

from adapt.core.resources.functions import Floats


def imbalance_floor(heaviest: float, total: float, channels: int) -> float | None:
    """The least max/mean load: the heaviest key sits somewhere, whole. max(1, N f1); None without any load."""
    return max(1.0, channels * heaviest / total) if total > 0 else None


def r_floor(heavy: Floats, total: float, channels: int) -> float | None:
    """The least max/min load over all placements of whole keys; None where a channel must stay empty.

    The k heaviest keys fill at most k channels, so some other channel has at most an even part of what is left:
    max/min >= f1 (N - k) / (1 - f1 - ... - fk) for every k, and the largest of these is the bound.

    Args:
        heavy: Loads of the heaviest keys, falling; the N - 1 heaviest suffice.
        total: The load of all keys.
        channels: N.
    """
    sticking = heavy[: channels - 1]
    left = total - np.concatenate(([0.0], np.cumsum(sticking)))
    level = float((left / (channels - np.arange(len(left)))).min())
    # Subtracting can leave a crumb where nothing is left; a channel lighter than that is empty.
    return _over(float(heavy[0]), level, total) if len(heavy) else None


def r_floor_pair(tracked: Floats, residual: Floats) -> float | None:
    """The least max/min load when only the tracked keys may be placed and the rest lies where the ring puts it.

    With the heaviest key on a given channel, k keys that stick out fill at most the k channels that lack most, and
    the other tracked load, spread like water over the rest, cannot lift all of it above its level. The heaviest
    key takes the channel for which this is best.

    Args:
        tracked: Loads of the tracked keys, falling.
        residual: Load of the untracked keys of each channel, shape (channels,).

    Returns:
        The bound; None where a channel must stay empty.
    """
    total = float(tracked.sum() + residual.sum())
    if not len(tracked):
        return _over(float(residual.max()), float(residual.min()), total)
    everywhere = _water_level(np.sort(residual), float(tracked.sum()))
    bounds = [
        _over(
            max(float(tracked[0] + home), float(residual.max())),
            min(everywhere, _level_beside(tracked, _without(residual, float(home)))),
            total,
        )
        for home in np.unique(residual)
    ]
    known = [bound for bound in bounds if bound is not None]
    return min(known) if known else None


def _level_beside(tracked: Floats, others: Floats) -> float:
    """The highest level that the tracked keys can give to every one of `others`, if the first key is elsewhere.

    Each number of sticking keys gives a bound; the search ends at the first that does not lower it.
    """
    rising = np.sort(others)
    left = float(tracked.sum() - tracked[0])
    level = math.inf
    for key in range(1, len(rising) + 1):
        bound = _water_level(rising[key - 1 :], left)
        if bound >= level:
            break
        level = bound
        left = max(left - float(tracked[key]), 0.0) if key < len(tracked) else 0.0
    return level


def _water_level(rising: Floats, water: float) -> float:
    """The level that `water` reaches over a floor of the given heights, lowest first."""
    levels = (water + np.cumsum(rising)) / np.arange(1, len(rising) + 1)
    return float(levels.min())


def _without(values: Floats, value: float) -> Floats:
    """All values but one that equals `value`."""
    return np.delete(values, int(np.flatnonzero(values == value)[0]))


def _over(highest: float, lowest: float, total: float) -> float | None:
    """At least 1; None if `lowest` is nothing but what is left of `total` by rounding."""
    return max(1.0, highest / lowest) if lowest > 1e-14 * total else None
