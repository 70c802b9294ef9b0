"""What decides, tick by tick, on the shares that are kept: known rates, a planner, and what is measured of nodes."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.names import DropPlanner, Drops
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.settings import SheddingSettings
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.planners.fragments import FragmentPlanner
from adapt.core.fit.planners.planner import UNSHED, Planner
from adapt.core.fit.registry import Distributed, PlannerOptions, Precomputed, planner_of
from adapt.core.fit.running.tick import Tick
from adapt.core.fit.running.window_aware import WindowAware

_LEARNED = 0.3
"""Weight of the newest tick in what is thought of a node's speed."""

_LEAST_WORK = 0.01
"""Part of a node's capacity below which a tick says nothing of its speed."""

MAX_TOGETHER = 4096
"""Ticks whose plans are made together, at most."""

_CORRECTED = 0.01
"""Capacities are corrected when they change by more than this part; a planner is made anew for that."""


@dataclass(frozen=True, slots=True)
class Sent:
    """Messages between nodes, those sent again included, their rows and bytes."""

    messages: int = 0
    rows: int = 0
    size: int = 0

    def __sub__(self, before: "Sent") -> "Sent":
        """What was sent since."""
        return Sent(self.messages - before.messages, self.rows - before.rows, self.size - before.size)


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What is done in a tick.

    Attributes:
        rates: For which it was planned, tuples/s, shape (inputs,).
        keeps: The shares that are kept on arcs, shape (arcs,).
        plans: Ids of the plan, one for each fragment; shape (fragments,).
        changed: Whether any share is not that of the tick before.
        planned_s: How long planning took by the clock; where it was for many ticks together, its part.
        sent: What nodes told each other since the tick before.
        stale: Whether some nodes planned without what others had told them and what was still on its way.
    """

    rates: Floats
    keeps: Floats
    plans: Indices
    changed: bool
    planned_s: float
    sent: Sent
    stale: bool


@dataclass(frozen=True, slots=True, eq=False)
class _Planned:
    rates: Floats
    keeps: Floats
    ids: Indices
    took_s: float


class Control:
    """Plans for every tick.

    Rates are those of `lag_ticks` before, smoothed; before any are known, nothing is dropped. What fits is not shed.
    Where a plan changes a share by less than `min_rate_change`, the old one stays.

    Where windows are dropped, shares before aggregates are of windows, such that nodes are loaded as was planned.

    Where messages take time, nodes begin to tell each other when the first tick does, unless the planner was made in
    advance; what has not arrived by then is not known to a tick's plan.

    With feedback, the work that a node does in a tick is held against what the served tuples should have cost; the
    ratio, smoothed, corrects the capacity that is planned with.

    Source: FIT, section 7; the engine in which the paper was implemented, for the least change.
    """

    def __init__(
        self,
        network: Network,
        name: DropPlanner,
        settings: SheddingSettings,
        options: PlannerOptions,
        clock: Callable[[], float],
        planner: FragmentPlanner | None = None,
    ) -> None:
        """A control that has seen nothing.

        Args:
            settings: Lag, smoothing, least change, feedback.
            clock: Tells seconds, for how long planning takes; nothing else depends on it.
            planner: The planner, if it was made in advance.

        Raises:
            UsageError: the planner needs an option that is not given, or cannot take this network.
        """
        self._network, self._name, self._settings, self._options = network, name, settings, options
        self._wiring, self._clock = Wiring.from_network(network), clock
        self._keeps = np.ones(len(self._wiring.arcs))
        self._seen: list[Floats] = []
        self._smooth: Floats | None = None
        self._announced: deque[Floats] = deque()
        self._planned: deque[_Planned] = deque()
        self._together, self._lost_s = 1, 0.0
        self._slowdown = np.ones(len(network.nodes))
        self._assumed = self._slowdown
        begun = clock()
        self._use(planner or planner_of(name, network, options))
        self._tick_s, self._ticks = settings.tick_us / 1e6, 0
        self._begun_s = [each.now_s for each in self._distributed]
        self._reported = Sent()
        self.prepared_s = clock() - begun
        """How long it took to make the planner, its table included; nothing to speak of if it was made in advance."""

    @property
    def sent(self) -> Sent:
        """What nodes have told each other so that plans could be made; nothing where one place plans."""
        traffic = [each for planner in self._distributed for each in planner.traffic().values()]
        return Sent(
            sum(each.messages for each in traffic),
            sum(each.rows for each in traffic),
            sum(each.size for each in traffic),
        )

    def decide(self, rates: Floats) -> Decision:
        """The shares for the next tick.

        Args:
            rates: Of that tick, tuples/s, shape (inputs,); used from `lag_ticks` later on. As foreseen, if they were.
        """
        stale = self._receive()
        if not self._planned:
            if not self._announced:
                self.announce(rates[None])
            self._plan_next()
        planned = self._planned.popleft()
        keeps, before = planned.keeps, self._keeps
        if (planned.ids != UNSHED).any():
            slight = np.abs(keeps - before) < self._settings.min_rate_change
            keeps = np.where(slight, before, keeps)
        changed = bool((keeps != before).any())
        self._keeps = keeps
        sent, self._reported = self.sent - self._reported, self.sent
        lost_s, self._lost_s = self._lost_s, 0.0
        return Decision(planned.rates, keeps, planned.ids, changed, planned.took_s + lost_s, sent, stale)

    def announce(self, rates: Floats) -> None:
        """Tell what rates come, so that the plans of several ticks can be made together, which is faster.

        Args:
            rates: Of the next ticks, shape (ticks, inputs).
        """
        self._announced.extend(map(self._known, rates))

    def observe(self, tick: Tick, tick_s: float) -> None:
        """What came of it."""
        if not self._settings.feedback:
            return
        nodes = len(self._network.nodes)
        should = (self._wiring.use @ tick.served)[:nodes] / (self._wiring.limits[:nodes] * tick_s)
        took = tick.busy_s[:nodes] / tick_s
        known = should > _LEAST_WORK
        ratio = np.divide(took, should, out=self._slowdown.copy(), where=known)
        self._slowdown = self._slowdown + _LEARNED * (ratio - self._slowdown)
        if (np.abs(self._slowdown / self._assumed - 1) > _CORRECTED).any():
            self._correct()

    def flows(self, rates: Floats, keeps: Floats) -> Floats:
        """Tuples/s that are kept on arcs where these shares are, of windows where those drop; shape (ticks, arcs)."""
        shedding = self._shedding
        return (
            shedding.flows(rates, keeps)[0] if isinstance(shedding, WindowAware) else self._wiring.flows(rates, keeps)
        )

    @property
    def table(self) -> int | None:
        """Plans or rows of tables that were made in advance; None, there are none."""
        made = [planner.size for planner in self._planner.planners if isinstance(planner, Precomputed)]
        return sum(made) if made else None

    @property
    def epsilon(self) -> float | None:
        """What these came to, of the fragment where it is largest; None, there are none."""
        return max((each.epsilon for each in self._planner.planners if isinstance(each, Precomputed)), default=None)

    def _receive(self) -> bool:
        """Let nodes hear what has arrived when a tick begins; whether more is still to be told."""
        self._deliver()
        self._ticks += 1
        return any(planner.stale for planner in self._distributed)

    def _deliver(self) -> None:
        """What arrives by the end of the ticks so far, where messages take time."""
        if self._options.transport is not None:
            for planner, begun_s in zip(self._distributed, self._begun_s, strict=True):
                planner.settle(begun_s + self._ticks * self._tick_s)

    def _plan_next(self) -> None:
        """Plan some of the ticks that are foreseen.

        With feedback, plans are made for more and more ticks until a capacity is corrected; for one where nodes tell
        each other, which they would do for plans that are never used.
        """
        if self._options.transport is not None or self._settings.feedback:
            self._together = 1 if self._distributed else min(2 * self._together, MAX_TOGETHER)
        else:
            self._together = MAX_TOGETHER
        known = np.array([self._announced.popleft() for _ in range(min(self._together, len(self._announced)))])
        begun = self._clock()
        plans = self._shedding.plan(known)
        took_s = (self._clock() - begun) / len(known)
        for rates, keeps, ids in zip(known, plans.keeps, plans.ids, strict=True):
            self._planned.append(_Planned(rates, keeps, ids, took_s))

    def _known(self, rates: Floats) -> Floats:
        self._seen.append(rates)
        if len(self._seen) <= self._settings.lag_ticks:
            return np.zeros_like(rates)
        known = self._seen.pop(0)
        before = known if self._smooth is None else self._smooth
        self._smooth = before + self._settings.smoothing * (known - before)
        return self._smooth

    def _correct(self) -> None:
        """Plan from now on with what nodes are found to be able to do; plans that were made for later are void."""
        self._deliver()
        begun = self._clock()
        self._lost_s += sum(each.took_s for each in self._planned)
        self._announced.extendleft(each.rates for each in reversed(self._planned))
        self._planned.clear()
        self._together = 1
        self._assumed = self._slowdown
        nodes = tuple(
            replace(node, capacity=node.capacity / float(slowdown))
            for node, slowdown in zip(self._network.nodes, self._assumed, strict=True)
        )
        self._use(planner_of(self._name, replace(self._network, nodes=nodes), self._options, self._planner))
        self._lost_s += self._clock() - begun

    def _use(self, planner: FragmentPlanner) -> None:
        """Plan by it from now on, with shares of windows before aggregates if windows are dropped."""
        self._planner = planner
        self._distributed = [each for each in planner.planners if isinstance(each, Distributed)]
        self._shedding: Planner = planner
        if self._settings.drops is Drops.WINDOW:
            self._shedding = WindowAware.for_network(planner, self._network, self._settings.batch)
