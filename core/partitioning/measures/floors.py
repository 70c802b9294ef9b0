"""Floors: the best possible imbalance without splitting keys.

Every floor is a true lower bound, so moving keys cannot improve a ratio near its floor; only splitting keys can.
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.keys.partitioner import Channels


def pigeonhole_peak(falling: Floats, channels: int) -> float:
    """Lower bound of the busiest channel's load.

    Of the k N + 1 hottest keys some channel has k + 1: at least the k + 1 coldest of them.
    """
    each = np.arange((len(falling) - 1) // channels + 1)
    ends = np.concatenate(([0.0], np.cumsum(falling)))
    return float((ends[each * channels + 1] - ends[each * channels - each]).max(initial=0.0))


@compiled
def search_placements(
    loads: Floats, capacities: Floats, best: float, enough: float, most: int, out: Channels
) -> tuple[float, bool]:
    """Search for a placement whose highest load / capacity is below `best`.

    First each key goes to the channel that it fills least (Graham 1969); then every placement is tried, each key on one
    of several channels that are alike. The search ends at a placement that is `enough`, or after `most` steps. The best
    placement is left in `out`.

    Returns:
        Its highest load / capacity, or `best` without any; and whether every placement was ruled out or found.
    """
    keys, channels = len(loads), len(capacities)
    on, placed, after = np.zeros(channels), np.full(keys, -1), np.cumsum(loads[::-1])[::-1]
    for each in range(keys):
        channel = np.argmin((on + loads[each]) / capacities)
        on[channel] += loads[each]
        placed[each] = channel
    reached = _kept(loads, capacities, on, placed, best, out)
    if reached < best and reached <= enough:
        return reached, False
    best = reached
    on[:] = 0.0
    placed[:] = -1
    key, steps = 0, 0
    while key >= 0:
        steps += 1
        if steps > most:
            return best, False
        channel = placed[key]
        if channel >= 0:
            on[channel] -= loads[key]
        below = best * (1 - 1e-12)
        channel += 1
        while channel < channels:
            if on[channel] + loads[key] < below * capacities[channel]:
                seen = False
                for other in range(channel):
                    if on[other] == on[channel] and capacities[other] == capacities[channel]:
                        seen = True
                        break
                if not seen:
                    break
            channel += 1
        if channel == channels or below * capacities.sum() - on.sum() < after[key] * (1 - 1e-12):
            placed[key] = -1
            key -= 1
            continue
        on[channel] += loads[key]
        placed[key] = channel
        if key < keys - 1:
            key += 1
            continue
        reached = _kept(loads, capacities, on, placed, best, out)
        if reached < best and reached <= enough:
            return reached, False
        best = reached
    return best, True


@inlined
def _kept(loads: Floats, capacities: Floats, on: Floats, placed: Channels, best: float, out: Channels) -> float:
    """The lower of `best` and a placement's highest load / capacity; the placement is left in `out` if it is lower."""
    on[:] = 0.0  # without rounding errors of keys taken away again
    for each in range(len(loads)):
        on[placed[each]] += loads[each]
    peak = float((on / capacities).max())
    if peak < best:
        out[:] = placed
        return peak
    return best


MOST_PAIRS = 500
"""Most pairs of a key and a channel among which the best placement is searched."""

_MOST_STEPS, _MOST_LOOKS = 20_000, 4_000_000
"""Limits of that search: steps, and pairs of channels compared; a few milliseconds."""


def floor_keys(channels: int) -> int:
    """Number of hottest keys that bound the imbalance closely."""
    return max(4096, 64 * channels)


def best_possible(heavy: ArrayLike, total: float, channels: int, capacities: Floats | None = None) -> float | None:
    """Lower bound of the max/mean load with whole keys.

    None without any load. The best placement of the few hottest keys is searched (`MOST_PAIRS`). If that takes too
    long, or there are more keys, bounds are the mean, the hottest key, k + 1 of the k N + 1 hottest keys, and, if all
    loads are whole, the next multiple above the mean of their greatest common divisor. Load of keys that are not given
    may be divided.

    Args:
        heavy: Loads of the hottest keys, falling; the more, the better the bound.
        capacities: Of each channel, shape (channels,), if unequal: loads are then utilizations, the mean that of all
            capacity together.
    """
    if total <= 0:
        return None
    loads = np.atleast_1d(np.asarray(heavy, np.float64))
    loads = loads[loads > 0]
    each = np.ones(channels) if capacities is None else capacities / capacities.mean()
    mean = total / channels
    peak = max(mean, _least_peak(loads, each))
    if len(loads):
        peak = max(peak, pigeonhole_peak(loads, channels) / float(each.max()))
    is_whole = capacities is None and float(loads.sum()) == total and bool((loads == np.rint(loads)).all())
    if is_whole:
        divisor = float(np.gcd.reduce(loads.astype(np.int64))) if total < 2.0**53 else 1.0
        peak = max(peak, -(-total // (channels * divisor)) * divisor)
    few = np.ascontiguousarray(loads[: MOST_PAIRS // channels])
    if len(few) > 1 and channels > 1:
        most = min(_MOST_STEPS, _MOST_LOOKS // channels**2)
        placed = np.empty(len(few), np.int32)
        best, is_known = search_placements(few, each, math.inf, peak * (1 + 1e-12), most, placed)
        peak = max(peak, best) if is_known else peak
    return peak / mean


def r_best(heavy: Floats, total: float, channels: int, capacities: Floats | None = None) -> float | None:
    """The best possible max/min load without splitting keys.

    None if a channel must stay empty.

    The k hottest keys fill at most k channels, so some other channel has at most an even part of the rest: max/min >=
    f1 (N - k) / (1 - f1 - ... - fk) for every k, and the largest of these is the bound. With unequal capacities, these
    k channels are that of the hottest key, which takes the one for which the bound is least, and the largest others.

    Args:
        heavy: Loads of the hottest keys, falling; the N - 1 hottest suffice.
        capacities: Of each channel, shape (channels,), if unequal: loads are then utilizations.
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
        # Subtraction can leave a rounding error instead of 0; a channel lighter than that is empty.
        bounds.append(_over(max(float(heavy[0] / home), peak), float((left / room).min()), total))
    return min((bound for bound in bounds if bound is not None), default=None)


def r_best_pinned(tracked: Floats, residual: Floats, capacities: Floats | None = None) -> float | None:
    """The best possible max/min load with the same pinned keys.

    With the hottest key on a given channel, the k largest others fill at most the k channels that lack most, and the
    rest of the pinned load, spread like water over the remaining channels, cannot lift them all above its level. The
    hottest key takes the channel for which this is best.

    Args:
        tracked: Loads of the pinned keys, falling.
        residual: Load of the hashed keys of each channel, shape (channels,).
        capacities: Of each channel, shape (channels,), if unequal: loads are then utilizations.

    Returns:
        The bound; None if a channel must stay empty.
    """
    total = float(tracked.sum() + residual.sum())
    each = np.ones(len(residual)) if capacities is None else capacities
    fullest = float((residual / each).max())
    if not len(tracked):
        return _over(fullest, float((residual / each).min()), total)
    everywhere = water_level(residual, each, float(tracked.sum()))
    channels = np.unique(np.stack((residual, each)), axis=1)  # one of identical channels
    peaks = np.maximum((tracked[0] + channels[0]) / channels[1], max(fullest, _least_peak(tracked, each)))
    best: float | None = None
    for at in np.argsort(peaks, kind="stable"):
        highest = float(peaks[at])
        if best is not None and highest >= best * everywhere:
            break  # no other channel is better, since no level is higher
        home = int(np.flatnonzero((residual == channels[0, at]) & (each == channels[1, at]))[0])
        enough = 0.0 if best is None else highest / best * (1 - _ROUNDING)
        beside = _level_beside(tracked, np.delete(residual, home), np.delete(each, home), enough)
        bound = _over(highest, min(everywhere, beside), total)
        best = bound if best is None or (bound is not None and bound < best) else best
    return best


def _least_peak(heavy: Floats, capacities: Floats) -> float:
    """Lower bound of the highest utilization, by the hottest keys.

    If one of the j hottest keys is outside the k largest channels, its channel has at least fj / the capacity of the
    next one; otherwise those k have at least the sum of the j / theirs. Takes the best j for each k; k = 0 is the
    hottest key on the largest channel.
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


def _level_beside(tracked: Floats, others: Floats, capacities: Floats, enough: float) -> float:
    """The highest level that the pinned keys but the first can give to all of `others`.

    Each number of sticking keys gives a bound; the search ends at the first that does not lower it, or is below
    `enough`.
    """
    left = float(tracked.sum() - tracked[0])
    level = math.inf
    for key in range(1, len(others) + 1):
        bound = highest_level(others, capacities, left, key - 1)
        if bound >= level:
            break
        level = bound
        if level < enough:
            break
        left = max(left - float(tracked[key]), 0.0) if key < len(tracked) else 0.0
    return level


def highest_level(residual: Floats, capacities: Floats, water: float, sticking: int) -> float:
    """The highest level of `water` without any `sticking` channels.

    Args:
        residual: Load of each channel before, shape (channels,).
        capacities: Width of each channel, shape (channels,).
        water: Load to distribute.
        sticking: Number of excluded channels, fewer than all.

    The level is highest if the excluded channels lack most up to it and the water gives it to the rest.
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
    """The level that `water` reaches above the loads of channels.

    Channels are as wide as their capacities.
    """
    rising = np.argsort(residual / capacities, kind="stable")
    levels = (water + np.cumsum(residual[rising])) / np.cumsum(capacities[rising])
    return float(levels.min())


def _without(values: Floats, value: float) -> Floats:
    """All values without one that equals `value`."""
    return np.delete(values, int(np.flatnonzero(values == value)[0]))


def _over(highest: float, lowest: float, total: float) -> float | None:
    """The ratio, at least 1; None if `lowest` is only a rounding error of `total`."""
    return max(1.0, highest / lowest) if lowest > 1e-14 * total else None


_ROUNDING = 1e-12
"""Relative difference below which two levels are equal."""
