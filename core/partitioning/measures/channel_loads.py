"""Loads of channels."""

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.measures.population import Counted, Population
from adapt.core.partitioning.measures.resources import Resources


def channel_loads(
    placed: Channels, counted: Counted, resources: Resources, channels: int, kept: NDArray[np.bool_] | None = None
) -> Floats:
    """L_k(i) of every channel (Eqs. 1, 3, 5); shape (3, channels).

    Counts are not normalized: whole numbers stay exact as floats, and no ratio depends on scale. Eq. 3 is read without
    its extra factor f, as Figure 1 and Eq. 17 compute it.

    Args:
        placed: The channel of each key of the population, shape (keys,).
        kept: Which of these keys count, shape (keys,). Default: all.

    Raises:
        UsageError: a load was not measured.

    Source: partitioning functions, section 3.1.
    """
    population = Population.from_counts(counted)
    weights = {load: population.loads(load) for load in set(resources.loads)}
    if kept is not None:
        weights = {load: np.where(kept, each, 0.0) for load, each in weights.items()}
    of = {load: np.bincount(placed, each, channels) for load, each in weights.items()}
    return np.stack([of[load] for load in resources.loads])
