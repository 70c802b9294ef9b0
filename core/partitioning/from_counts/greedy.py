"""Greedy scheme: hottest key first, each on the least loaded channel."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.loads.load import Load, ResourceFunction
from adapt.core.partitioning.measures.key_loads import listed_loads
from adapt.core.partitioning.measures.population import Counted, Population
from adapt.core.partitioning.problem.constraints import Constraints
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner

_TIE = 1e-12
"""Relative tolerance of ties; utilizations by unequal capacity are rounded."""


def greedy(
    counted: Counted,
    ring: ConsistentHash,
    weigh: Load = ResourceFunction.LINEAR,
    constraints: Constraints | None = None,
    held: Channels | None = None,
) -> HybridPartitioner:
    """Pin every listed key, hottest first, to the least loaded channel.

    The busiest channel has at most 4/3 - 1/(3N) of the best possible load.

    The map is as large as the list, and nearly every key moves when the counts or the channels change: this shows what
    balance alone can reach, and is not for production. Keys go by falling load, then in the order of the list, and of
    equally loaded channels the lowest is taken. Keys that a lossy counter did not list stay hashed, and count
    on their channels.

    With unequal capacities, a key goes to the channel that is least utilized with it; the highest utilization is then
    at most 2 - 2/(N + 1) of the best possible, if all keys are listed and the user pins none. Keys of --pin are
    assigned before all others.

    Args:
        ring: Assigns keys that are not listed; its channels are those of the result.
        held: Channels that keys keep, -1 for a free key; shape (listed keys,). Default: all are free.

    Source: Graham, Bounds on Multiprocessing Timing Anomalies (1969), LPT, O(keys log N); for capacities Gonzalez,
    Ibarra and Sahni, Bounds for LPT Schedules on Uniform Processors (1977), O(keys N).
    """
    population, limits = Population.from_counts(counted, ring), constraints or Constraints()
    listed = population.frequencies
    loads = np.array(listed_loads(listed, weigh))
    capacities, pins = limits.relative(ring.channels), limits.pins_of(listed.keys)
    pins = pins if held is None else np.where(pins >= 0, pins, held)
    channels, free = pins.copy(), pins < 0
    filled = population.rest_on(ring, weigh) + np.bincount(pins[~free], loads[~free], ring.channels)
    order = np.flatnonzero(free)[np.argsort(-loads[free], kind="stable")]
    if (capacities == 1).all():
        _place(loads, order, filled, np.argsort(filled, kind="stable"), channels)
    else:
        _place_by_capacity(loads, order, filled, capacities, channels)
    return HybridPartitioner(ExplicitMap(listed.keys, channels).over(limits.pinned), ring)


@compiled
def _place(loads: Floats, order: NDArray[np.int64], filled: Floats, heap: NDArray[np.int64], out: Channels) -> None:
    """Assign keys in order; `heap` has the channels, the least loaded (then lowest) before its two successors."""
    n = len(heap)
    for key in order:
        channel = heap[0]
        out[key] = channel
        filled[channel] += loads[key]
        at = 0
        while 2 * at + 1 < n:
            below = 2 * at + 1
            if below + 1 < n:
                left, right = heap[below], heap[below + 1]
                if filled[right] < filled[left] or (filled[right] == filled[left] and right < left):
                    below += 1
            lighter = heap[below]
            if filled[channel] < filled[lighter] or (filled[channel] == filled[lighter] and channel < lighter):
                break
            heap[at] = lighter
            at = below
        heap[at] = channel


@compiled
def _place_by_capacity(
    loads: Floats, order: NDArray[np.int64], filled: Floats, capacities: Floats, out: Channels
) -> None:
    """Assign keys in order to the channel of least utilization with the key; of several the lowest."""
    for key in order:
        least, channel = np.inf, 0
        for each in range(len(filled)):
            utilized = (filled[each] + loads[key]) / capacities[each]
            if utilized < least * (1 - _TIE):
                least, channel = utilized, each
        out[key] = channel
        filled[channel] += loads[key]
