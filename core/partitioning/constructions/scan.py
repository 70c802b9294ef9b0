"""The scan construction: place tracked keys one by one, heaviest first."""

from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.constructions.placement import place
from adapt.core.partitioning.constructions.problem import Problem


def scan(problem: Problem) -> Channels:
    """Give each tracked key its least-utility channel, heavy keys first; int32, shape (keys,).

    Heavy keys go first because they are the hardest to compensate for later: those of the largest count, or, where a
    resource was measured, of the largest share of a load. Equal ones go by key, and utilities within a relative 1e-12
    of the least to the lowest channel, so the same problem always has the same answer.

    Source: partitioning functions, section 4.2.2, Algorithm 2. O(keys * channels).
    """
    return place(problem, in_order=True)
