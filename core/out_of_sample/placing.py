"""Moves of hot keys that would have balanced past windows on average.

A key that shares its peaks with others is kept apart from them, and a key that comes and goes counts for what it was in
each window, which a placement by total counts cannot see.
"""

from typing import NamedTuple

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


class _Now(NamedTuple):
    """Loads as they are, and what follows from them; by channel and window, by window, or by channel."""

    loads: Floats
    weights: Floats  # by channel
    powers: Floats  # of the loads
    slopes: Floats  # power that a small share of load adds
    bows: Floats  # half of its rise by share
    curves: Floats  # at most what is to be taken from it where the highest share leaves
    highest: Floats  # at least the highest share of a key
    sums: Floats  # of the powers, by window
    rises: Floats  # of the imbalance by added power, by window
    squares: Floats  # of power that falls; with it, at least what the imbalance falls
    left: Floats  # sums without a key, by window
    roots: Floats  # by window


@inlined
def _refresh(now: _Now, channel: int, window: int) -> None:
    load, own = now.loads[channel, window], now.weights[channel]
    power, sixth = _powered(load), own * own * (load * load) ** 3
    now.sums[window] += power - now.powers[channel, window]
    now.powers[channel, window] = power
    now.slopes[channel, window], now.bows[channel, window] = 8 * own * load**7, 28 * sixth
    part = min(own * now.highest[channel, window] / load, 1.0) if load > 0 else 1.0
    curve = 28 - 56 * part if part < 0.01 else (8 * part - 1 + _powered(1 - part)) / part**2
    now.curves[channel, window] = curve * sixth


@inlined
def _leave(now: _Now, share: Floats, channel: int) -> None:
    """Fill `left`."""
    for window in range(len(share)):
        taken = _powered(max(now.loads[channel, window] - share[window] * now.weights[channel], 0.0))
        now.left[window] = now.sums[window] - now.powers[channel, window] + taken


@inlined
def _reach(now: _Now, imbalance: float, share: Floats, channel: int) -> float:
    """What a move would gain to a channel as light as the lightest in each window; the most wins of equal gains."""
    _leave(now, share, channel)
    for window in range(len(share)):
        lightest = weight = np.inf
        for to in range(len(now.weights)):
            if to != channel:
                lightest, weight = min(lightest, now.loads[to, window]), min(weight, now.weights[to])
        filled = _powered(lightest + share[window] * weight)
        imbalance -= _root(now.left[window] + (filled - _powered(lightest)) * (1 - 1e-9))
    return imbalance


@inlined
def _best(now: _Now, imbalance: float, share: Floats, state: float, channel: int, least: float) -> tuple[float, int]:
    """The gain of the best move of a key to another channel, and that one; -1 if none gains more than the least."""
    _leave(now, share, channel)
    gain, best = least, -1
    for to in range(len(now.weights)):
        if to == channel:
            continue
        for window in range(len(share)):  # apart from the sum, so that the roots are taken side by side
            filled = _powered(now.loads[to, window] + share[window] * now.weights[to])
            now.roots[window] = _root(now.left[window] - now.powers[to, window] + filled)
        after = 0.0
        for window in range(len(share)):
            after += now.roots[window]
        if (imbalance - after) / state > gain * (1 + 1e-12):
            gain, best = (imbalance - after) / state, to
    return gain, best


@inlined
def _bound(now: _Now, channel: int, shares: Floats, work: Floats, bounds: Floats) -> None:
    """At least what moves of keys from a channel gain; shares of shape (windows, keys)."""
    windows, keys = shares.shape
    bounds[:] = 0.0
    for to in range(len(now.weights)):
        if to == channel:
            continue
        work[:keys] = 0.0
        for window in range(windows):
            rise, most = now.rises[window], now.highest[channel, window]
            turn = 7 / (16 * now.sums[window])
            # Power falls by at most power * share - bend * share ** 2, as far as the highest share.
            power = now.slopes[channel, window] - now.slopes[to, window]
            bend = now.curves[channel, window] + now.bows[to, window]
            if power > 0:
                square = now.squares[channel, window] * power**2 - rise * bend * max(1 - turn * bend * most**2, 0.0)
            else:
                square = rise * min(turn * power**2, turn * (bend * most - power) ** 2 - bend)
            gain, share = rise * power, shares[window]
            for key in range(keys):
                work[key] += share[key] * (gain + square * share[key])
        for key in range(keys):
            bounds[key] = max(bounds[key], work[key])


@compiled
def _move(
    shares: Floats, home: Channels, loads: Floats, weights: Floats, pins: NDArray[np.int64], out: Channels
) -> None:
    """Move keys until each number of pins is reached; updates `loads` and `out`."""
    channels, windows = loads.shape
    keys = len(home)
    placed, state, bounds, work = home.copy(), np.empty(keys), np.empty(keys), np.empty(keys)
    tables, rows = np.zeros((6, channels, windows)), np.zeros((4, windows))
    now = _Now(
        *(loads, weights, tables[0], tables[1], tables[2], tables[3], tables[4], rows[0], rows[1], tables[5]),
        *(rows[2], rows[3]),
    )
    packed, by_window = np.empty(keys, np.int64), np.empty((windows, keys))
    emptied = np.empty(channels)
    for key in range(keys):
        state[key] = 1.0 + STATE_PRICE * shares[key].sum() / windows
        for window in range(windows):
            now.highest[home[key], window] = max(now.highest[home[key], window], shares[key, window])
    for channel in range(channels):
        for window in range(windows):
            _refresh(now, channel, window)
    imbalance = 0.0
    for window in range(windows):
        imbalance += _root(now.sums[window])
    least, moved, steps, size = _LEAST_GAIN * imbalance, 0, 0, 0
    while size < len(pins):
        if moved >= pins[size] or steps >= _MOST_STEPS * pins[size]:
            out[size] = placed
            size += 1
            continue
        last = np.zeros(channels, np.int64)  # keys by channel end there
        for key in range(keys):
            last[placed[key]] += 1
        last = np.cumsum(last)
        first = last.copy()
        for key in range(keys - 1, -1, -1):
            first[placed[key]] -= 1
            packed[first[placed[key]]] = key
            for window in range(windows):
                by_window[window, first[placed[key]]] = shares[key, window]
        for window in range(windows):
            now.rises[window] = _root(now.sums[window]) / (8 * now.sums[window])
        for full in range(channels):  # emptying a channel gains more than any move from it
            emptied[full] = imbalance
            for window in range(windows):
                power, whole = now.powers[full, window], now.sums[window]
                root = _root(whole - power)
                emptied[full] -= root
                now.squares[full, window] = 0.0
                if power > 1e-12 * whole:
                    fall = _root(whole) - root
                    now.squares[full, window] = max(fall / power - now.rises[window], 0.0) / power
        order = np.argsort(-emptied)
        best_key, best_channel, best_gain = -1, -1, least
        for at in range(channels):
            channel = int(order[at])
            if emptied[channel] <= best_gain:
                break
            begin, end = first[channel], last[channel]
            _bound(now, channel, by_window[:, begin:end], work, bounds[begin:end])
            for row in range(begin, end):
                key = packed[row]
                if (bounds[row] * (1 + 1e-9) + 1e-12 * imbalance) / state[key] > best_gain * (1 - 1e-12):
                    gain, to = _best(now, imbalance, shares[key], state[key], channel, best_gain * (1 - 2e-12))
                    is_better = gain > best_gain * (1 + 1e-12)
                    if to >= 0 and not is_better and best_key >= 0 and placed[best_key] == channel:
                        mine = _reach(now, imbalance, shares[key], channel) / state[key]
                        is_better = mine > _reach(now, imbalance, shares[best_key], channel) / state[best_key]
                    if is_better:
                        best_key, best_channel, best_gain = key, to, gain
        if best_key < 0:
            break
        source = int(placed[best_key])
        imbalance = 0.0
        for window in range(windows):
            share = shares[best_key, window]
            now.highest[best_channel, window] = max(now.highest[best_channel, window], share)
            loads[source, window] = max(loads[source, window] - share * weights[source], 0.0)
            loads[best_channel, window] += share * weights[best_channel]
            _refresh(now, source, window)
            _refresh(now, best_channel, window)
            imbalance += _root(now.sums[window])
        moved += int(source == home[best_key]) - int(best_channel == home[best_key])
        placed[best_key] = best_channel
        steps += 1
    for rest in range(size, len(pins)):
        out[rest] = placed
