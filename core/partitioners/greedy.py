"""The greedy scheme: every listed key on the channel that is least loaded when its turn comes, the heaviest first."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.partitioners.consistent import ConsistentHash
from adapt.core.partitioners.explicit import ExplicitMap
from adapt.core.partitioners.hybrid import HybridPartitioner
from adapt.core.partitioners.partitioner import Channels
from adapt.core.resources.functions import Floats, ResourceFunction
from adapt.core.resources.population import Counted, Population


def greedy(
    counted: Counted, ring: ConsistentHash, weigh: ResourceFunction = ResourceFunction.LINEAR
) -> HybridPartitioner:
    """Give every listed key an explicit channel; the fullest is then at most 4/3 - 1/(3N) of the least possible.

    The map is as large as the list, and nearly every key moves when the counts or the channels change: this is what
    balance alone can reach, not what one would run. Keys go by falling load, then in the order of the list, and of
    equally loaded channels the lowest is taken. Keys that a lossy counter did not list are left to the ring.

    Args:
        counted: The counted keys.
        ring: Places keys that are not listed; its channels are those of the result.
        weigh: What a count loads onto a channel.

    Source: Graham, Bounds on Multiprocessing Timing Anomalies (1969), LPT. O(keys log N).
    """
    listed = Population.of(counted).frequencies
    loads = np.array(weigh.of(listed.count_low))
    order = np.argsort(-loads, kind="stable")
    channels = np.empty(len(loads), np.int32)
    _place(loads, order, np.zeros(ring.channels), np.arange(ring.channels), channels)
    return HybridPartitioner(ExplicitMap(listed.keys, channels), ring)


@compiled
def _place(loads: Floats, order: NDArray[np.int64], filled: Floats, heap: NDArray[np.int64], out: Channels) -> None:
    """Place keys in order; `heap` holds the channels, the least loaded (then lowest) before its two successors."""
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
