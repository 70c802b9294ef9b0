"""Find a placement of whole keys within a limit."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.measures.floors import pigeonhole_peak, search_placements

MOST_STEPS = 500_000
"""Steps of the exact search: a few hundredths of a second."""

MOST_LOOKS = 100_000_000
"""Channel pairs that the search may compare; a step may compare all pairs."""

MOST_SEARCHED = 400
"""Above this many oversized keys, only the two greedy placements are tried."""

MOST_TRIED = 500_000_000
"""Above this many pairs of key and channel, no placement is tried."""

_ROUNDING = 1e-9
"""Relative tolerance of the room of a channel."""


def room_of(total: float, capacities: Floats, limit: float) -> Floats:
    """Load allowed on each channel, shape (channels,): `limit` times a fair share."""
    return np.asarray(limit * total * capacities / capacities.sum() * (1 + _ROUNDING))


def sticking_out(loads: Floats, total: float, capacities: Floats, limit: float) -> NDArray[np.int64]:
    """Rows of the oversized keys, which decide whether a placement exists.

    They come largest first. Any other key fits on the least utilized channel: that channel is at most at the mean
    utilization, and the key adds no more than the limit allows above it. So all keys can be placed within the limit if
    and only if these can.
    """
    allowed = (limit - 1) * total * float(capacities.min()) / float(capacities.sum())
    heavy = np.flatnonzero(loads > allowed)
    return np.asarray(heavy[np.argsort(-loads[heavy], kind="stable")])


@dataclass(frozen=True, slots=True)
class Packing:
    """Outcome of a search for a placement."""

    channels: Channels | None  # channel of each key, shape (keys,); None if no placement was found
    known: bool = True  # where none was found, whether it is certain that none exists


def packed(loads: Floats, room: Floats) -> Packing:
    """Placement of keys within the room of each channel, if found.

    Args:
        loads: Loads of the keys, falling; shape (keys,).
        room: Room of each channel, shape (channels,).

    Source: largest first to the emptiest channel (Graham 1969) and best-fit decreasing; then exhaustive search, largest
    key first, trying only one of several channels with the same room left.
    """
    if not len(loads):
        return Packing(np.zeros(0, np.int32))
    widest = float(room.max())
    if float(loads[0]) > widest or pigeonhole_peak(loads, len(room)) > widest * (1 + _ROUNDING):
        return Packing(None)
    if len(loads) * len(room) > MOST_TRIED:
        return Packing(None, known=False)
    found = np.full(len(loads), -1, np.int32)
    if any(_largest_first(loads, room, is_tight, found) for is_tight in (False, True)):
        return Packing(found)
    if len(loads) > MOST_SEARCHED:
        return Packing(None, known=False)
    most = max(min(MOST_STEPS, MOST_LOOKS // len(room) ** 2), 1)
    full = 1 + 1e-11
    reached, is_known = search_placements(loads, room, full, full, most, found)
    return Packing(found) if reached < full else Packing(None, known=is_known)


@compiled
def _largest_first(loads: Floats, room: Floats, is_tight: bool, out: Channels) -> bool:
    """Place each key where most room is left, or if `is_tight` where it fits best; whether all fit."""
    left = room.copy()
    for key in range(len(loads)):
        best = -1
        for channel in range(len(left)):
            if left[channel] >= loads[key] and (
                best < 0 or (left[channel] < left[best] if is_tight else left[channel] > left[best])
            ):
                best = channel
        if best < 0:
            return False
        left[best] -= loads[key]
        out[key] = best
    return True
