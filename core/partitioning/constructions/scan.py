"""Scan construction: assign keys in turn, hottest first."""

import numpy as np

from adapt.core.compiled import compiled
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
)
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.problem.utility import utility


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
