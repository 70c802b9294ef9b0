"""What one planner achieved in a replay of a query network."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.control import Decision
from adapt.core.fit.distributed.messages import Topic, Traffic
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.observing import Observation
from adapt.core.fit.planners.plan_table import Proof
from adapt.core.fit.running.tick import Tick
from adapt.core.histogram import percentile

FULL = 1 + 1e-9
"""Utilization above which a resource is overloaded; less is rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class Followed:
    """What nodes observed, and what they sent each other because of it."""

    observations: tuple[Observation, ...]  # one per tick
    first_bytes: int  # bytes of the first tables, conditions, bounds and cuts; 0 where messages take time
    bytes: int  # bytes of all of them, later changes included


@dataclass(frozen=True, slots=True, eq=False)
class FitOutcome:
    """One planner over a trace."""

    planner: str
    ticks: tuple[Tick, ...]
    decisions: tuple[Decision, ...]  # one per tick
    latencies: NDArray[np.int64]  # results by latency bin; empty for a fluid flow
    prepared_s: float  # time to build the planner
    sent: Traffic  # messages exchanged to plan
    table: int | None  # number of precomputed plans or table rows; None without tables
    proof: Proof  # the proved loss of precomputed plans
    kept_use: Floats  # utilization of each node and link by the tuples kept; shape (ticks, resources)
    traffic: Mapping[Topic, Traffic] = field(default_factory=dict)  # the same messages by topic
    followed: Followed | None = None  # what nodes observed; None if they did not

    @property
    def scores(self) -> Floats:
        """Weighted tuples/s of each tick, shape (ticks,)."""
        return np.array([tick.score for tick in self.ticks])

    def reached(self, optimum: Floats, ticks: NDArray[np.bool_] | None = None) -> float | None:
        """The score as a share of the best; None without one.

        Args:
            ticks: The ticks to count, shape (ticks,); None: all.
        """
        chosen = slice(None) if ticks is None else ticks
        best = float(optimum[chosen].sum())
        return min(float(self.scores[chosen].sum()) / best, 1.0) if best else None

    @property
    def overloaded(self) -> NDArray[np.bool_]:
        """Whether plans keep more than a resource can do; shape (ticks,)."""
        return overloaded(self.kept_use)

    def grows(self, offered_use: Floats) -> bool:
        """Whether the queue of an overloaded resource grows.

        More is kept than it can do, over the ticks in which more is offered than it can do.

        A plan made from rates of earlier ticks may overload a resource once, and let its queue drain then.

        Args:
            offered_use: Utilization by everything offered, shape (ticks, resources).

        Source: FIT, Eq. 1, over time.
        """
        excess = np.where(offered_use > FULL, self.kept_use - 1, 0.0).sum(axis=0)
        return bool((excess > (FULL - 1) * len(offered_use)).any())

    @property
    def planned_s(self) -> float:
        """Total planning time, without building the planner."""
        return sum(decision.planned_s for decision in self.decisions)

    @property
    def changes(self) -> int:
        """Ticks with a changed share."""
        return sum(decision.changed for decision in self.decisions)

    @property
    def stale(self) -> int:
        """Ticks planned before all messages had arrived."""
        return sum(decision.stale for decision in self.decisions)

    @property
    def plans(self) -> int:
        """Number of distinct plans used, including the one that drops nothing."""
        return len({decision.plans.tobytes() for decision in self.decisions})

    def total(self, name: str) -> Floats:
        """The sum over all ticks of an amount by arc; shape (arcs,)."""
        return np.asarray(sum(getattr(tick, name) for tick in self.ticks))

    def latency_s(self, share: float) -> float | None:
        """The latency that `share` of the results do not exceed."""
        return percentile(self.latencies, share)

    def errors(self, optimum: Floats) -> Floats:
        """Relative loss of score per tick, in [0, 1]; empty ticks omitted."""
        possible = optimum > 0
        return np.clip(1 - self.scores[possible] / optimum[possible], 0.0, 1.0)


def overloaded(use: Floats) -> NDArray[np.bool_]:
    """Which ticks overload a resource; shape (ticks, resources) to (ticks,)."""
    return np.asarray((use > FULL).any(axis=1))


def kept_use(wiring: Wiring, flows: Floats, cost_scale: float) -> Floats:
    """Utilization of resources by flows, tuples/s, shape (ticks, arcs); see `FitOutcome.kept_use`."""
    uses = wiring.uses(flows)
    uses[:, : len(wiring.network.nodes)] *= cost_scale
    return uses
