"""Placing tracked keys one by one for the utility of what is placed so far: what scan and redist share."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.constructions.balance_penalty import Balance
from adapt.core.partitioning.constructions.problem import Problem
from adapt.core.partitioning.constructions.utility import UTILITIES, Weighing
from adapt.core.partitioning.measures.resources import Floats

_TIE = 1e-12
"""Scores within this relative distance of the least tie; far above rounding."""

_LOGARITHM = int(Weighing.LOGARITHM)


def place(problem: Problem, in_order: bool) -> Channels:
    """The channel of each key, int32, shape (keys,); every step gives one key its channel, for good.

    Args:
        problem: The step.
        in_order: Each step places the next key; otherwise the key with the least utility over its weight, of all that
            are left. Keys that weigh nothing come last, for their utility undivided.

    Pinned keys are placed before all others, so that these are placed in view of them.

    Ties go to the earlier key, then to the lower channel.

    Cost: O(keys * channels) in order. Otherwise O(keys^2 * tried), where the channels tried for a key are its home and
    those that no other channel beats in every resource: two in all where the resources have one load.
    """
    balance, utility = Balance.of(problem), UTILITIES[problem.utility]
    chosen = np.empty(len(problem.weights), np.int32)
    _place(
        problem.weights,
        np.array(problem.home, np.int32),
        np.array(problem.pinned, np.int32),
        problem.state,
        balance.loads,
        balance.powers,
        balance.root,
        balance.scale,
        problem.owed,
        problem.ideal,
        problem.channels,
        int(utility.weighing),
        utility.times,
        in_order,
        chosen,
    )
    return chosen


@compiled
def _place(
    weights: Floats,
    home: Channels,
    pinned: Channels,
    state: Floats,
    loads: Floats,
    powers: NDArray[np.int64],
    root: int,
    scale: float,
    owed: float,
    ideal: float,
    channels: int,
    weighing: int,
    times: bool,
    in_order: bool,
    chosen: Channels,
) -> None:
    """Algorithms 2 and 3; writes `chosen`."""
    keys, resources = loads.shape[1], loads.shape[0]
    placed = np.zeros((resources, channels))  # the load of each channel
    total = np.zeros(resources)
    extremes = np.zeros((resources, 3))  # most, least, second least
    left = np.arange(keys)  # the first `size` are not placed yet, in order
    best_of = np.empty(keys)  # the least score of each key that is left
    tried = np.arange(channels)
    moved = owed
    size = 0
    for key in range(keys):
        if pinned[key] < 0:
            left[size] = key
            size += 1
            continue
        chosen[key] = pinned[key]
        moved += _put(placed, total, loads, state, home, key, pinned[key])
    while size > 0:
        _measure(placed, extremes)
        candidates, fair = 1, channels
        if not in_order:
            fair = _unbeaten(placed, tried)
            candidates = _with_weight(weights, left, size)
        least = np.inf
        for at in range(candidates):
            key = left[at]
            divisor = weights[key] if not in_order and weights[key] > 0 else 1.0
            stays, leaves = _weights(moved, state[key], ideal, weighing)
            best = np.inf
            for turn in range(fair + 1):
                channel = tried[turn] if turn < fair else home[key]
                if channel < channels:
                    rho = _rho(placed, total, extremes, loads, key, channel, powers, root, scale)
                    best = min(best, _utility(rho, leaves if channel != home[key] else stays, times) / divisor)
            best_of[at] = best
            least = min(least, best)
        limit = least + _TIE * least
        at = 0
        while best_of[at] > limit:
            at += 1
        key = left[at]
        divisor = weights[key] if not in_order and weights[key] > 0 else 1.0
        stays, leaves = _weights(moved, state[key], ideal, weighing)
        for channel in range(channels):
            chosen[key] = channel
            rho = _rho(placed, total, extremes, loads, key, channel, powers, root, scale)
            if _utility(rho, leaves if channel != home[key] else stays, times) / divisor <= limit:
                break
        moved += _put(placed, total, loads, state, home, key, chosen[key])
        left[at : size - 1] = left[at + 1 : size]
        size -= 1


@inlined
def _put(placed: Floats, total: Floats, loads: Floats, state: Floats, home: Channels, key: int, channel: int) -> float:
    """Put a key on a channel; the state that migrates by it."""
    for k in range(placed.shape[0]):
        placed[k, channel] += loads[k, key]
        total[k] += loads[k, key]
    return float(state[key]) if channel != home[key] else 0.0


@inlined
def _measure(placed: Floats, extremes: Floats) -> None:
    """The most, the least and the second least load of each resource; the second of one channel is infinite."""
    for k in range(placed.shape[0]):
        most, least, second = -np.inf, np.inf, np.inf
        for load in placed[k]:
            most = max(most, load)
            if load < least:
                least, second = load, least
            elif load < second:
                second = load
        extremes[k, 0], extremes[k, 1], extremes[k, 2] = most, least, second


@inlined
def _unbeaten(placed: Floats, tried: NDArray[np.int64]) -> int:
    """Write the channels that no other undercuts in every resource to the front of `tried`; how many they are.

    rho of a key on a channel never falls as the loads of the channel rise, so the least of it is found there.
    """
    if placed.shape[0] == 0:
        tried[0] = 0
        return 1
    if placed.shape[0] == 1:
        tried[0] = np.argmin(placed[0])
        return 1
    if placed.shape[0] == 3:
        return _unbeaten_of_three(placed, tried)
    found, lowest = 0, np.inf
    for channel in np.argsort(placed[0], kind="mergesort"):
        if placed[1, channel] < lowest:
            lowest = placed[1, channel]
            tried[found] = channel
            found += 1
    return found


@inlined
def _unbeaten_of_three(placed: Floats, tried: NDArray[np.int64]) -> int:
    """The same for three resources: who comes later in the first is beaten by one who is no fuller in the others."""
    found = 0
    for channel in np.argsort(placed[0], kind="mergesort"):
        beaten = False
        for other in tried[:found]:
            if placed[1, other] <= placed[1, channel] and placed[2, other] <= placed[2, channel]:
                beaten = True
                break
        if not beaten:
            tried[found] = channel
            found += 1
    return found


@inlined
def _with_weight(weights: Floats, left: NDArray[np.int64], size: int) -> int:
    """How many of the keys that are left weigh something; all of them if none does. Weights fall."""
    if weights[left[0]] == 0:
        return size
    while weights[left[size - 1]] == 0:
        size -= 1
    return size


@inlined
def _rho(
    placed: Floats,
    total: Floats,
    extremes: Floats,
    loads: Floats,
    key: int,
    channel: int,
    powers: NDArray[np.int64],
    root: int,
    scale: float,
) -> float:
    """Rho (Eqs. 19, 20) after placing `key` on `channel`, in constant time; 0 where there is no load."""
    if root == 0:
        return 0.0
    product = 1.0
    for k in range(len(powers)):
        load, before = loads[k, key], placed[k, channel]
        after = before + load
        least = min(after, extremes[k, 2]) if before == extremes[k, 1] else extremes[k, 1]
        spread = max(after, extremes[k, 0]) - least
        if spread <= 0:
            return 0.0
        share = spread / (total[k] + load)
        product *= share * share if powers[k] == 2 else share
    return scale * (product if root == 1 else product ** (1.0 / root))


@inlined
def _weights(moved: float, state: float, ideal: float, weighing: int) -> tuple[float, float]:
    """w(gamma) (section 4.3, Eq. 18) where a key stays at home, and where its state migrates too; 0 without state."""
    if weighing == 0 or ideal <= 0:
        return 0.0, 0.0
    stays, leaves = moved / ideal, (moved + state) / ideal
    return (np.log1p(stays), np.log1p(leaves)) if weighing == _LOGARITHM else (stays, leaves)


@inlined
def _utility(rho: float, weight: float, times: bool) -> float:
    """U (section 4.3)."""
    return rho * (1 + weight) if times else rho + weight
