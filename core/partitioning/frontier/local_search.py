"""Local search: moves and swaps of keys, priced by state and pins."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import inlined
from adapt.core.keys.partitioner import Channels

_GAIN = 1e-10
"""Relative fall of a utilization that counts as rounding."""

_FREE = 1e-3
"""Part of the budgets that every change counts as, so that changes at no cost compare too."""


class Step(NamedTuple):
    """Keys by falling load, channels of today, and both budgets."""

    loads: Floats
    state: Floats
    home: Channels
    residual: Floats
    capacities: Floats
    most: Floats


class Placed(NamedTuple):
    """A placement that changes.

    Channel of each key, load of each channel, and what is left of both budgets.
    """

    of: Channels
    on: Floats
    left: Floats


@inlined
def price_of(step: Step, placed: Placed, key: int, channel: int) -> tuple[float, float]:
    """State and pins that a move takes; below 0 towards home."""
    if placed.of[key] == step.home[key]:
        return step.state[key], 1.0
    if channel == step.home[key]:
        return -step.state[key], -1.0
    return 0.0, 0.0


@inlined
def fits(cost: float, pins: float, left: Floats) -> bool:
    """Whether the budgets have room for a change."""
    return (cost <= 0 or cost <= left[0]) and (pins <= 0 or pins <= left[1])


@inlined
def move(step: Step, placed: Placed, key: int, channel: int) -> None:
    """Move a key to another channel."""
    cost, pins = price_of(step, placed, key, channel)
    placed.left[0] -= cost
    placed.left[1] -= pins
    placed.on[placed.of[key]] -= step.loads[key]
    placed.on[channel] += step.loads[key]
    placed.of[key] = channel


@inlined
def busiest(on: Floats, capacities: Floats) -> int:
    """The channel of highest utilization; the lowest of several."""
    at = 0
    for channel in range(len(on)):
        if on[channel] / capacities[channel] > on[at] / capacities[at]:
            at = channel
    return at


@inlined
def climb(step: Step, placed: Placed, target: float, work: NDArray[np.int64]) -> None:
    """Relieve the busiest channel by moves and swaps within the budgets.

    A swap is made where no move helps. Each change lowers the busiest channel without raising another as high. The
    change of most gain for its part of the budgets is made; utilizations below the target count as the target. Then
    keys that are not needed elsewhere go home.

    Args:
        work: Comparisons left; the search ends when they are used up.
    """
    loads, capacities, most, on = step.loads, step.capacities, step.most, placed.on
    keys, channels = len(loads), len(on)
    while work[0] > 0:
        full = busiest(on, capacities)
        top = on[full] / capacities[full]
        best, widest, leaving, coming, to = 0.0, 0.0, -1, -1, -1
        for swaps in range(2):
            for key in range(keys):
                if placed.of[key] != full or top <= target:
                    continue
                # In return for a key comes a lighter one, or from a channel none, which is numbered after the keys.
                first, last = (key + 1, keys) if swaps == 1 else (keys, keys + channels)
                work[0] -= last - first
                for other in range(first, last):
                    channel = placed.of[other] if swaps == 1 else other - keys
                    shifted = loads[key] - (loads[other] if swaps == 1 else 0.0)
                    if channel == full or shifted <= 0:
                        continue
                    peak = max((on[full] - shifted) / capacities[full], (on[channel] + shifted) / capacities[channel])
                    if peak >= top * (1 - _GAIN):
                        continue
                    cost, pins = price_of(step, placed, key, channel)
                    if swaps == 1:
                        back, unpinned = price_of(step, placed, other, full)
                        cost, pins = cost + back, pins + unpinned
                    if not fits(cost, pins, placed.left):
                        continue
                    part = max(cost / most[0] if cost > 0 else 0.0, pins / most[1] if pins > 0 else 0.0)
                    score = (top - max(peak, target)) / (part + _FREE)
                    if score > best * (1 + _GAIN) or (score >= best * (1 - _GAIN) and top - peak > widest):
                        best, widest, leaving, coming, to = score, top - peak, key, other, channel
            if leaving >= 0:
                break
        if leaving < 0:
            break
        move(step, placed, leaving, to)
        if coming < keys:
            move(step, placed, coming, full)
    _send_home(step, placed)


@inlined
def _send_home(step: Step, placed: Placed) -> None:
    """Send pinned keys home, hottest first, unless that raises the maximum."""
    top = (placed.on / step.capacities).max() * (1 + _GAIN / 10)
    sent = True
    while sent:
        sent = False
        for key in range(len(step.loads)):
            there = step.home[key]
            if placed.of[key] != there and (placed.on[there] + step.loads[key]) / step.capacities[there] <= top:
                move(step, placed, key, there)
                sent = True


@inlined
def keep_to_budgets(step: Step, placed: Placed) -> None:
    """Send home pinned keys until both budgets are kept.

    Those of least harm for what they take go first. Harm is the rise of the sum of squared loads / capacities, per
    state if too much is moved, else per pin.
    """
    capacities, left = step.capacities, placed.left
    while left[0] < 0 or left[1] < 0:
        least, chosen = np.inf, -1
        for key in range(len(step.loads)):
            here, there = placed.of[key], step.home[key]
            if here == there:
                continue
            apart = placed.on[there] / capacities[there] - placed.on[here] / capacities[here]
            harm = step.loads[key] * (2 * apart + step.loads[key] * (1 / capacities[there] + 1 / capacities[here]))
            if left[0] < 0:
                harm = harm / step.state[key] if step.state[key] > 0 else np.inf
            if chosen < 0 or harm < least:
                least, chosen = harm, key
        move(step, placed, chosen, step.home[chosen])
