"""The level construction: tracked keys fill what the untracked ones leave free, up to one level on all channels."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.constructions.balance_penalty import same_rows
from adapt.core.partitioning.constructions.level_with_budget import FrugalStep, within_budget
from adapt.core.partitioning.constructions.problem import Problem
from adapt.core.partitioning.measures.resources import Floats, Load, ResourceFunction

_WORTH = 0.005
"""The part by which b must fall for anything to move: levelling again what is level moves nothing."""

_NEXT_TO_NOTHING = 0.001
"""Of an average load: what an empty channel counts as, so that ratios stay finite and can be compared."""

_TIE = 1e-12
"""Utilisations within this part of each other tie; those of channels of unequal capacity are rounded."""

_HALVINGS = 50
"""Of the search for the level, down to the last digits of a load."""


def level(problem: Problem) -> Channels:
    """Level the channels' whole loads, of tracked and untracked keys, with few migrations; int32, shape (keys,).

    Channels above the level give keys away, heaviest first, but none that would bring them below it. The level is as
    high as all channels can be filled that hold no key (or no untracked load) that sticks out. What was given goes,
    heaviest first, to the least loaded channel, and a few moves of single keys to the least loaded channel follow.
    Keys are in the order of the problem and ties go to the lowest channel, so equal problems have equal answers.

    Where one resource is quadratic and another linear, the heaviest keys are levelled by the square of their counts,
    and the lighter ones, whose squares hardly matter, fill up the linear load. How many count as heavy is tried: none,
    the number of channels, twice as many, and so on; the first with the least b wins.

    Where resources were measured, keys that are heavy to one may be light to another. So the same is tried with any two
    of the different loads and the mean of their shares: the heaviest keys in one are levelled by it, the others by the
    other.

    Pinned keys lie where they are pinned, as untracked ones lie where the ring puts them. Where migration is limited,
    the keys are levelled as far as the limit allows (`within_budget`).

    Unless b falls by half a percent nothing moves. Only balance is weighed: neither the problem's utility, nor its
    limit of moves, which is for constructions that move a key again and again. Tolerances divide b by a constant and
    constant resources are left to the untracked keys, as elsewhere.

    Source: ours, after the finding that the ring's even spread of untracked keys bounds what the constructions of
    partitioning functions, section 4.2, can reach. O(keys * channels).
    """
    budget = None if problem.budget is None else problem.budget()
    channel_of, free = problem.start, problem.pinned < 0
    if len(problem.functions) and problem.channels > 1 and free.any():
        loads, residual, exponents = _distinct(problem)
        pinned = [np.bincount(problem.pinned[~free], load[~free], problem.channels) for load in loads]
        loads, residual = np.ascontiguousarray(loads[:, free]), residual + pinned
        step = FrugalStep(loads, residual, problem.capacities, exponents, problem.state[free], problem.home[free])
        pairs = [(0, len(loads) - 1)]
        if problem.resources.sources and len(loads) > 1:
            loads, residual = _with_mean(loads, residual, exponents)
            pairs = [(one, other) for one in range(len(loads)) for other in range(len(loads)) if one != other]
        levelled = channel_of[free]
        _level(loads, residual, problem.capacities, exponents, np.array(pairs), levelled)
        if budget is not None:
            levelled = within_budget(step, channel_of[free], levelled, budget)
        channel_of[free] = levelled
    return channel_of


def _distinct(problem: Problem) -> tuple[Floats, Floats, Floats]:
    """The different loads of the keys, of the untracked ones on each channel, and how they count in the logarithm of b.

    A quadratic load stands before all others, a linear one after them. Shapes (loads, keys), (loads, channels),
    (loads,).
    """
    order: dict[Load, int] = {ResourceFunction.QUADRATIC: 0, ResourceFunction.LINEAR: 2}
    functions = sorted(dict.fromkeys(problem.functions), key=lambda load: order.get(load, 1))
    loads = problem.loads[[problem.functions.index(load) for load in functions]]
    residual = problem.residual()[[problem.resources.loads.index(load) for load in functions]]
    same = same_rows(np.concatenate((loads, residual), axis=1)) if problem.resources.sources else range(len(loads))
    counts = np.array([problem.functions.count(load) for load in functions])
    kept = sorted(set(same))
    exponents = np.array([counts[[first == row for first in same]].sum() / 3 for row in kept])
    return loads[kept], np.ascontiguousarray(residual[kept], np.float64), exponents


def _with_mean(loads: Floats, residual: Floats, exponents: Floats) -> tuple[Floats, Floats]:
    """Loads of keys and of channels, and below them the mean of their shares, as they count in b."""
    wholes = loads.sum(axis=1) + residual.sum(axis=1)
    shares = np.divide(exponents, wholes, out=np.zeros(len(wholes)), where=wholes > 0)
    return np.vstack((loads, shares @ loads)), np.vstack((residual, shares @ residual))


@compiled
def _level(
    loads: Floats,
    residual: Floats,
    capacities: Floats,
    exponents: Floats,
    pairs: NDArray[np.int64],
    channel_of: Channels,
) -> None:
    """Level again and again, in `channel_of`, as long as that lowers b: the heaviest keys by one of two loads.

    Loads beyond the exponents are only levelled by.
    """
    measured, keys = len(exponents), loads.shape[1]
    channels = residual.shape[1]
    tried, best = np.empty_like(channel_of), np.empty_like(channel_of)
    ways = 1 if (capacities == 1).all() else 2  # without uprooting, and with it
    stands = _log_b(loads[:measured], residual, capacities, exponents, channel_of)
    while True:
        reached = np.inf
        for pair in range(len(pairs)):
            one, other = pairs[pair]
            heavy = keys if one == other else 0
            falling = np.argsort(-loads[one], kind="mergesort")
            while True:
                order = falling.copy()
                light = order[heavy:]
                order[heavy:] = light[np.argsort(-loads[other][light], kind="mergesort")]
                first, second = loads[one][order], loads[other][order]
                for way in range(ways):
                    placed = channel_of[order]
                    _spread(first, residual[one], capacities, way == 1, 0, heavy, placed)
                    if heavy < keys:
                        _spread(second, residual[other], capacities, way == 1, heavy, keys, placed)
                    tried[order] = placed
                    log_b = _log_b(loads[:measured], residual, capacities, exponents, tried)
                    if log_b < reached:
                        reached = log_b
                        best[:] = tried
                if heavy == keys:
                    break
                heavy = min(keys, max(channels, 2 * heavy))
        if not reached < stands - _WORTH:
            return
        stands = reached
        channel_of[:] = best


@inlined
def _log_b(loads: Floats, residual: Floats, capacities: Floats, exponents: Floats, channel_of: Channels) -> float:
    """The logarithm of b (Eq. 11), but for tolerances and constant resources."""
    log_b = 0.0
    for k in range(len(loads)):
        on = residual[k].copy()
        for key in range(len(channel_of)):
            on[channel_of[key]] += loads[k, key]
        least = _NEXT_TO_NOTHING * (on.sum() / capacities.sum())
        on /= capacities
        if on.max() > 0:
            log_b += exponents[k] * np.log(on.max() / max(on.min(), least))
    return log_b


@inlined
def _spread(
    loads: Floats, residual: Floats, capacities: Floats, uproot: bool, first: int, last: int, channel_of: Channels
) -> None:
    """Level the keys from `first` to `last`, on top of the untracked load and of the keys before them."""
    full = residual.copy()
    for key in range(last):
        full[channel_of[key]] += loads[key]
    given, on = np.empty(len(loads), np.bool_), np.empty_like(full)
    held = np.empty(len(full), np.int64)  # how many of the keys each channel keeps
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
    """The channel that is least utilised with a load; the lowest of several."""
    if alike:
        return int(np.argmin(on))
    least, lightest = np.inf, 0
    for channel in range(len(on)):
        utilised = (on[channel] + load) / capacities[channel]
        if utilised < least * (1 - _TIE):
            least, lightest = utilised, channel
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
    """The utilisation to which what is given away just fills the channels below: the average, if none sticks out."""
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
    """Write which keys are given away, heaviest first, and what is left on each channel, never less than the level."""
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
    """Let channels that are fuller than any need be give light keys that bring them nearer to the level, if below it.

    Below the ceiling that the heaviest key or the untracked load makes inevitable, they would migrate for nothing. So
    would a key that a channel has alone, as it would stick out elsewhere too; but where channels differ in capacity it
    might not, and with `uproot` each key that alone makes its channel fuller than any need be is given.
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
    """Move the key that evens out most, not past the giver, to the least utilised channel; at most once a channel.

    What it evens out is half the fall of the sum of squared loads over capacities.
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
