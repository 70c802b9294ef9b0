"""Constructions of the paper that assign keys: scan and redist."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled, inlined
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.constructions.placement import (
    Placement,
    Records,
    balance_penalty,
    first_lowest,
    may_leave,
    measure,
    migration_weights,
    place,
    place_pinned,
    unbeaten,
)
from adapt.core.partitioning.problem.problem import Problem, utility


def redist(problem: Problem) -> Channels:
    """Repeatedly assign the key and channel of least utility / weight.

    The weight of a key is its count or, with measured resources, its largest share of a load. Dividing by it assigns
    hot keys early, but a small key that fits well may go before them. Scores within a relative 1e-12 of the least tie:
    the hotter key wins, then the earlier key, then the lower channel.

    Assigned keys are no longer candidates, and the utility is divided by the weight of the candidate itself, which the
    pseudo-code omits. Keys without weight come last, by their undivided utility. If migration is limited, a key whose
    state no longer fits has its current channel alone.

    Source: partitioning functions, section 4.2.3, Algorithm 3. O(keys^2 * tried), where the channels tried for a key
    are its current one and those that no other channel beats in every resource: two if the resources that are not
    constant have one load.
    """
    placement = Placement.from_problem(problem)
    _redist(*placement)
    return placement.chosen


@compiled
def _redist(steps: Records, keys: Records, channels: Records) -> None:
    """Algorithm 3; a candidate is tried only on channels that can be its best."""
    step, utilities = steps[0], np.empty(len(channels))
    place_pinned(step, keys, channels)
    left = np.array([d for d in range(len(keys)) if keys[d].channel < 0])
    scores = np.empty(len(left))
    while len(left) > 0:
        measure(step, channels)
        tried = unbeaten(step, channels)
        candidates = _with_weight(keys, left)
        least = np.inf
        for c in range(candidates):
            key = keys[left[c]]
            weights, best, leaves = migration_weights(step, key), np.inf, may_leave(step, key, channels)
            for turn in range(len(tried) + 1):
                j = tried[turn] if turn < len(tried) else key.home
                if j < len(channels) and (leaves or j == key.home):
                    best = min(best, _utility(step, key, channels, j, weights))
            scores[c] = best
            least = min(least, best)
        c = first_lowest(scores, least)
        key = keys[left[c]]
        weights, leaves = migration_weights(step, key), may_leave(step, key, channels)
        for j in range(len(channels)):
            utilities[j] = _utility(step, key, channels, j, weights) if leaves or j == key.home else np.inf
        place(step, key, channels, first_lowest(utilities, least))
        left[c:-1] = left[c + 1 :]
        left = left[:-1]


@inlined
def _utility(step: Any, key: Any, channels: Records, j: int, weights: tuple[float, float]) -> float:
    """U of a key on a channel / the key's weight; `weights` is w(gamma) if it stays and if it moves."""
    rho = balance_penalty(step, key, channels[j])
    undivided = utility(rho, weights[0] if j == key.home else weights[1], step.times)
    return float(undivided / key.weight if key.weight > 0 else undivided)


@inlined
def _with_weight(keys: Records, left: NDArray[np.int64]) -> int:
    """Number of remaining keys with weight, by falling weight; all of them if none has."""
    size = len(left)
    if keys[left[0]].weight > 0:
        while keys[left[size - 1]].weight == 0:
            size -= 1
    return size


def scan(problem: Problem) -> Channels:
    """Assign each key to its least-utility channel, hottest first; int32, shape (keys,).

    Hot keys go first because they are the hardest to compensate for later: those of the largest count or, with measured
    resources, of the largest share of a load. Equal ones go by key, and of utilities within a relative 1e-12 of the
    least the lowest channel wins, so the same problem always has the same answer. If migration is limited, a key whose
    state no longer fits stays where it is.

    Source: partitioning functions, section 4.2.2, Algorithm 2. O(keys * channels).
    """
    placement = Placement.from_problem(problem)
    _scan(*placement)
    return placement.chosen


@compiled
def _scan(steps: Records, keys: Records, channels: Records) -> None:
    """Algorithm 2; the keys of a problem are sorted by falling weight."""
    step, utilities = steps[0], np.empty(len(channels))
    place_pinned(step, keys, channels)
    for d in range(len(keys)):
        key = keys[d]
        if key.pinned >= 0:
            continue
        measure(step, channels)
        at_home, elsewhere = migration_weights(step, key)
        leaves = may_leave(step, key, channels)
        for j in range(len(channels)):
            rho = balance_penalty(step, key, channels[j])
            weighed = utility(rho, at_home if j == key.home else elsewhere, step.times)
            utilities[j] = weighed if leaves or j == key.home else np.inf
        place(step, key, channels, first_lowest(utilities, utilities.min()))
