"""Spreading keys evenly over channels, whoever has them now: a good placement to begin a search with."""

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels

_GAIN = 1e-12
"""Exchanges that change the sum of squares by no more than this part of it are rounding."""


def evenly(loads: Floats, residual: Floats) -> Channels:
    """Heaviest key first onto the channel that has least, then exchanges with the emptiest and the fullest channel.

    Every exchange lowers the sum of the squared channel loads, which, unlike max - min, also falls where several
    channels tie for the most or the least. There are ten exchanges a key at most. Ties go to the lower channel, and to
    the earlier key.

    A channel is left without load only if there are more such channels than keys with load, so only if every placement
    leaves one.

    Args:
        loads: Of each key, shape (keys,).
        residual: What lies on each channel before, shape (channels,).

    Returns:
        The channel of each key, int32, shape (keys,).
    """
    on = residual.astype(np.float64)
    placement = np.zeros(len(loads), np.int32)
    for key in np.argsort(-loads, kind="stable"):
        placement[key] = np.argmin(on)
        on[placement[key]] += loads[key]
    for _ in range(10 * len(loads) if len(on) > 1 else 0):
        if not (_exchange(placement, on, loads, int(on.argmin())) or _exchange(placement, on, loads, int(on.argmax()))):
            break
    return placement


def _exchange(placement: Channels, on: Floats, loads: Floats, channel: int) -> bool:
    """Exchange what lowers the squares most: a key of this channel or none, for a key of another or none.

    Where the channel gains d, and another one that has g more loses it, the sum of squares changes by 2 d (d - g).
    Returns False, with nothing exchanged, if it would not fall.
    """
    # Each channel has a key of no load too, which never moves: what is given for it is a move.
    at, weighs = np.append(placement, np.arange(len(on))), np.append(loads, np.zeros(len(on)))
    theirs, own = np.flatnonzero(at != channel), np.flatnonzero(at == channel)
    gained = weighs[theirs, None] - weighs[own]
    change = gained * (gained - (on[at[theirs]] - on[channel])[:, None])
    best = np.unravel_index(int(change.argmin()), change.shape)
    if change[best] >= -_GAIN * float((on * on).sum()):
        return False
    taken, given = theirs[best[0]], own[best[1]]
    other = at[taken]
    for key, to in ((taken, channel), (given, other)):
        if key < len(loads):
            placement[key] = to
    on[channel] += gained[best]
    on[other] -= gained[best]
    return True
