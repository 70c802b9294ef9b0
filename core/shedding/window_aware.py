"""Plans for Window Drop: what a planner wants of tuples, as shares of windows, and what these spare and give."""

from dataclasses import dataclass

import numpy as np

from adapt.core.resources.functions import Floats
from adapt.core.shedding.names import BATCH, OperatorKind
from adapt.core.shedding.network import Network, Operator, Window
from adapt.core.shedding.planner import Planner, Plans
from adapt.core.shedding.window_drop import needed_for, tuples_kept, windows_behind, windows_kept
from adapt.core.shedding.wiring import Wiring


@dataclass(frozen=True, slots=True, eq=False)
class WindowAware:
    """A planner whose drops before aggregates are of windows.

    The load that a drop spares is that of the tuples that go. So the planner decides on shares of tuples, in which its
    program is linear, and the share of windows that keeps so many tuples follows from the curve. What is given is that
    of windows, which is less; where batches are much longer than windows, hardly so.

    Attributes:
        planner: Decides on shares of tuples.
        wiring: Of the network.
        windows: What a result behind each arc needs; None where no aggregate is behind it, and tuples are dropped at
            random. Of every arc.
        batch: Windows that live or die together.
    """

    planner: Planner
    wiring: Wiring
    windows: tuple[Window | None, ...]
    batch: int = BATCH

    @classmethod
    def of(cls, planner: Planner, network: Network, batch: int = BATCH) -> "WindowAware":
        """A planner of a network, with its windows.

        Raises:
            UsageError: windows cannot be dropped somewhere, for aggregates side by side differ, or have no window.
        """
        wiring = Wiring.of(network)
        needed = tuple(needed_for(windows) if windows else None for windows in windows_behind(wiring))
        return cls(planner, wiring, needed, batch)

    def plan(self, rates: Floats) -> Plans:
        """Shares of windows on arcs before aggregates, of tuples elsewhere; the score is what they give."""
        planned = self.planner.plan(rates)
        keeps = planned.keeps.copy()
        for arc, window in enumerate(self.windows):
            shed = np.flatnonzero(keeps[:, arc] < 1)
            if window is not None and len(shed):
                keeps[shed, arc] = windows_kept(window, self.batch, keeps[shed, arc])
        _, given = self.flows(rates, keeps)
        return Plans(keeps, self.wiring.scores(given), planned.ids)

    def flows(self, rates: Floats, keeps: Floats) -> tuple[Floats, Floats]:
        """What flows where these shares are kept, of windows on arcs before aggregates.

        Args:
            rates: Offered, shape (points, inputs).
            keeps: Shape (points, arcs).

        Returns:
            On each arc the tuples/s that are kept, which load nodes, and of them those that count for results: a tuple
            in n windows of which m live counts m / n. Shape (points, arcs) each.
        """
        wiring = self.wiring
        sources = wiring.network.sources
        tuples, counting = np.zeros((len(rates), len(sources))), np.zeros((len(rates), len(sources)))
        tuples[:, : wiring.inputs] = counting[:, : wiring.inputs] = rates
        kept, worth = np.empty((len(rates), len(wiring.arcs))), np.empty((len(rates), len(wiring.arcs)))
        for arc, (source, window) in enumerate(zip(wiring.source, self.windows, strict=True)):
            share = keeps[:, arc]
            of_tuples = share if window is None else tuples_kept(window, self.batch, share)
            kept[:, arc] = tuples[:, source] * of_tuples
            # Where no windows are behind, every tuple that is there counts, also if it came with windows that died.
            worth[:, arc] = kept[:, arc] if window is None else counting[:, source] * share
            target = wiring.target[arc]
            if target >= 0:
                operator = sources[target]
                gives = wiring.gain[arc]
                aggregates = isinstance(operator, Operator) and operator.kind is OperatorKind.AGGREGATE
                counting[:, target] += gives * worth[:, arc]
                tuples[:, target] += gives * (worth if aggregates else kept)[:, arc]
        return kept, worth
