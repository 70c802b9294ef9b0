"""Least peak of whole keys: pigeonhole bound and exact search."""

import numpy as np

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
