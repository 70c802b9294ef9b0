"""Pareto front of channels: not undercut in every resource."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import inlined
from adapt.core.partitioning.constructions.placement import Records


@inlined
def unbeaten(step: Any, channels: Records) -> NDArray[np.int64]:
    """Channels that no other undercuts in every resource.

    One channel with fewer than two resources.

    The rho of a key on a channel (Eqs. 19, 20) never falls as the loads of the channel rise, so a key has its least
    utility on its current channel or on one of these.
    """
    first = np.empty(len(channels))
    for channel in range(len(channels)):
        first[channel] = channels[channel].loads[0]
    if step.resources < 2:
        return np.full(1, np.argmin(first), np.int64)
    found, kept = 0, np.empty(len(channels), np.int64)
    for channel in np.argsort(first, kind="mergesort"):
        if not _undercut(channels, channel, kept[:found]):
            kept[found] = channel
            found += 1
    return kept[:found]


@inlined
def _undercut(channels: Records, channel: int, emptier: NDArray[np.int64]) -> bool:
    """Whether a channel that is emptier in the first resource is no fuller in the others."""
    loads, at = channels[channel].loads, len(emptier) - 1
    while at >= 0 and (channels[emptier[at]].loads[1] > loads[1] or channels[emptier[at]].loads[2] > loads[2]):
        at -= 1
    return at >= 0
