"""Plans for Window Drop: what a planner wants of tuples, as shares of windows, and what these spare and give."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.names import BATCH
from adapt.core.fit.network.network import Network, Window
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.planners.planner import Planner, Plans
from adapt.core.fit.running.window_drop import aggregates, needed_for, tuples_kept, windows_behind, windows_kept


@dataclass(frozen=True, slots=True, eq=False)
class WindowAware:
    """A planner whose drops before aggregates are of windows.

    The load that a drop spares is that of the tuples that go. So the planner decides on shares of tuples, in which its
    program is linear, and the share of windows that keeps so many tuples follows from the curve. What is given is that
    of windows, which is less; where batches are much longer than windows, hardly so.

    Attributes:
        planner: Decides on shares of tuples.
        behind: The windows of the aggregates behind each arc, nearest first; none where tuples are dropped at random.
            Of every arc.
        batch: Windows that live or die together.
    """

    planner: Planner
    wiring: Wiring
    behind: tuple[tuple[Window, ...], ...]
    batch: int = BATCH

    @classmethod
    def for_network(cls, planner: Planner, network: Network, batch: int = BATCH) -> "WindowAware":
        """A planner of a network, with its windows.

        Raises:
            UsageError: windows cannot be dropped somewhere, for aggregates side by side differ, or have no window.
        """
        wiring = Wiring.from_network(network)
        return cls(planner, wiring, windows_behind(wiring), batch)

    def plan(self, rates: Floats) -> Plans:
        """Shares of windows on arcs before aggregates, of tuples elsewhere; the score is what they give."""
        planned = self.planner.plan(rates)
        keeps = planned.keeps.copy()
        for arc, windows in enumerate(self.behind):
            shed = np.flatnonzero(keeps[:, arc] < 1)
            if windows and len(shed):
                keeps[shed, arc] = windows_kept(needed_for(windows), self.batch, keeps[shed, arc])
        _, given = self.flows(rates, keeps)
        return Plans(keeps, self.wiring.scores(given), planned.ids)

    def flows(self, rates: Floats, keeps: Floats) -> tuple[Floats, Floats]:
        """What flows where these shares are kept, of windows on arcs before aggregates.

        Args:
            rates: Offered, shape (points, inputs).
            keeps: Shape (points, arcs).

        Returns:
            On each arc the tuples/s that are kept, which load nodes, and of them those that count for results: a tuple
            in n windows of which m live counts m / n. An aggregate before another opens the windows that a live one of
            the last needs, whose share is that of tuples which the last needs. Shape (points, arcs) each.
        """
        wiring = self.wiring
        sources = wiring.network.sources
        tuples, whole, counting = (np.zeros((len(rates), len(sources))) for _ in range(3))
        for of_inputs in (tuples, whole, counting):
            of_inputs[:, : wiring.inputs] = rates
        kept, worth = np.empty((len(rates), len(wiring.arcs))), np.empty((len(rates), len(wiring.arcs)))
        for arc, (source, windows) in enumerate(zip(wiring.source, self.behind, strict=True)):
            share = keeps[:, arc]
            of_tuples = tuples_kept(needed_for(windows), self.batch, share) if windows else share
            kept[:, arc] = tuples[:, source] * of_tuples
            # Where no windows are behind, every tuple that is there counts, also if it came with windows that died.
            worth[:, arc] = counting[:, source] * share if windows else kept[:, arc]
            target = wiring.target[arc]
            if target < 0:
                continue
            offered = whole[:, source] if windows else kept[:, arc]
            given = kept[:, arc]
            if aggregates(wiring, arc):
                given = worth[:, arc]
                if windows[1:]:
                    live = np.divide(worth[:, arc], offered, out=np.zeros_like(offered), where=offered > 0)
                    given = offered * tuples_kept(needed_for(windows[1:]), self.batch, live)
                else:
                    offered = given
            for of_target, amount in ((tuples, given), (whole, offered), (counting, worth[:, arc])):
                of_target[:, target] += wiring.gain[arc] * amount
        return kept, worth
