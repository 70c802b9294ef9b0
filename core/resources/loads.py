"""What the keys of a stream load onto each channel."""

import numpy as np

from adapt.core.frequencies.frequencies import Frequencies
from adapt.core.partitioners.partitioner import Channels
from adapt.core.resources.functions import Floats, ResourceFunction, Resources


def channel_loads(placed: Channels, frequencies: Frequencies, resources: Resources, channels: int) -> Floats:
    """L_k(i) of every channel (Eqs. 1, 3, 5); shape (3, channels).

    Counts are weighed as they are: whole numbers stay exact as floats, and every ratio is free of their scale.
    Eq. 3 is read without its extra factor f, as Figure 1 and Eq. 17 compute it. What a lossy counter did not list
    is spread evenly, as hashing spreads many light keys.

    Args:
        placed: The channel of each listed key, shape (keys,).
        frequencies: The counted keys.
        resources: The functions that weigh them.
        channels: N.

    Source: partitioning functions, section 3.1.
    """
    of = {
        function: np.bincount(placed, weights=function.of(frequencies.count_low), minlength=channels)
        + _unlisted(frequencies, function) / channels
        for function in set(resources.functions)
    }
    return np.stack([of[function] for function in resources.functions])


def total_load(frequencies: Frequencies, function: ResourceFunction) -> float:
    """The load of all keys, listed or not."""
    return float(function.of(frequencies.count_low).sum()) + _unlisted(frequencies, function)


def _unlisted(frequencies: Frequencies, function: ResourceFunction) -> float:
    """The load of the keys that were counted but not listed, taken as equally heavy; 0 for exact counts."""
    if frequencies.epsilon == 0:
        return 0.0
    keys = max(frequencies.distinct - len(frequencies.keys), 0)
    weight = max(frequencies.total - float(frequencies.count_low.sum()), 0.0)
    match function:
        case ResourceFunction.CONSTANT:
            return float(keys)
        case ResourceFunction.LINEAR:
            return weight
        case ResourceFunction.QUADRATIC:
            return weight * weight / keys if keys else 0.0
