"""Loads of channels."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.measures.population import Counted, Population
from adapt.core.partitioning.measures.resources import Resources


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
