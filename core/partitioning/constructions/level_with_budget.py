"""Leveling within a budget of migrated state."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.keys.partitioner import Channels

NEXT_TO_NOTHING = 0.001
"""Load of an empty channel in b, relative to the mean, so that ratios stay finite and comparable."""

_ROUNDING = 1e-12
"""Relative change of the sum of squares that counts as rounding."""

_MOVES = 10
"""Most moves per key, on average."""


@dataclass(frozen=True, slots=True)
class BudgetedStep:
    """Keys to assign with little migration, on channels with a fixed load."""

    loads: Floats  # of each key, by balanced resource; shape (loads, keys)
    residual: Floats  # fixed load of each channel, shape (loads, channels)
    capacities: Floats  # of each channel / mean capacity; shape (channels,)
    exponents: Floats  # weight of each load in b, shape (loads,)
    state: Floats  # state of each key, shape (keys,)
    # current channel of each key; `channels` or above if it is removed, so that the key may go anywhere at no cost.
    # Shape (keys,)
    home: Channels

    def moved(self, channel_of: Channels) -> float:
        """State that migrates by choice: of keys leaving a remaining channel."""
        leaves = (channel_of != self.home) & (self.home < len(self.capacities))
        return float(self.state[leaves].sum())

    def log_b(self, channel_of: Channels) -> float:
        """The logarithm of b (Eq. 11), without tolerances and constant resources."""
        logarithm = 0.0
        for load, residual, exponent in zip(self.loads, self.residual, self.exponents, strict=True):
            on = residual + np.bincount(channel_of, load, len(residual))
            used = on / self.capacities
            if used.max() > 0:
                least = NEXT_TO_NOTHING * float(on.sum() / self.capacities.sum())
                logarithm += float(exponent * np.log(used.max() / max(float(used.min()), least)))
        return logarithm


def within_budget(step: BudgetedStep, start: Channels, target: Channels, most_moved: float) -> Channels:
    """The best balanced assignment within a migration budget, of three heuristics.

    The target is taken if it keeps to the budget. Otherwise two heuristics begin with the current channels and move one
    key at a time from the busiest channel, or to the least loaded one: the key of most gain for its state, or of most
    gain. The third begins with the target, sends keys of least gain for their state back until the budget is kept, and
    spends the rest as the first does. Gain is the fall of the sum of squared loads / capacities. The assignment of the
    least b wins, and `start` unless b falls.

    Args:
        start: Current channels of the keys, or others at no cost; shape (keys,).
        target: Their channels without a budget, shape (keys,).
        most_moved: State that may migrate by choice, from 0, with room for rounding.

    Returns:
        The channel of each key, int32, shape (keys,).

    Source: ours. O(loads^2 keys^2) in the worst case.
    """
    if step.moved(target) <= most_moved:
        return target
    totals = (step.loads.sum(axis=1) + step.residual.sum(axis=1)) ** 2
    weights = np.divide(step.exponents, totals, out=np.zeros(len(totals)), where=totals > 0)
    placements = [start]
    for begin, returning, by_state in ((start, False, True), (start, False, False), (target, True, True)):
        placement = np.array(begin, np.int32)
        _spend(
            np.ascontiguousarray(step.loads, np.float64),
            np.ascontiguousarray(step.residual, np.float64),
            step.capacities,
            weights,
            np.array(step.state, np.float64),
            np.array(step.home, np.int32),
            most_moved - step.moved(placement),
            returning,
            by_state,
            placement,
        )
        placements.append(placement)
    return min(placements, key=step.log_b)


@compiled
def _spend(
    loads: Floats,
    residual: Floats,
    capacities: Floats,
    weights: Floats,
    state: Floats,
    home: Channels,
    left: float,
    returning: bool,
    by_state: bool,
    channel_of: Channels,
) -> None:
    """Send keys back until the budget is kept, if `returning`; then spend the rest. Changes `channel_of`."""
    rows, keys = loads.shape
    channels = residual.shape[1]
    per = 1 / capacities
    on = residual.copy()
    for key in range(keys):
        for k in range(rows):
            on[k, channel_of[key]] += loads[k, key]
    used = on * per
    while returning and left < 0:
        least, chosen = np.inf, -1
        for key in range(keys):
            if home[key] < channels and channel_of[key] != home[key] and state[key] > 0:
                loss = -_gain(loads, used, per, weights, key, channel_of[key], home[key]) / state[key]
                if loss < least:
                    least, chosen = loss, key
        left += state[chosen]
        _move(loads, on, used, per, chosen, home[chosen], channel_of)
    steepest = np.zeros(rows)  # the largest load of a key per state
    for key in range(keys):
        for k in range(rows):
            if state[key] > 0:
                steepest[k] = max(steepest[k], loads[k, key] / state[key])
    fullest, emptiest = np.empty(channels, np.bool_), np.empty(rows, np.int64)
    bound = np.empty(channels)  # upper bound of the gain of a key of the channel, unless it moves at no cost
    for _ in range(_MOVES * keys):
        fullest[:] = False
        bound[:] = 0.0
        least = 0.0
        for k in range(rows):
            fullest[np.argmax(used[k])] = True
            emptiest[k] = np.argmin(used[k])
            least += _ROUNDING * weights[k] * (on[k] * used[k]).sum()
            for channel in range(channels):
                apart = used[k, channel] - used[k, emptiest[k]]
                most_of_it = 2 * steepest[k] * apart if by_state else apart * apart / per[channel]
                bound[channel] += weights[k] * most_of_it
        most, chosen, target, price, for_nothing = 0.0, -1, -1, 0.0, False
        for key in range(keys):
            source = channel_of[key]
            at_home = source == home[key] and state[key] > 0
            if at_home and (for_nothing or bound[source] <= most):
                continue
            stays, leaves = 0.0, 0.0  # change of migrated state if the key goes home, and if it goes elsewhere
            if home[key] < channels:
                stays, leaves = (0.0, state[key]) if source == home[key] else (-state[key], 0.0)
            for turn in range(channels if fullest[source] else rows):
                channel = turn if fullest[source] else emptiest[turn]
                cost = stays if channel == home[key] else leaves
                if channel == source or cost > left:
                    continue
                gain = _gain(loads, used, per, weights, key, source, channel)
                if gain <= least:
                    continue
                free = cost <= 0
                score = gain / cost if by_state and not free else gain
                if (free and not for_nothing) or (free == for_nothing and score > most):
                    most, chosen, target, price, for_nothing = score, key, channel, cost, free
        if chosen < 0:
            return
        left -= price
        _move(loads, on, used, per, chosen, target, channel_of)


@inlined
def _gain(loads: Floats, used: Floats, per: Floats, weights: Floats, key: int, source: int, channel: int) -> float:
    """The fall of the weighted sum of squared loads / capacities when a key moves."""
    gain = 0.0
    for k in range(len(loads)):
        load = loads[k, key]
        gain += weights[k] * load * (2 * (used[k, source] - used[k, channel]) - load * (per[source] + per[channel]))
    return gain


@inlined
def _move(loads: Floats, on: Floats, used: Floats, per: Floats, key: int, channel: int, channel_of: Channels) -> None:
    """Move a key, in `on`, `used` and `channel_of`."""
    source = channel_of[key]
    for k in range(len(loads)):
        on[k, source] -= loads[k, key]
        on[k, channel] += loads[k, key]
        used[k, source], used[k, channel] = on[k, source] * per[source], on[k, channel] * per[channel]
    channel_of[key] = channel
