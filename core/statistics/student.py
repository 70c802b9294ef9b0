"""Student's t distribution."""

from functools import cache

from adapt.core.statistics.beta import beta_part

_HALVINGS = 80


@cache
def student_quantile(level: float, freedom: int) -> float:
    """The quantile of Student's t distribution.

    Args:
        level: Probability of a smaller value, in [0.5, 1).
        freedom: Degrees of freedom, from 1.

    Source: Student, "The probable error of a mean", Biometrika 6, 1908.
    """
    low, high = 0.0, 1.0
    while _below(high, freedom) < level:
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _below(middle, freedom) < level else (low, middle)
    return (low + high) / 2


def _below(value: float, freedom: int) -> float:
    return 1 - beta_part(freedom / 2, 0.5, freedom / (freedom + value * value)) / 2
