"""Even spread of keys over channels, to start a search from."""

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels

_GAIN = 1e-12
"""Relative change of the sum of squares that counts as rounding."""


def evenly(loads: Floats, residual: Floats) -> Channels:
    """Assign hottest keys first, then exchange keys to even out.

    Every exchange lowers the sum of squared channel loads, which, unlike max - min, also falls if several channels tie
    for the most or the least. There are at most ten exchanges per key. Ties go to the lower channel, and to the earlier
    key.

    A channel stays empty only if every assignment leaves one empty.

    Args:
        loads: Of each key, shape (keys,).
        residual: Load of each channel before, shape (channels,).

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
    """Make the exchange between this channel and another that lowers the sum of squares most.

    If the channel gains d, and another one with g more loses it, the sum of squares changes by 2 d (d - g). Returns
    False, with nothing exchanged, if it would not fall.
    """
    # Each channel also has a dummy key without load, so that a move is an exchange too.
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
