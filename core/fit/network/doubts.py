"""Doubts about a network: values that are allowed but cannot be meant."""

from collections.abc import Iterator

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Wiring

_BEYOND = 50.0
"""Utilization without drops from which on a unit must be wrong."""


def doubts(wiring: Wiring, rates: Floats) -> Iterator[str]:
    """What in a network can hardly be right.

    Args:
        rates: Tuples/s of each input, shape (times, inputs).
    """
    if not wiring.worth.any():
        yield "every output has weight 0, so no tuple has a value; give an output a weight above 0"
    flows = wiring.unshed(rates)
    for at, most in enumerate(wiring.uses(flows).max(axis=0, initial=0.0)):
        if most < _BEYOND:
            continue
        name, nodes = wiring.resources[at], len(wiring.network.nodes)
        arc = int(np.argmax((wiring.use[at] * flows).max(axis=0)))
        largest = f"{wiring.arcs[arc].target!r} needs {wiring.use[at, arc]:g}"
        units = (
            f"cost is in CPU seconds per tuple ({largest}), capacity in CPU seconds per second"
            if at < nodes
            else f"out_bytes is in bytes per tuple ({largest}), bandwidth in bytes per second"
        )
        yield f"{name} would need {most:,.0f} times its capacity; check units: {units}"
