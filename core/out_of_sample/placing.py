"""Placement of hot keys that balances past windows on average.

A key that shares its peaks with others is kept apart from them, and a key that comes and goes counts for what it was in
each window, which a placement by total counts cannot see.
"""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.keys.partitioner import Channels


def place_hottest(
    hottest: NDArray[np.int64],
    shares: Floats,
    home: Channels,
    loads: Floats,
    capacities: Floats,
    pins: NDArray[np.int64],
) -> Channels:
    """Channels of the hottest keys, for several numbers of pins.

    In order of falling share, each key goes where the mean over the windows of the 8-norm of all utilizations, a smooth
    form of the imbalance, grows least; to its own channel if that is as good. Then keys go home again where that is as
    good, the hottest first, as they carry the most state.

    Args:
        hottest: Rows of the keys, hottest first; shape (hot,).
        shares: Load of each key in each window; shape (keys, windows).
        home: Channel of each key today; shape (keys,).
        loads: Load of each channel today in each window; shape (channels, windows).
        capacities: Of each channel; shape (channels,).
        pins: How many of the hottest keys to place; shape (sizes,).

    Returns:
        The channel of each of the hottest keys by number of pins, shape (sizes, hot); keys beyond it stay.

    Source: ours; the greedy order is that of Graham 1969, the objective a sample average over windows.
    """
    out = np.empty((len(pins), len(hottest)), np.int32)
    out[:] = home[hottest]
    for at, number in enumerate(np.minimum(pins, len(hottest)).tolist()):
        _place(hottest[:number], shares, home, loads.copy(), capacities.sum() / capacities, out[at])
    return out


@inlined
def _powered(load: float) -> float:
    square = load * load
    fourth = square * square
    return fourth * fourth


@compiled
def _place(
    hottest: NDArray[np.int64], shares: Floats, home: Channels, loads: Floats, weights: Floats, out: Channels
) -> None:
    """Place the keys in turn; updates `loads` and `out`."""
    channels, windows = loads.shape
    for key in hottest:
        for window in range(windows):
            loads[home[key], window] -= shares[key, window]
    powers = np.empty_like(loads)
    sums = np.zeros(windows)
    for channel in range(channels):
        for window in range(windows):
            loads[channel, window] = max(loads[channel, window], 0.0) * weights[channel]
            powers[channel, window] = _powered(loads[channel, window])
            sums[window] += powers[channel, window]
    for at in range(len(hottest)):
        key = hottest[at]
        own, best, least = home[key], -1, 0.0
        for turn in range(channels + 1):
            channel = own if turn == 0 else turn - 1
            if turn > 0 and channel == own:
                continue
            grown = 0.0
            for window in range(windows):
                filled = _powered(loads[channel, window] + shares[key, window] * weights[channel])
                grown += max(sums[window] - powers[channel, window] + filled, 0.0) ** 0.125
            if best < 0 or grown < least * (1 - 1e-12):
                best, least = channel, grown
        for window in range(windows):
            loads[best, window] += shares[key, window] * weights[best]
            filled = _powered(loads[best, window])
            sums[window] += filled - powers[best, window]
            powers[best, window] = filled
        out[at] = best
    allowed = 0.0
    for window in range(windows):
        allowed += sums[window] ** 0.125
    for at in range(len(hottest)):
        key, channel, own = hottest[at], out[at], home[hottest[at]]
        if channel == own:
            continue
        grown = 0.0
        for window in range(windows):
            left = _powered(max(loads[channel, window] - shares[key, window] * weights[channel], 0.0))
            back = _powered(loads[own, window] + shares[key, window] * weights[own])
            grown += max(sums[window] - powers[channel, window] - powers[own, window] + left + back, 0.0) ** 0.125
        if grown > allowed:
            continue
        for window in range(windows):
            loads[channel, window] = max(loads[channel, window] - shares[key, window] * weights[channel], 0.0)
            loads[own, window] += shares[key, window] * weights[own]
            left, back = _powered(loads[channel, window]), _powered(loads[own, window])
            sums[window] += left + back - powers[channel, window] - powers[own, window]
            powers[channel, window], powers[own, window] = left, back
        out[at] = own
