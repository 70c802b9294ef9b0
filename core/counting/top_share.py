"""The top-key share of a counted stream."""

from adapt.core.counting.frequencies import Frequencies


def top_share(frequencies: Frequencies) -> tuple[float, float] | None:
    """Bounds on the share of the hottest key, which may be unlisted.

    None if the total weight is 0.
    """
    if not frequencies.total > 0:
        return None
    low = float(frequencies.count_low.max(initial=0))
    high = max(float(frequencies.count_high.max(initial=0)), frequencies.complete_above, low)
    # without listed keys, the only bound is the whole stream
    return low / frequencies.total, min(high / frequencies.total, 1.0) or 1.0
