"""Plans for Window Drop: shares of tuples turned into shares of windows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.names import BATCH
from adapt.core.fit.network.network import Network, Operator, Window
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.planners.planner import Planner, Plans
from adapt.core.fit.running.window_drop import (
    aggregates,
    decided_together,
    needed_for,
    tuples_kept,
    windows_behind,
    windows_kept,
)


@dataclass(frozen=True, slots=True, eq=False)
class WindowAware:
    """A planner that drops whole windows before aggregates.

    A drop saves the load of the tuples removed. So the planner decides on shares of tuples, in which its program is
    linear, and the share of windows that keeps as many tuples follows from the curve. The output is that of the windows
    kept, which is less; hardly so where batches are much longer than windows.

    A window of streams that merge needs the tuples of all of them. Where one node or a coordinator plans for them, they
    keep the same share, the highest that overloads nothing with the other drops of the plan. Nodes that plan for
    themselves keep what they like, and a window survives if all keep it.
    """

    planner: Planner  # decides on shares of tuples
    wiring: Wiring
    # windows of the aggregates downstream of each arc, nearest first; empty where random tuples are dropped
    behind: tuple[tuple[Window, ...], ...]
    # arcs before aggregates that keep the same share, for each place where streams merge
    merged: tuple[tuple[int, ...], ...] = ()
    headroom: float = 0.0  # share of every capacity that plans leave free
    batch: int = BATCH  # consecutive windows kept or dropped together

    @classmethod
    def for_network(
        cls,
        planner: Planner,
        network: Network,
        batch: int = BATCH,
        headroom: float = 0.0,
        *,
        together: bool = True,
    ) -> "WindowAware":
        """A planner of a network, with its windows.

        Args:
            together: Whether one planner decides for all nodes.
        """
        wiring = Wiring.from_network(network)
        behind = windows_behind(wiring)
        groups = (tuple(group) for group in decided_together(wiring, behind) if _merges(wiring, group))
        merged = tuple(group for group in groups if together or len(_nodes(wiring, group)) == 1)
        return cls(planner, wiring, behind, merged, headroom, batch)

    def plan(self, rates: Floats) -> Plans:
        """Shares of windows on arcs before aggregates, of tuples elsewhere."""
        planned = self.planner.plan(rates)
        keeps, _, worth = self._passed(rates, self._merged(rates, planned.keeps), of_tuples=True)
        return Plans(keeps, self.wiring.scores(worth), planned.ids)

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
        return self._passed(rates, keeps, of_tuples=False)[1:]

    def _merged(self, rates: Floats, keeps: Floats) -> Floats:
        """Shares of tuples, the same ones where streams merge."""
        wiring = self.wiring
        for group in self.merged:
            arcs = np.array(group)
            inputs = arcs[wiring.source[arcs] < wiring.inputs]
            whole = keeps.copy()
            whole[:, arcs] = 1.0
            without = whole.copy()
            without[:, inputs] = 0.0
            used, highest, least = (wiring.uses(wiring.flows(rates, each)) for each in (keeps, whole, without))
            free, load = np.maximum(1 - self.headroom, used) - least, highest - least
            share = np.divide(free, load, out=np.ones_like(load), where=load > free).min(axis=1)
            whole[:, inputs] = np.maximum(share, 0.0)[:, None]
            drops = (keeps[:, arcs] < 1).any(axis=1, keepdims=True)
            keeps = np.where(drops, whole, keeps)
        return keeps

    def _passed(self, rates: Floats, shares: Floats, *, of_tuples: bool) -> tuple[Floats, Floats, Floats]:
        """Shares of windows, the flows that they keep, and those that count.

        Args:
            shares: Of each arc, shape (points, arcs).
            of_tuples: Whether they are shares of tuples also where windows are dropped.
        """
        wiring = self.wiring
        sources, per_arc = (len(rates), len(wiring.network.sources)), (len(rates), len(wiring.arcs))
        whole, given, alive = np.zeros(sources), np.zeros(sources), np.ones(sources)
        whole[:, : wiring.inputs] = given[:, : wiring.inputs] = rates
        keeps, kept, worth = shares.copy(), np.empty(per_arc), np.empty(per_arc)
        for arc, (source, windows) in enumerate(zip(wiring.source, self.behind, strict=True)):
            offered, target, gain = whole[:, source], wiring.target[arc], wiring.gain[arc]
            if not windows:  # every tuple counts, even one from dropped windows
                kept[:, arc] = worth[:, arc] = given[:, source] * shares[:, arc]
                if target >= 0:
                    given[:, target] += gain * kept[:, arc]
                continue
            before, needed = alive[:, source], needed_for(windows)
            if of_tuples:
                shed = (shares[:, arc] < 1) & (offered > 0) & (before > 0)
                wanted = windows_kept(needed, self.batch, given[shed, source] * shares[shed, arc] / offered[shed])
                keeps[shed, arc] = np.minimum(wanted / before[shed], 1.0)
            through = before * keeps[:, arc]
            kept[:, arc] = offered * tuples_kept(needed, self.batch, through)
            worth[:, arc] = offered * through
            alive[:, target] = np.minimum(alive[:, target], through)
            whole[:, target] += gain * offered
            if not aggregates(wiring, arc):
                given[:, target] += gain * kept[:, arc]
            elif windows[1:]:
                given[:, target] += gain * offered * tuples_kept(needed_for(windows[1:]), self.batch, through)
            else:
                given[:, target] += gain * worth[:, arc]
        return keeps, kept, worth


def _merges(wiring: Wiring, arcs: Sequence[int]) -> bool:
    """Whether streams merge at an operator behind these arcs."""
    return len({int(wiring.target[arc]) for arc in arcs}) < len(arcs)


def _nodes(wiring: Wiring, arcs: Sequence[int]) -> set[str]:
    """Nodes of the operators behind arcs."""
    operators = (wiring.network.sources[wiring.target[arc]] for arc in arcs)
    return {operator.node for operator in operators if isinstance(operator, Operator)}
