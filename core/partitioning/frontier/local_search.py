"""Local search: moves and swaps of keys, priced by state and pins."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import inlined
from adapt.core.keys.partitioner import Channels

_GAIN = 1e-10
"""Relative fall of a utilization that counts as rounding."""

_FREE = 1e-3
"""Part of the budgets that every change counts as, so that changes at no cost compare too."""


@inlined
def price_of(key: int, channel: int, state: Floats, home: Channels, placed: Channels) -> tuple[float, float]:
    """State and pins that a move takes; below 0 towards home."""
    if placed[key] == home[key]:
        return state[key], 1.0
    if channel == home[key]:
        return -state[key], -1.0
    return 0.0, 0.0


@inlined
def fits(cost: float, pins: float, left: Floats) -> bool:
    """Whether the budgets have room for a change."""
    return (cost <= 0 or cost <= left[0]) and (pins <= 0 or pins <= left[1])


@inlined
def move(
    key: int, channel: int, loads: Floats, state: Floats, home: Channels, on: Floats, left: Floats, placed: Channels
) -> None:
    """Move a key to another channel; updates `on`, `left` and `placed`."""
    cost, pins = price_of(key, channel, state, home, placed)
    left[0] -= cost
    left[1] -= pins
    on[placed[key]] -= loads[key]
    on[channel] += loads[key]
    placed[key] = channel


@inlined
def busiest(on: Floats, capacities: Floats) -> int:
    """The channel of highest utilization; the lowest of several."""
    at = 0
    for channel in range(len(on)):
        if on[channel] / capacities[channel] > on[at] / capacities[at]:
            at = channel
    return at


@inlined
def climb(
    loads: Floats,
    state: Floats,
    home: Channels,
    capacities: Floats,
    most: Floats,
    target: float,
    work: NDArray[np.int64],
    on: Floats,
    left: Floats,
    placed: Channels,
) -> None:
    """Relieve the busiest channel by moves and swaps within the budgets.

    A swap is made where no move helps. Each change lowers the busiest channel without raising another as high. The
    change of most gain for its part of the budgets is made; utilizations below the target count as the target.

    Args:
        loads: Of each key, falling.
        most: Budgets of state and of pins, in all.
        work: Comparisons left; the search ends when they are used up.
        on: Load of each channel.
        left: What is left of both budgets.
    """
    keys, channels = len(loads), len(on)
    while work[0] > 0:
        full = busiest(on, capacities)
        top = on[full] / capacities[full]
        best, widest, leaving, coming, to = 0.0, 0.0, -1, -1, -1
        for swaps in range(2):
            for key in range(keys):
                if placed[key] != full or top <= target:
                    continue
                # In return for a key comes a lighter one, or from a channel none, which is numbered after the keys.
                first, last = (key + 1, keys) if swaps == 1 else (keys, keys + channels)
                work[0] -= last - first
                for other in range(first, last):
                    channel = placed[other] if swaps == 1 else other - keys
                    shifted = loads[key] - (loads[other] if swaps == 1 else 0.0)
                    if channel == full or shifted <= 0:
                        continue
                    peak = max((on[full] - shifted) / capacities[full], (on[channel] + shifted) / capacities[channel])
                    if peak >= top * (1 - _GAIN):
                        continue
                    cost, pins = price_of(key, channel, state, home, placed)
                    if swaps == 1:
                        back, unpinned = price_of(other, full, state, home, placed)
                        cost, pins = cost + back, pins + unpinned
                    if not fits(cost, pins, left):
                        continue
                    part = max(cost / most[0] if cost > 0 else 0.0, pins / most[1] if pins > 0 else 0.0)
                    score = (top - max(peak, target)) / (part + _FREE)
                    if score > best * (1 + _GAIN) or (score >= best * (1 - _GAIN) and top - peak > widest):
                        best, widest, leaving, coming, to = score, top - peak, key, other, channel
            if leaving >= 0:
                break
        if leaving < 0:
            return
        move(leaving, to, loads, state, home, on, left, placed)
        if coming < keys:
            move(coming, full, loads, state, home, on, left, placed)


@inlined
def send_home(
    loads: Floats, state: Floats, home: Channels, capacities: Floats, on: Floats, left: Floats, placed: Channels
) -> None:
    """Send pinned keys home, hottest first, unless that raises the maximum."""
    top = (on / capacities).max() * (1 + _GAIN / 10)
    sent = True
    while sent:
        sent = False
        for key in range(len(loads)):
            there = home[key]
            if placed[key] != there and (on[there] + loads[key]) / capacities[there] <= top:
                move(key, there, loads, state, home, on, left, placed)
                sent = True


@inlined
def keep_to_budgets(
    loads: Floats, state: Floats, home: Channels, capacities: Floats, on: Floats, left: Floats, placed: Channels
) -> None:
    """Send home pinned keys until both budgets are kept.

    Those of least harm for what they take go first. Harm is the rise of the sum of squared loads / capacities, per
    state if too much is moved, else per pin.
    """
    while left[0] < 0 or left[1] < 0:
        least, chosen = np.inf, -1
        for key in range(len(loads)):
            here, there = placed[key], home[key]
            if here == there:
                continue
            apart = on[there] / capacities[there] - on[here] / capacities[here]
            harm = loads[key] * (2 * apart + loads[key] * (1 / capacities[there] + 1 / capacities[here]))
            if left[0] < 0:
                harm = harm / state[key] if state[key] > 0 else np.inf
            if chosen < 0 or harm < least:
                least, chosen = harm, key
        move(chosen, home[chosen], loads, state, home, on, left, placed)
