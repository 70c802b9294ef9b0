"""Upper bounds of the rates on the arcs of a network."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.program.program import Program


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Upper bounds of arriving rates, as known upstream."""

    arcs: Indices  # shape (arcs,)
    most: Floats  # the highest rate if all else is dropped, tuples/s, shape (arcs,)
    # the highest rate at which the arc's feeder alone fits without drops; inf without a limit, or with several
    # feeders. Shape (arcs,)
    corners: Floats

    @classmethod
    def joined(cls, parts: "Sequence[Bounds]") -> "Bounds":
        """All bounds together, arcs ascending."""
        arcs = np.concatenate([part.arcs for part in parts])
        order = np.argsort(arcs)
        most = np.concatenate([part.most for part in parts])
        corners = np.concatenate([part.corners for part in parts])
        return cls(arcs[order], most[order], corners[order])

    def on(self, arcs: Indices) -> "Bounds":
        """The bounds of some of the arcs."""
        at = np.searchsorted(self.arcs, arcs)
        return Bounds(arcs, self.most[at], self.corners[at])


def bounds_of_inputs(program: Program, most: Floats) -> Bounds:
    """The bounds on the arcs of inputs.

    Args:
        most: The highest rates, tuples/s, shape (inputs,).
    """
    wiring = program.wiring
    arcs = np.flatnonzero(wiring.source < wiring.inputs)
    return Bounds(arcs, most[wiring.source[arcs]], np.full(len(arcs), np.inf))
