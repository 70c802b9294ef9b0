"""The highest rates that can arrive on the arcs of a network."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.program.program import Program


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """What can come on some arcs, as those before them know it.

    Attributes:
        arcs: Shape (arcs,).
        most: The highest rate if all else is dropped, tuples/s, shape (arcs,).
        corners: The highest rate with which what feeds the arc fits alone and without drops; inf where nothing limits
            it, or where it is not fed by one arc alone. Shape (arcs,).
    """

    arcs: Indices
    most: Floats
    corners: Floats

    @classmethod
    def joined(cls, parts: "Sequence[Bounds]") -> "Bounds":
        """All of them, arcs in rising order."""
        arcs = np.concatenate([part.arcs for part in parts])
        order = np.argsort(arcs)
        most = np.concatenate([part.most for part in parts])
        corners = np.concatenate([part.corners for part in parts])
        return cls(arcs[order], most[order], corners[order])

    def on(self, arcs: Indices) -> "Bounds":
        """Of some of the arcs, which must all be here."""
        at = np.searchsorted(self.arcs, arcs)
        return Bounds(arcs, self.most[at], self.corners[at])


def bounds_of_inputs(program: Program, most: Floats) -> Bounds:
    """What can come on the arcs of inputs.

    Args:
        most: The highest rates, tuples/s, shape (inputs,).
    """
    wiring = program.wiring
    arcs = np.flatnonzero(wiring.source < wiring.inputs)
    return Bounds(arcs, most[wiring.source[arcs]], np.full(len(arcs), np.inf))
