"""What a replay of a query network with one planner comes to."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.control import Decision, Sent
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.running.tick import Tick
from adapt.core.histogram import percentile

FULL = 1 + 1e-9
"""More of a resource than this part of it is too much; less is rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class FitOutcome:
    """One planner over a trace.

    Attributes:
        decisions: What was decided for each of them.
        latencies: Of all results, by bin; none where fluid flows.
        prepared_s: How long it took to make the planner.
        sent: What nodes told each other.
        table: Plans or rows of tables that were made in advance; None, there are none.
        epsilon: What plans made in advance came to: what those of solver lose of the best score at most, those of
            solver-w on average, and how wide apart the rates in tables of c-fit and d-fit are. None, there are none.
        kept_use: Of each node and link, what the tuples kept of what came would need, as parts of what there is; shape
            (ticks, resources).
    """

    planner: str
    ticks: tuple[Tick, ...]
    decisions: tuple[Decision, ...]
    latencies: NDArray[np.int64]
    prepared_s: float
    sent: Sent
    table: int | None
    epsilon: float | None
    kept_use: Floats

    @property
    def scores(self) -> Floats:
        """Weighted tuples/s of each tick, shape (ticks,)."""
        return np.array([tick.score for tick in self.ticks])

    @property
    def overloaded(self) -> NDArray[np.bool_]:
        """Whether more was kept in a tick than a node or link can do, shape (ticks,)."""
        return overloaded(self.kept_use)

    @property
    def planned_s(self) -> float:
        """All planning, the making of the planner left out."""
        return sum(decision.planned_s for decision in self.decisions)

    @property
    def changes(self) -> int:
        """Ticks in which a share changed."""
        return sum(decision.changed for decision in self.decisions)

    @property
    def stale(self) -> int:
        """Ticks that were planned while something was still to be told."""
        return sum(decision.stale for decision in self.decisions)

    @property
    def plans(self) -> int:
        """Different plans that were used, that which drops nothing included."""
        return len({decision.plans.tobytes() for decision in self.decisions})

    def total(self, name: str) -> Floats:
        """Of all ticks, one of the amounts by arc; shape (arcs,)."""
        return np.asarray(sum(getattr(tick, name) for tick in self.ticks))

    def latency_s(self, share: float) -> float | None:
        """What `share` of the results do not exceed."""
        return percentile(self.latencies, share)

    def errors(self, optimum: Floats) -> Floats:
        """What each tick lost of its best score, those where nothing could be had left out; at least 0."""
        possible = optimum > 0
        return np.maximum(1 - self.scores[possible] / optimum[possible], 0.0)


def overloaded(use: Floats) -> NDArray[np.bool_]:
    """In which ticks more of a node or link is used than there is; shape (ticks, resources) to (ticks,)."""
    return np.asarray((use > FULL).any(axis=1))


def kept_use(wiring: Wiring, flows: Floats, cost_scale: float) -> Floats:
    """See `FitOutcome.kept_use`; of what is kept on arcs, tuples/s, shape (ticks, arcs)."""
    uses = wiring.uses(flows)
    uses[:, : len(wiring.network.nodes)] *= cost_scale
    return uses
