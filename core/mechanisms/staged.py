"""A scenario ready to be simulated: rows, stage, price."""

from dataclasses import dataclass, replace

from adapt.core.elastic.replay.regret import Bill, Plannable
from adapt.core.fit.control import Sent
from adapt.core.stage.conditions.arrivals import Rows
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.offered_load import Bounds, Demand, bounds_of
from adapt.core.stage.movement.spilling import Memory


@dataclass(frozen=True, slots=True, eq=False)
class Staged:
    """A scenario ready to be simulated.

    Attributes:
        rows: The tuples.
        demand: Their offered load.
        settings: The stage.
        memory: Memory of a worker; None, no limit.
        rows_read: Number of rows, without merge messages and without those that a planner dropped.
        bill: How the scenario is priced: a row costs the mean of all rows, whatever is dropped or merged.
        known: The stream in advance, for the optimum; None for others.
        dropped: Rows that a planner dropped before they reached workers.
        sent: Messages that were exchanged to plan drops.
        is_ordered: Whether workers share the rows in the ordered runtime, and own no partitions.
    """

    rows: Rows
    demand: Demand
    settings: StageSettings
    memory: Memory | None
    rows_read: int
    bill: Bill
    known: Plannable | None = None
    dropped: int = 0
    sent: Sent = Sent()  # noqa: RUF009 - frozen
    is_ordered: bool = False

    @property
    def bounds(self) -> Bounds:
        """Bounds of its throughput.

        Those of the best placement where workers share all partitions.
        """
        bounds = bounds_of(self.demand, self.settings)
        if not self.is_ordered:
            return bounds
        return replace(bounds, static_load=bounds.best_load, static_s=bounds.least_s)

    @property
    def drop_rate(self) -> float:
        """Share of the rows that a planner dropped."""
        return self.dropped / (self.dropped + self.rows_read)
