"""A region quadtree over rates: boxes, halved along every input."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled
from adapt.core.fit.network.wiring import Indices


@dataclass(frozen=True, slots=True, eq=False)
class RegionTree:
    """Regions by number, the whole box first.

    Source: FIT, section 5.1; Samet, The Quadtree and Related Hierarchical Data Structures (1984).
    """

    most: Floats  # the top corner of the box, tuples/s, shape (inputs,)
    axes: Indices  # the inputs that are divided: those whose rate can be above 0
    # the first of the 2^axes consecutive parts of a region; bit k of their offset is 1 in the upper half of axis k.
    # -1: not divided. Shape (regions,)
    child: Indices
    plan: Indices  # the plan of an undivided region; -1: it needs none. Shape (regions,)

    def find(self, rates: Floats) -> Indices:
        """The plans of points; points outside the box are clamped to it."""
        found = np.empty(len(rates), np.int64)
        _find(rates, self.most, self.axes, self.child, self.plan, found)
        return found


@compiled
def _find(rates: Floats, most: Floats, axes: Indices, child: Indices, plan: Indices, found: Indices) -> None:
    low, high = np.empty(len(most)), np.empty(len(most))
    for point in range(len(rates)):
        region = 0
        for axis in axes:
            low[axis], high[axis] = 0.0, most[axis]
        while child[region] >= 0:
            offset = 0
            for bit in range(len(axes)):
                axis = axes[bit]
                middle = (low[axis] + high[axis]) / 2
                if rates[point, axis] >= middle:
                    offset |= 1 << bit
                    low[axis] = middle
                else:
                    high[axis] = middle
            region = child[region] + offset
        found[point] = plan[region]
