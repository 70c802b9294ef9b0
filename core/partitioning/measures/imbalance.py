"""Imbalance of channel loads.

A ratio over an empty channel is infinite and returned as None, next to the number of empty channels.
"""

import math
from collections.abc import Sequence

import numpy as np

from adapt.core.arrays import Floats


def max_over_min(load: Floats) -> float | None:
    """r_k, the max/min channel load (Eqs. 2, 4, 6).

    None if a channel is empty.
    """
    lightest = float(load.min())
    return float(load.max()) / lightest if lightest > 0 else None


def max_over_mean(load: Floats, capacities: Floats | None = None) -> float | None:
    """`imbalance`: load of the busiest channel / mean load.

    With unequal capacities, it is the highest utilization / the utilization of all capacity together.
    """
    total = float(load.sum())
    if total <= 0:
        return None
    if capacities is None:
        return float(load.max()) * len(load) / total
    return float((load / capacities).max()) * float(capacities.sum()) / total


def relative_imbalance(ratios: Sequence[float | None], tolerance: Sequence[float]) -> float | None:
    """b, the geometric mean of r_k / alpha_k (Eq. 11).

    1 is the tolerated limit; None if any r_k is None.
    """
    known = [ratio / alpha for ratio, alpha in zip(ratios, tolerance, strict=True) if ratio is not None]
    return math.prod(known) ** (1 / len(known)) if len(known) == len(ratios) else None


def empty_channels(load: Floats) -> int:
    """Number of channels without load."""
    return int(np.count_nonzero(load == 0))
