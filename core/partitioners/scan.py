"""The scan construction: place tracked keys one by one, heaviest first."""

import numpy as np

from adapt.core.partitioners.partitioner import Channels
from adapt.core.partitioners.placement import Placement
from adapt.core.partitioners.problem import Problem
from adapt.core.partitioners.utility import UTILITIES
from adapt.core.resources.functions import Floats


def scan(problem: Problem) -> Channels:
    """Give each tracked key its least-utility channel, heavy keys first; shape (keys,).

    Heavy keys go first because they are the hardest to compensate for later. Equal counts go by key and equal
    utilities to the lowest channel, so the same problem always has the same answer.

    Source: partitioning functions, section 4.2.2, Algorithm 2. O(keys * channels).
    """
    placement, utility = Placement(problem), UTILITIES[problem.utility]
    chosen = np.zeros(len(problem.counts), np.int32)
    for key in range(len(chosen)):
        scores = utility(placement.balance_penalties(key), placement.migration_penalties(key))
        chosen[key] = first_lowest(scores)
        placement.place(key, int(chosen[key]))
    return chosen


def first_lowest(scores: Floats) -> int:
    """The first position whose score ties with the least: within a relative 1e-12, far above rounding."""
    least = scores.min()
    return int(np.argmax(scores <= least + 1e-12 * abs(least)))
