"""Loads of channels, and their imbalance.

A ratio over an empty channel is infinite and returned as None, next to the number of empty channels.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.measures.population import Counted, Population
from adapt.core.partitioning.measures.resources import Resources


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


def channel_loads(
    placed: Channels, counted: Counted, resources: Resources, channels: int, kept: NDArray[np.bool_] | None = None
) -> Floats:
    """L_k(i) of every channel (Eqs. 1, 3, 5); shape (3, channels).

    Counts are not normalized: whole numbers stay exact as floats, and no ratio depends on scale. Eq. 3 is read without
    its extra factor f, as Figure 1 and Eq. 17 compute it.

    Args:
        placed: The channel of each entry of the population (`Population.placed`).
        kept: Which of these count. Default: all.

    Source: partitioning functions, section 3.1.
    """
    population = Population.from_counts(counted)
    weights = {load: population.loads(load) for load in set(resources.loads)}
    if kept is not None:
        weights = {load: np.where(kept, each, 0.0) for load, each in weights.items()}
    of = {load: np.bincount(placed, each, channels) for load, each in weights.items()}
    return np.stack([of[load] for load in resources.loads])


def over_average(
    counted: Counted, partitioner: Partitioner, resources: Resources, capacities: Floats | None = None
) -> Floats:
    """The network load of each channel / mean load.

    Shape (channels,); all 0 without any load.
    """
    population = Population.from_counts(counted, partitioner)
    placed = population.placed(partitioner)
    loads = np.bincount(placed, population.loads(resources.network), partitioner.channels).astype(np.float64)
    return relative(loads, capacities)


def relative(loads: Floats | Sequence[float], capacities: Floats | Sequence[float] | None = None) -> Floats:
    """Loads of channels / mean load.

    With unequal capacities, utilizations / overall utilization.
    """
    each, total = np.asarray(loads, np.float64), float(np.sum(loads))
    own = np.ones(len(each)) if capacities is None else np.asarray(capacities, np.float64)
    return np.asarray(each / own * own.sum() / total) if total > 0 else np.zeros(len(each))
