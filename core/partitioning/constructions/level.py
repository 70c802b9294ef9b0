"""Level construction: pinned keys fill all channels up to one level."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.constructions.level_with_budget import NEXT_TO_NOTHING, BudgetedStep, within_budget
from adapt.core.partitioning.measures.resources import Load, ResourceFunction
from adapt.core.partitioning.problem.problem import Problem, same_rows

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


_WORTH = 0.005
"""Relative fall of b below which nothing moves."""


def level(problem: Problem) -> Channels:
    """Level the total channel loads with few migrations.

    Channels above the level give keys away, hottest first, but none that would bring them below it. The level is the
    one to which all channels can be filled, except those with a key (or hashed load) above it. Given keys go, hottest
    first, to the least loaded channel; then a few single keys move to the least loaded channel. Keys are in the order
    of the problem and ties go to the lowest channel, so equal problems have equal answers.

    If one load grows faster with the count than another, as a quadratic one does, the hottest keys are
    leveled by the steeper, and the others, which hardly matter to it, fill up the other load. How many count as hot is
    tried: none, the number of channels, twice as many, and so on; the first with the least b wins.

    If resources were measured, a key may be hot in one and not in another. So the same is tried with any two of the
    different loads and the mean of their shares: the hottest keys in one are leveled by it, the others by the other.

    Keys of --pin stay, and hashed keys stay where the ring puts them. If migration is limited, the keys are leveled as
    far as the limit allows (`within_budget`).

    Nothing moves unless b falls by half a percent. Only balance counts, not the problem's utility, nor its limit of
    moves, which is for constructions that move a key repeatedly. Tolerances divide b by a constant, and constant
    resources are left to the hashed keys, as elsewhere.

    Source: ours, after the finding that the ring's even spread of hashed keys bounds what the constructions of
    partitioning functions, section 4.2, can reach. O(keys * channels).
    """
    most_moved, channel_of, free = problem.most_moved, problem.start, problem.pinned < 0
    if len(problem.functions) and problem.channels > 1 and free.any():
        step = budgeted_step(problem)
        loads, residual, exponents = step.loads, step.residual, step.exponents
        pairs = [(0, len(loads) - 1)]
        if problem.resources.sources and len(loads) > 1:
            loads, residual = _with_mean(loads, residual, exponents)
            pairs = [(one, other) for one in range(len(loads)) for other in range(len(loads)) if one != other]
        levelled = channel_of[free]
        _level(loads, residual, problem.capacities, exponents, np.array(pairs), levelled)
        if most_moved < np.inf:
            levelled = within_budget(step, channel_of[free], levelled, most_moved)
        channel_of[free] = levelled
    return channel_of


def budgeted_step(problem: Problem) -> BudgetedStep:
    """The free keys, with hashed and user-pinned ones as fixed load."""
    free, (loads, residual, exponents) = problem.pinned < 0, _distinct(problem)
    pinned = [np.bincount(problem.pinned[~free], load[~free], problem.channels) for load in loads]
    loads, residual = np.ascontiguousarray(loads[:, free]), residual + np.reshape(pinned, residual.shape)
    return BudgetedStep(loads, residual, problem.capacities, exponents, problem.state[free], problem.home[free])


def _distinct(problem: Problem) -> tuple[Floats, Floats, Floats]:
    """The distinct loads of the keys, of the hashed ones on each channel, and their exponents in b.

    The steepest comes first. Shapes (loads, keys), (loads, channels), (loads,).
    """
    functions = sorted(dict.fromkeys(problem.functions), key=_steepness, reverse=True)
    loads = problem.loads[[problem.functions.index(load) for load in functions]]
    residual = problem.residual()[[problem.resources.loads.index(load) for load in functions]]
    same = same_rows(np.concatenate((loads, residual), axis=1)) if problem.resources.sources else range(len(loads))
    counts = np.array([problem.functions.count(load) for load in functions])
    kept = sorted(set(same))
    exponents = np.array([counts[[first == row for first in same]].sum() / 3 for row in kept])
    return loads[kept], np.ascontiguousarray(residual[kept], np.float64), exponents


def _steepness(load: Load) -> float:
    """Power of the count with which a load grows; a measured one is taken as between linear and quadratic."""
    return float("CLQ".index(load)) if isinstance(load, ResourceFunction) else 1.5


def _with_mean(loads: Floats, residual: Floats, exponents: Floats) -> tuple[Floats, Floats]:
    """Loads of keys and of channels, and below them the mean of their shares, weighted as in b."""
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
    """Level repeatedly, in `channel_of`, while that lowers b: the hottest keys by one of two loads.

    Loads beyond the exponents serve leveling only.
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
                    fill_to_level(first, residual[one], capacities, way == 1, 0, heavy, placed)
                    if heavy < keys:
                        fill_to_level(second, residual[other], capacities, way == 1, heavy, keys, placed)
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
    """The logarithm of b (Eq. 11), without tolerances and constant resources."""
    log_b = 0.0
    for k in range(len(loads)):
        on = residual[k].copy()
        for key in range(len(channel_of)):
            on[channel_of[key]] += loads[k, key]
        least = NEXT_TO_NOTHING * (on.sum() / capacities.sum())
        on /= capacities
        if on.max() > 0:
            log_b += exponents[k] * np.log(on.max() / max(on.min(), least))
    return log_b
