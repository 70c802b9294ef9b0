"""Confidence interval of the top-key share from a sample of messages."""

from collections.abc import Callable

from adapt.core.statistics.beta import beta_part

LEVEL = 0.95
"""The confidence level."""

METHOD = (
    "Clopper and Pearson (1934), the lower end with a Bonferroni correction for selecting the hottest key;"
    " assumes independent messages"
)

_HALVINGS = 60


def top_share_interval(low: int, high: int, messages: int) -> tuple[float, float]:
    """A confidence interval of the top-key share, from a sample.

    The truly hottest key occurs at most as often as the hottest key of the sample, so the upper end is that of Clopper
    and Pearson for the largest count. The lower end accounts for selecting the largest of several counts: at most 1/f
    keys have a share of f, and the probability that any key occurs so often, if none has more than f, is at most 1/f
    times that of one with f (a binomial tail over f rises with f up to the count).

    Args:
        low, high: Bounds on the largest count; equal if it was counted exactly.
        messages: n, from 1.

    Source: Clopper and Pearson, "The use of confidence or fiducial limits illustrated in the case of the binomial",
    Biometrika 26, 1934; the lower end by the union bound, ours.
    """
    side = (1 - LEVEL) / 2
    return _least(low, messages, side), _most(high, messages, side)


def _most(count: int, messages: int, side: float) -> float:
    """The share at which a count this small has probability `side`."""
    if count >= messages:
        return 1.0
    return _crossing(lambda share: 1 - beta_part(count + 1, messages - count, share), side, 0.0, 1.0, rising=False)


def _least(count: int, messages: int, side: float) -> float:
    """The share at which any of 1/share keys has a count this large with probability `side`."""
    if count < 2:
        return 0.0
    highest = (count - 1) / max(messages - 1, 1)
    return _crossing(
        lambda share: beta_part(count, messages - count + 1, share) / share, side, 0.0, highest, rising=True
    )


def _crossing(chance: Callable[[float], float], side: float, low: float, high: float, *, rising: bool) -> float:
    """The share at which a monotonic probability is `side`, by bisection."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if (chance(middle) < side) == rising:
            low = middle
        else:
            high = middle
    return (low + high) / 2
