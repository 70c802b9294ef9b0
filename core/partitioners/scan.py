"""The scan construction: place tracked keys one by one, heaviest first."""

from collections.abc import Collection, Mapping

import numpy as np

from adapt.core.partitioners.consistent import ConsistentHash
from adapt.core.partitioners.hybrid import HybridPartitioner
from adapt.core.partitioners.partitioner import Partitioner
from adapt.core.partitioners.placement import Placement
from adapt.core.partitioners.utility import Utility
from adapt.core.resources.functions import Floats, Resources
from adapt.core.stream import Key


def scan(
    current: Partitioner,
    ring: ConsistentHash,
    counts: Mapping[Key, float],
    tracked: Collection[Key],
    resources: Resources,
    utility: Utility,
) -> HybridPartitioner:
    """Build the next partitioner, giving each tracked key its least-utility channel.

    Heavy keys go first because they are the hardest to compensate for later. Equal counts keep the order of
    `tracked` and equal utilities go to the lowest channel, so the same inputs always give the same partitioner.

    Args:
        current: The partitioner in force, p(t).
        ring: The consistent hash of the result, H_c(t+1); its channel count may differ from that of `current`.
        counts: Count of each tracked key, and of each key that `current` tracks and that still occurs.
        tracked: Keys to map explicitly, D_p(t+1), equal counts by key bytes.
        resources: Load functions and tolerances.
        utility: Combines balance and migration penalties; lower is better.

    Returns:
        A partitioner whose explicit map has exactly the `tracked` keys.

    Source: partitioning functions, section 4.2.2, Algorithm 2. O(keys * channels).
    """
    placement = Placement(counts, tracked, current, ring, resources)
    for key in sorted(tracked, key=lambda key: -counts[key]):
        scores = utility(placement.balance_penalties(key), placement.migration_penalties(key))
        placement.place(key, first_lowest(scores))
    return HybridPartitioner(placement.chosen, ring)


def first_lowest(scores: Floats) -> int:
    """The first position whose score ties with the least: within a relative 1e-12, far above rounding."""
    least = scores.min()
    return int(np.argmax(scores <= least + 1e-12 * abs(least)))
