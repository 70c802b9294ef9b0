"""What the heaviest key of a counted stream carries."""

from adapt.core.counting.frequencies import Frequencies


def top_share(frequencies: Frequencies) -> tuple[float, float] | None:
    """The least and the most that the heaviest key can carry, as shares; it may be one that is not listed.

    None where no row weighs anything.
    """
    if not frequencies.total > 0:
        return None
    low = float(frequencies.count_low.max(initial=0))
    high = max(float(frequencies.count_high.max(initial=0)), frequencies.complete_above, low)
    # a counter that lists nothing and promises nothing knows only that no key carries more than all
    return low / frequencies.total, min(high / frequencies.total, 1.0) or 1.0
