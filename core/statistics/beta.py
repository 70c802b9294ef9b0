"""Regularized incomplete beta function."""

import math

_TINY = 1e-300
_SMALL = 1e-15
_MOST_TERMS = 100_000


def beta_part(a: float, b: float, x: float) -> float:
    """I_x(a, b), the regularized incomplete beta function.

    Source: Press et al., Numerical Recipes, section 6.4: its continued fraction, by the method of Lentz.
    """
    if x <= 0 or x >= 1:
        return float(x >= 1)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    front = math.exp(log_front)
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1 - front * _fraction(b, a, 1 - x) / b


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
