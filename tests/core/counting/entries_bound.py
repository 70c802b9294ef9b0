"""The most entries that a lossy counter can hold, in theory."""

import math

from adapt.core.counting.lossy import window_of


def most_entries(epsilon: float, total: float, purged: float) -> float:
    """The most keys that a counter can hold after a purge: w (1 + ln(total / purged)), which is O(1/e log(e n)).

    An entry first counted when a weight s was still to come has since weighed more than s / w, and all such entries
    together no more than s; the worst case spends it all, purge by purge, and adds up to a harmonic sum.

    Args:
        epsilon: The counter's error.
        total: n, above 0.
        purged: The weight that came between the last two purges, above 0.

    Source: Manku and Motwani, theorem 4.2, with windows in units of weight.
    """
    return window_of(epsilon) * (1 + math.log(max(total / purged, 1)))
