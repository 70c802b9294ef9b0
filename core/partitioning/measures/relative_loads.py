"""Relative loads of channels: load / mean load."""

from collections.abc import Sequence

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.measures.population import Counted, Population
from adapt.core.partitioning.measures.resources import Resources


def over_average(
    counted: Counted, partitioner: Partitioner, resources: Resources, capacities: Floats | None = None
) -> Floats:
    """The network load of each channel / mean load.

    Shape (channels,); all 0 without any load.
    """
    population = Population.from_counts(counted)
    placed = partitioner.channels_of(population.keys)
    loads = np.bincount(placed, population.loads(resources.network), partitioner.channels).astype(np.float64)
    return relative(loads, capacities)


def relative(loads: Floats | Sequence[float], capacities: Floats | Sequence[float] | None = None) -> Floats:
    """Loads of channels / mean load.

    With unequal capacities, utilizations / overall utilization.
    """
    each, total = np.asarray(loads, np.float64), float(np.sum(loads))
    own = np.ones(len(each)) if capacities is None else np.asarray(capacities, np.float64)
    return np.asarray(each / own * own.sum() / total) if total > 0 else np.zeros(len(each))
