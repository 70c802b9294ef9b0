"""Moves of hot keys that would have balanced past windows on average.

A key that shares its peaks with others is kept apart from them, and a key that comes and goes counts for what it was in
each window, which a placement by total counts cannot see.
"""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.keys.partitioner import Channels

STATE_PRICE = 30.0
"""What moving all state costs, in gains: a key with 1/30 of the state has to gain twice as much as one without any."""

_LEAST_GAIN = 1e-7
"""Least gain of a move, as a share of the smooth imbalance at first."""

_MOST_STEPS = 3
"""At most this many moves per pin; some move a key again."""


def moved_hottest(
    hottest: NDArray[np.int64],
    shares: Floats,
    home: Channels,
    loads: Floats,
    capacities: Floats,
    pins: NDArray[np.int64],
) -> Channels:
    """Channels of the hottest keys after the best moves.

    For several numbers of pins.

    One move after the other, each the one that lowers the imbalance most for the state that it moves. The imbalance is
    the mean over the windows of the 8-norm of all utilizations, which is smooth.

    Args:
        hottest: Rows of the keys that may move, hottest first; shape (hot,).
        shares: Load of each key in each window; shape (keys, windows).
        home: Channel of each key today; shape (keys,).
        loads: Load of each channel today in each window; shape (channels, windows).
        capacities: Of each channel; shape (channels,).
        pins: Numbers of keys away from home, rising; shape (sizes,).

    Returns:
        The channel of each of the hottest keys by number of pins, shape (sizes, hot). Where no move is left that gains,
        fewer keys are away from home.

    Source: ours; a local search on a sample average over windows.
    """
    out = np.empty((len(pins), len(hottest)), np.int32)
    weights = np.asarray(capacities.sum() / capacities)
    own = np.ascontiguousarray(shares[hottest])
    _move(own, home[hottest].astype(np.int32), np.maximum(loads, 0.0) * weights[:, None], weights, pins, out)
    return out


@inlined
def _powered(load: float) -> float:
    square = load * load
    fourth = square * square
    return fourth * fourth


@inlined
def _root(power: float) -> float:
    return float(np.sqrt(np.sqrt(np.sqrt(max(power, 0.0)))))


@inlined
def _refresh(loads: Floats, powers: Floats, sums: Floats, channel: int, window: int) -> None:
    power = _powered(loads[channel, window])
    sums[window] += power - powers[channel, window]
    powers[channel, window] = power


@compiled
def _move(
    shares: Floats, home: Channels, loads: Floats, weights: Floats, pins: NDArray[np.int64], out: Channels
) -> None:
    """Move keys until each number of pins is reached; updates `loads` and `out`."""
    channels, windows = loads.shape
    keys = len(home)
    placed, bounds, state = home.copy(), np.empty(keys), np.empty(keys)
    powers, sums, left = np.empty_like(loads), np.zeros(windows), np.empty(windows)
    roots = np.empty(windows)
    emptied, lightest = np.empty(channels), np.empty(windows)
    for key in range(keys):
        state[key] = 1.0 + STATE_PRICE * shares[key].sum() / windows
    for channel in range(channels):
        for window in range(windows):
            powers[channel, window] = _powered(loads[channel, window])
            sums[window] += powers[channel, window]
    now = 0.0
    for window in range(windows):
        now += _root(sums[window])
    least, moved, steps, size = _LEAST_GAIN * now, 0, 0, 0
    while size < len(pins):
        if moved >= pins[size] or steps >= _MOST_STEPS * pins[size]:
            out[size] = placed
            size += 1
            continue
        best_key, best_channel, best_gain = -1, -1, least
        for full in range(channels):  # emptying a channel gains more than any move from it
            emptied[full] = now
            for window in range(windows):
                emptied[full] -= _root(sums[window] - powers[full, window])
        order = np.argsort(-emptied)
        for at in range(channels):
            channel = int(order[at])
            if emptied[channel] <= best_gain:
                break
            bounds[:] = 0.0
            lightest[:] = np.inf
            least_weight = np.inf
            for to in range(channels):
                if to != channel:
                    least_weight = min(least_weight, weights[to])
                    for window in range(windows):
                        lightest[window] = min(lightest[window], loads[to, window])
            for one in np.flatnonzero(placed == channel):  # to whichever channel is lightest in each window
                key = int(one)
                bounds[key] = now
                for window in range(windows):
                    taken = _powered(max(loads[channel, window] - shares[key, window] * weights[channel], 0.0))
                    filled = _powered(lightest[window] + shares[key, window] * least_weight)
                    added = (filled - _powered(lightest[window])) * (1 - 1e-9)
                    bounds[key] -= _root(sums[window] - powers[channel, window] + taken + added)
                bounds[key] /= state[key]
            while True:
                key = int(np.argmax(bounds))
                if bounds[key] <= best_gain:
                    break
                bounds[key] = 0.0
                for window in range(windows):
                    taken = _powered(max(loads[channel, window] - shares[key, window] * weights[channel], 0.0))
                    left[window] = sums[window] - powers[channel, window] + taken
                for to in range(channels):
                    if to == channel:
                        continue
                    for window in range(windows):  # apart from the sum, so that the roots are taken side by side
                        filled = _powered(loads[to, window] + shares[key, window] * weights[to])
                        roots[window] = _root(left[window] - powers[to, window] + filled)
                    after = 0.0
                    for window in range(windows):
                        after += roots[window]
                    gain = (now - after) / state[key]
                    if gain > best_gain * (1 + 1e-12):
                        best_key, best_channel, best_gain = key, to, gain
        if best_key < 0:
            break
        source = int(placed[best_key])
        now = 0.0
        for window in range(windows):
            share = shares[best_key, window]
            loads[source, window] = max(loads[source, window] - share * weights[source], 0.0)
            loads[best_channel, window] += share * weights[best_channel]
            _refresh(loads, powers, sums, source, window)
            _refresh(loads, powers, sums, best_channel, window)
            now += _root(sums[window])
        moved += int(source == home[best_key]) - int(best_channel == home[best_key])
        placed[best_key] = best_channel
        steps += 1
    for rest in range(size, len(pins)):
        out[rest] = placed
