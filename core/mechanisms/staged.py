"""A scenario ready to be simulated: rows and stage."""

from dataclasses import dataclass, replace

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
    # workers of the ordered runtime that share the rows at the start, and own no partitions; None, all own some
    sharing: int | None = None

    @property
    def bounds(self) -> Bounds:
        """Bounds of its throughput.

        Where workers share all partitions, those of the best placement on the workers at the start.
        """
        bounds = bounds_of(self.demand, self.settings)
        if self.sharing is None:
            return bounds
        even, best = bounds.even_load, bounds.best_load
        at_start = None if even is None or best is None else max(best, even * self.settings.workers / self.sharing)
        return replace(bounds, static_load=at_start, static_s=bounds.least_s)

    @property
    def drop_rate(self) -> float:
        """Share of the rows that a planner dropped."""
        return self.dropped / (self.dropped + self.rows_read)
