"""Move few keys to bring every channel within its limit."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled
from adapt.core.keys.partitioner import Channels
from adapt.core.verdict.packing import packed, room_of, sticking_out


def moved_within(placed: Channels, loads: Floats, listed: int, capacities: Floats, limit: float) -> Channels | None:
    """Placement changed until every channel is within the limit; None on failure.

    Every overloaded channel first gives keys to the emptiest one: the smallest key that suffices, or, if that is more
    than twice the excess, the largest key below the excess, repeatedly. If that is not enough, the oversized keys are
    packed again, on the channels where most of their load already is, and smaller keys make room. The result moves few
    keys, not provably the fewest: that is as hard as bin packing.

    Args:
        placed: Channel of each entry of a population, shape (entries,).
        loads: Load of each, shape (entries,).
        listed: Only this many, from the first, can move; the others stand for unlisted keys.
        capacities: Capacity of each channel, shape (channels,); 1 if all are equal.
        limit: Tolerated utilization of the busiest channel over the mean utilization, from 1.

    Source: ours.
    """
    total = float(loads.sum())
    room = room_of(total, capacities, limit)
    free = np.zeros(len(loads), np.bool_)
    free[:listed] = loads[:listed] > 0
    moved, done = _relieved(placed, loads, room, free)
    if done:
        return moved
    heavy = sticking_out(loads[:listed], total, capacities, limit)
    packing = packed(loads[heavy], room)
    if packing.channels is None:
        return None
    repacked = placed.copy()
    repacked[heavy] = _at_home(packing.channels, placed[heavy], loads[heavy], capacities)
    free[heavy] = False
    moved, done = _relieved(repacked, loads, room, free)
    return moved if done else None


def _relieved(placed: Channels, loads: Floats, room: Floats, free: NDArray[np.bool_]) -> tuple[Channels, bool]:
    """Placement with free keys moved off overloaded channels, and whether every channel now fits."""
    filled = np.bincount(placed, loads, len(room)).astype(np.float64)
    givers = np.flatnonzero(filled > room)
    candidates = np.flatnonzero(free & np.isin(placed, givers))
    order = candidates[np.lexsort((candidates, -loads[candidates], placed[candidates]))]
    starts = np.searchsorted(placed[order], np.arange(len(room) + 1))
    moved = placed.copy()
    givers = givers[np.argsort(-(filled[givers] - room[givers]), kind="stable")]
    _relieve(givers, starts, order, loads, room, filled, moved)
    return moved, not bool((filled > room).any())


@compiled
def _relieve(
    givers: NDArray[np.int64],
    starts: NDArray[np.int64],
    order: NDArray[np.int64],
    loads: Floats,
    room: Floats,
    filled: Floats,
    out: Channels,
) -> None:
    """Move keys off each giver in turn, largest first, from `order[starts[giver]]` on; updates `filled` and `out`."""
    for giver in givers:
        first, end = starts[giver], starts[giver + 1]
        while filled[giver] > room[giver]:
            over = filled[giver] - room[giver]
            target = -1
            for channel in range(len(room)):
                if channel != giver and (target < 0 or room[channel] - filled[channel] > room[target] - filled[target]):
                    target = channel
            if target < 0:
                break
            fits = room[target] - filled[target]
            while first < end and (out[order[first]] != giver or loads[order[first]] > fits):
                first += 1  # room only shrinks: a key that does not fit now never will
            enough, below = -1, -1
            for at in range(first, end):
                if out[order[at]] != giver:
                    continue
                if loads[order[at]] >= over:
                    enough = at
                else:
                    below = at
                    break
            chosen = enough if enough >= 0 and (below < 0 or loads[order[enough]] <= 2 * over) else below
            if chosen < 0:
                break
            key = order[chosen]
            out[key] = target
            filled[giver] -= loads[key]
            filled[target] += loads[key]


def _at_home(packed_on: Channels, home: Channels, loads: Floats, capacities: Floats) -> Channels:
    """The same packing with equal channels permuted so that most load stays in place; shape (keys,)."""
    if not len(packed_on) or (capacities != capacities[0]).any():
        return packed_on
    channels = len(capacities)
    pairs, of = np.unique(packed_on.astype(np.int64) * channels + home, return_inverse=True)
    stays = np.bincount(of, loads)
    taken = np.full(channels, -1, np.int32)
    is_home = np.zeros(channels, np.bool_)
    for pair in pairs[np.argsort(-stays, kind="stable")].tolist():
        part, channel = divmod(pair, channels)
        if taken[part] < 0 and not is_home[channel]:
            taken[part], is_home[channel] = channel, True
    taken[taken < 0] = np.flatnonzero(~is_home)
    return np.asarray(taken[packed_on])
