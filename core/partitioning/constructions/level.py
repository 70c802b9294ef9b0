"""Level construction: pinned keys fill all channels up to one level."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.constructions.fill_to_level import fill_to_level
from adapt.core.partitioning.constructions.level_with_budget import NEXT_TO_NOTHING, BudgetedStep, within_budget
from adapt.core.partitioning.measures.resources import Load, ResourceFunction
from adapt.core.partitioning.problem.balance_penalty import same_rows
from adapt.core.partitioning.problem.problem import Problem

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
