"""The interface of drop planners."""

from dataclasses import dataclass
from typing import Protocol

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices

UNSHED = 0
"""Id of the plan that drops nothing."""

NO_PLAN = -1
"""Id where no plan in the table fits: everything is dropped."""

BEST = -3
"""Id where the table of plans proves too little: the best plan takes its place."""

ALONE = -4
"""Id where a node drops by itself: it has no plan, or an old one that would overload it."""

MADE = 1
"""Id of plans made on demand."""


@dataclass(frozen=True, slots=True, eq=False)
class Plans:
    """Drop plans for several points of rates."""

    keeps: Floats  # share kept on each arc, in [0, 1]; shape (points, arcs)
    scores: Floats  # expected weighted tuples/s; shape (points,)
    # plan id in the table, or one of the constants above, per independent part of the network; shape (points, parts)
    ids: Indices


class Planner(Protocol):
    """Chooses the share of the tuples kept on each arc."""

    def plan(self, rates: Floats) -> Plans:
        """Plan for rates, tuples/s, finite and at least 0; shape (points, inputs)."""
        ...
