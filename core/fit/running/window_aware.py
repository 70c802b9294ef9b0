"""Plans for Window Drop: shares of tuples turned into shares of windows."""

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
    """A planner that drops whole windows before aggregates.

    A drop saves the load of the tuples removed. So the planner decides on shares of tuples, in which its program is
    linear, and the share of windows that keeps as many tuples follows from the curve. The output is that of the windows
    kept, which is less; hardly so where batches are much longer than windows.

    Attributes:
        planner: Decides on shares of tuples.
        behind: Windows of the aggregates downstream of each arc, nearest first; empty where random tuples are dropped.
        batch: Consecutive windows kept or dropped together.
    """

    planner: Planner
    wiring: Wiring
    behind: tuple[tuple[Window, ...], ...]
    batch: int = BATCH

    @classmethod
    def for_network(cls, planner: Planner, network: Network, batch: int = BATCH) -> "WindowAware":
        """A planner of a network, with its windows.

        Raises:
            UsageError: windows cannot be dropped: parallel aggregates differ, or have no window.
        """
        wiring = Wiring.from_network(network)
        return cls(planner, wiring, windows_behind(wiring), batch)

    def plan(self, rates: Floats) -> Plans:
        """Shares of windows on arcs before aggregates, of tuples elsewhere."""
        planned = self.planner.plan(rates)
        keeps = planned.keeps.copy()
        for arc, windows in enumerate(self.behind):
            shed = np.flatnonzero(keeps[:, arc] < 1)
            if windows and len(shed):
                keeps[shed, arc] = windows_kept(needed_for(windows), self.batch, keeps[shed, arc])
        _, given = self.flows(rates, keeps)
        return Plans(keeps, self.wiring.scores(given), planned.ids)

    def flows(self, rates: Floats, keeps: Floats) -> tuple[Floats, Floats]:
        """Flows at these shares, of windows on arcs before aggregates.

        Args:
            rates: Offered, shape (points, inputs).
            keeps: Shape (points, arcs).

        Returns:
            The tuples/s kept on each arc, which load nodes, and those that count for results: a tuple in n windows, m
                of them kept, counts m / n. An aggregate before another opens the windows that a kept window of the last
                one needs; their share is that of the tuples that the last one needs. Shape (points, arcs) each.
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
            # Without windows downstream, every tuple counts, even one from dropped windows.
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
