"""The redist construction: place the key that has the best place, again and again."""

from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.constructions.placement import place
from adapt.core.partitioning.constructions.problem import Problem


def redist(problem: Problem) -> Channels:
    """Place the key and channel of least utility over the key's weight, of all that are left; int32, shape (keys,).

    The weight of a key is its count, or, where a resource was measured, its largest share of a load. Dividing by it has
    heavy keys placed early, but lets a light key that fits well go before them. Scores within a relative 1e-12 of the
    least tie: the heavier key wins, then the earlier key, then the lower channel.

    Keys that are placed leave the candidates, and the utility is divided by the weight of the candidate itself, which
    the pseudo-code leaves out.

    Source: partitioning functions, section 4.2.3, Algorithm 3. O(keys^2) where all resources that are not constant
    have one load, instead of O(keys^2 * channels).
    """
    return place(problem, in_order=False)
