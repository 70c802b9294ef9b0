"""A scenario ready to be simulated: rows and stage."""

from dataclasses import dataclass

from adapt.core.fit.control import Sent
from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.offered_load import Bounds, Demand, bounds_of
from adapt.core.stage.movement.spilling import Memory


@dataclass(frozen=True, slots=True, eq=False)
class Staged:
    """A scenario ready to be simulated.

    Attributes:
        sent: Messages that were exchanged to plan drops.
    """

    rows: Rows  # the tuples
    demand: Demand  # their offered load
    settings: StageSettings
    memory: Memory | None  # memory of a worker; None, no limit
    rows_read: int  # number of rows, without merge messages and without those that a planner dropped
    dropped: int = 0  # rows that a planner dropped before they reached workers
    sent: Sent = Sent()  # noqa: RUF009 - frozen

    @property
    def bounds(self) -> Bounds:
        """Bounds of its throughput."""
        return bounds_of(self.demand, self.settings)

    @property
    def drop_rate(self) -> float:
        """Share of the rows that a planner dropped."""
        return self.dropped / (self.dropped + self.rows_read)
