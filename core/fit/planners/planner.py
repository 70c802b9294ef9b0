"""What planners are asked and what they answer."""

from dataclasses import dataclass
from typing import Protocol

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices

UNSHED = 0
"""The id of the plan that drops nothing."""

NO_PLAN = -1
"""The id where a table has no plan that fits: everything is dropped."""

MADE = 1
"""The id of plans that are made for the point and stand in no table."""


@dataclass(frozen=True, slots=True, eq=False)
class Plans:
    """Plans for some points of rates.

    Attributes:
        keeps: The share kept on each arc, in [0, 1]; shape (points, arcs).
        scores: What the planner expects of them, weighted tuples/s; shape (points,).
        ids: Of the plan in the table, or one of the above; for each part of the network that is planned by itself.
            Shape (points, parts).
    """

    keeps: Floats
    scores: Floats
    ids: Indices


class Planner(Protocol):
    """Decides which share of the tuples is kept on which arc."""

    def plan(self, rates: Floats) -> Plans:
        """Plans for rates, tuples/s, finite and from 0 up; shape (points, inputs)."""
        ...
