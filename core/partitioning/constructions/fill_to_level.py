"""Water-filling: keys spread over partly filled channels, up to one level."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import inlined
from adapt.core.keys.partitioner import Channels

_TIE = 1e-12
"""Relative tolerance of ties; utilizations by unequal capacity are rounded."""

_HALVINGS = 50
"""Halvings in the search for the level, down to the last digits of a load."""


@inlined
def fill_to_level(
    loads: Floats, residual: Floats, capacities: Floats, uproot: bool, first: int, last: int, channel_of: Channels
) -> None:
    """Level the keys from `first` to `last`.

    On top of the hashed load and of the keys before them.
    """
    full = residual.copy()
    for key in range(last):
        full[channel_of[key]] += loads[key]
    given, on = np.empty(len(loads), np.bool_), np.empty_like(full)
    held = np.empty(len(full), np.int64)  # number of the keys that each channel keeps
    alike = (capacities == 1).all()
    level = _level_of(loads, full, capacities, first, last, channel_of, given, on, held)
    _give(loads, full, capacities, first, last, channel_of, level, given, on, held)
    _give_above(loads, residual, capacities, uproot, first, last, channel_of, level, given, on, held)
    for key in range(first, last):
        if given[key]:
            lightest = _lightest(on, capacities, alike, loads[key])
            channel_of[key] = lightest
            on[lightest] += loads[key]
    _repair(loads, capacities, alike, first, last, channel_of, on)


@inlined
def _lightest(on: Floats, capacities: Floats, alike: bool, load: float) -> int:
    """The channel of least utilization with a load; the lowest of several."""
    if alike:
        return int(np.argmin(on))
    least, lightest = np.inf, 0
    for channel in range(len(on)):
        utilized = (on[channel] + load) / capacities[channel]
        if utilized < least * (1 - _TIE):
            least, lightest = utilized, channel
    return lightest


@inlined
def _level_of(
    loads: Floats,
    full: Floats,
    capacities: Floats,
    first: int,
    last: int,
    channel_of: Channels,
    given: NDArray[np.bool_],
    on: Floats,
    held: NDArray[np.int64],
) -> float:
    """The utilization to which the given keys just fill the channels below: the mean, if no channel exceeds it."""
    total = full.sum()
    low: float = 0.0
    high: float = total / capacities.sum()
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        _give(loads, full, capacities, first, last, channel_of, middle, given, on, held)
        filled = 0.0
        for channel in range(len(on)):
            filled += max(on[channel], middle * capacities[channel])
        if filled > total:
            high = middle
        else:
            low = middle
    return high


@inlined
def _give(
    loads: Floats,
    full: Floats,
    capacities: Floats,
    first: int,
    last: int,
    channel_of: Channels,
    level: float,
    given: NDArray[np.bool_],
    on: Floats,
    held: NDArray[np.int64],
) -> None:
    """Choose the keys to give away, hottest first, leaving each channel at or above the level."""
    on[:] = full
    held[:] = 0
    for key in range(first, last):
        channel = channel_of[key]
        given[key] = on[channel] - loads[key] >= level * capacities[channel]
        if given[key]:
            on[channel] -= loads[key]
        else:
            held[channel] += 1


@inlined
def _give_above(
    loads: Floats,
    residual: Floats,
    capacities: Floats,
    uproot: bool,
    first: int,
    last: int,
    channel_of: Channels,
    level: float,
    given: NDArray[np.bool_],
    on: Floats,
    held: NDArray[np.int64],
) -> None:
    """Let channels above the inevitable maximum also give small keys that bring them nearer to the level.

    Below the ceiling that the hottest key or the hashed load makes inevitable, such moves gain nothing. Nor does moving
    the only key of a channel, which would exceed the level elsewhere too; with unequal capacities it might not, so with
    `uproot` each key that alone puts its channel above the ceiling is given.
    """
    most = loads.max()
    home = _lightest(residual, capacities, False, most)
    ceiling = max(level, (residual / capacities).max(), (most + residual[home]) / capacities[home])
    for key in range(last - 1, first - 1, -1):
        channel = channel_of[key]
        above = on[channel] - level * capacities[channel]
        if given[key] or on[channel] <= ceiling * capacities[channel]:
            continue
        nearer = held[channel] > 1 and loads[key] < 2 * above
        if nearer or (uproot and residual[channel] + loads[key] > ceiling * capacities[channel]):
            on[channel] -= loads[key]
            held[channel] -= 1
            given[key] = True


@inlined
def _repair(
    loads: Floats, capacities: Floats, alike: bool, first: int, last: int, channel_of: Channels, on: Floats
) -> None:
    """Move the key of most gain to the least utilized channel, not past the giver; at most once per channel.

    The gain is half the fall of the sum of squared loads / capacities.
    """
    gap, width = np.empty(len(on)), np.empty(len(on))
    for _ in range(len(on)):
        lightest = _lightest(on, capacities, alike, 0.0)
        for channel in range(len(on)):
            gap[channel] = on[channel] / capacities[channel] - on[lightest] / capacities[lightest]
            width[channel] = (1 / capacities[channel] + 1 / capacities[lightest]) / 2
        best, chosen = 0.0, -1
        for key in range(first, last):
            giver = channel_of[key]
            narrows = gap[giver] - loads[key] * width[giver]
            if loads[key] * width[giver] <= gap[giver] / 2 and loads[key] * narrows > best:
                best, chosen = loads[key] * narrows, key
        if chosen < 0:
            return
        on[channel_of[chosen]] -= loads[chosen]
        on[lightest] += loads[chosen]
        channel_of[chosen] = lightest
