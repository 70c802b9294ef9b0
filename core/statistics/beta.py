"""Regularized incomplete beta function."""

import math
from statistics import NormalDist

_TINY = 1e-300
_SMALL = 1e-15
_MOST_TERMS = 100_000
_LARGE = 1e4
"""From here on, Stirling's series is exact to the last digit, and better than a difference of large logarithms."""

_RARE = 1e11
"""A larger b is as good as this one at the same mean: both are Poisson's limit."""

_NORMAL = 1e5
"""If a and b are larger, the normal approximation is off by less than 1e-7."""


def beta_part(a: float, b: float, x: float) -> float:
    """I_x(a, b), the regularized incomplete beta function.

    Source: Press et al., Numerical Recipes, section 6.4: its continued fraction, by the method of Lentz.
    """
    if a > _RARE and b <= _NORMAL:
        return 1 - beta_part(b, a, 1 - x)
    if b > _RARE and a <= _NORMAL:
        x, b = x * b / _RARE, _RARE
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if min(a, b) > _NORMAL:
        return _normal_part(a, b, x)
    log_front = _log_choices(*sorted((a, b))) + a * math.log(x) + b * math.log1p(-x)
    front = math.exp(log_front)
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


def _log_choices(small: float, large: float) -> float:
    """-ln B(a, b)."""
    total = small + large
    if large < _LARGE:
        return math.lgamma(total) - math.lgamma(small) - math.lgamma(large)
    stirling = (1 / total - 1 / large) / 12
    grown = (large - 0.5) * math.log1p(small / large) + small * (math.log(total) - 1) + stirling
    return grown - math.lgamma(small)


def _normal_part(a: float, b: float, x: float) -> float:
    """I_x(a, b) of large a and b.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.5.22.
    """
    own, other = math.cbrt(b * x), math.cbrt(a * (1 - x))
    spread = math.sqrt(own * own / b + other * other / a)
    return NormalDist().cdf(3 * (own * (1 - 1 / (9 * b)) - other * (1 - 1 / (9 * a))) / spread)


def _fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    product = d
    for m in range(1, _MOST_TERMS):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away(1 + term * d)
            c = _away(1 + term / c)
            product *= c * d
        if abs(c * d - 1) < _SMALL:
            break
    return product


def _away(value: float) -> float:
    """The value, or a tiny number instead of zero."""
    return value if abs(value) > _TINY else _TINY
