"""The control loop of load shedding: from input rates to drop rates."""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.coordinated import Coordinated
from adapt.core.fit.distributed.messages import LASTING, Topic, Traffic
from adapt.core.fit.network.names import DropPlanner, Drops
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.settings import Observing
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.planners.direct_planners import UNSHED, Planner
from adapt.core.fit.planners.fragments import FragmentPlanner
from adapt.core.fit.planners.plan_table import Proof
from adapt.core.fit.registry import (
    COORDINATED,
    Distributed,
    PlannerOptions,
    coordinated,
    planner_of,
    proof_of,
    tables_of,
)
from adapt.core.fit.running.fluid import Tick
from adapt.core.fit.running.observing import Observer
from adapt.core.fit.running.window_drop import WindowAware, batch_ticks

_LEARNED = 0.3
"""Weight of the newest tick in the estimate of a node's speed."""

_LEAST_WORK = 0.01
"""Utilization of a node below which a tick says nothing about its speed."""

MAX_TOGETHER = 4096
"""Maximum number of ticks planned in one batch."""

_CORRECTED = 0.01
"""Relative change of a capacity estimate that makes the planner start over."""


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """The drop rates of one tick."""

    rates: Floats  # input rates that were planned for, tuples/s, shape (inputs,)
    keeps: Floats  # share kept on each arc, shape (arcs,)
    plans: Indices  # plan id of each fragment, shape (fragments,)
    changed: bool  # whether any share differs from the previous tick
    planned_s: float  # planning time by the clock; a batch of ticks shares its time evenly
    sent: Traffic  # messages between nodes since the previous tick
    stale: bool  # whether some nodes planned before all messages to them had arrived


@dataclass(frozen=True, slots=True, eq=False)
class _Planned:
    rates: Floats
    keeps: Floats
    ids: Indices
    took_s: float


class Control:
    """The control loop: one plan per tick.

    A plan is made for the rates of `lag_ticks` ago, smoothed; before any are known, nothing is dropped. Nothing is
    dropped where everything fits. A share that a plan raises by less than `min_rate_change` of itself keeps its old
    value; a lower one is always taken, as otherwise a node could be overloaded.

    Where windows are dropped whole, shares before aggregates are shares of windows, chosen so that nodes are loaded as
    planned. What a batch of windows keeps is decided when it starts, so plans are for the mean rates of as many ticks
    as a batch may touch: a batch that starts at a low rate would be kept at all rates that follow.

    Where messages take time, nodes start to exchange them with the first tick, unless the planner was precomputed; a
    plan ignores messages that have not arrived yet.

    With feedback, the work that a node did in a tick is divided by the expected work of the tuples served; the ratio,
    smoothed, corrects the capacity that plans assume. With observed statistics, plans assume the costs and
    selectivities of the network until an estimate shows an important change.

    Source: FIT, section 7; the minimum change is that of the engine in which the paper was implemented.
    """

    def __init__(
        self,
        network: Network,
        name: DropPlanner,
        options: PlannerOptions,
        clock: Callable[[], float],
        planner: FragmentPlanner | None = None,
        observing: Observing | None = None,
    ) -> None:
        """A control loop before its first tick.

        Args:
            clock: Seconds; used only to measure planning time.
            planner: A precomputed planner.
            observing: How nodes estimate costs and selectivities; None: they do not.
        """
        self._network, self._name, self._options = network, name, options
        settings = self._settings = options.settings
        self._wiring, self._clock = Wiring.from_network(network), clock
        self._keeps = np.ones(len(self._wiring.arcs))
        self._seen: list[Floats] = []
        self._smooth: Floats | None = None
        self._summed = [np.zeros(len(network.inputs))]
        windows = settings.drops is Drops.WINDOW
        self._span, self._span_tuples = (
            batch_ticks(self._wiring, settings.batch, settings.tick_us) if windows else (0, {})
        )
        self._announced: deque[Floats] = deque()
        self._planned: deque[_Planned] = deque()
        self._together, self._lost_s = 1, 0.0
        self._slowdown = np.ones(len(network.nodes))
        self._assumed = self._slowdown
        self.observer = None if observing is None else Observer(network, observing)
        self._tick_s, self._ticks = settings.tick_us / 1e6, 0
        begun = clock()
        made = planner or planner_of(name, network, options)
        self._use(coordinated(name, network, options, made, ahead=planner is not None))
        self._begun_s = [each.exchange.now for each in self._distributed]
        self._reported = Traffic()
        self.prepared_s = clock() - begun
        """Time to build the planner with its tables; near 0 if it was precomputed."""

    @property
    def sent(self) -> Traffic:
        """Messages that were exchanged to make plans."""
        return sum((each.exchange.total for each in self._distributed), Traffic())

    def traffic(self) -> dict[Topic, Traffic]:
        """The same messages by topic."""
        topics: dict[Topic, Traffic] = {}
        for planner in self._distributed:
            for channel, traffic in planner.exchange.traffic().items():
                topics[channel.topic] = topics.get(channel.topic, Traffic()) + traffic
        return topics

    @property
    def plan_bytes(self) -> int:
        """Bytes sent that change with costs and selectivities, not with rates."""
        return sum(each.size for topic, each in self.traffic().items() if topic in LASTING)

    def decide(self, rates: Floats) -> Decision:
        """Choose the shares to keep in the next tick.

        Args:
            rates: Input rates of that tick, tuples/s, shape (inputs,), as announced if they were; planned for
                `lag_ticks` later.
        """
        stale = self._receive()
        if not self._planned:
            if not self._announced:
                self.announce(rates[None])
            self._plan_next()
        planned = self._planned.popleft()
        self._count(planned)
        stale = stale or any(planner.stale for planner in self._coordinated)
        keeps, before = planned.keeps, self._keeps
        if (planned.ids != UNSHED).any():
            slight = (keeps >= before) & (keeps - before < self._settings.min_rate_change * keeps)
            keeps = np.where(slight, before, keeps)
        changed = bool((keeps != before).any())
        self._keeps = keeps
        so_far = self.sent
        sent, self._reported = so_far - self._reported, so_far
        lost_s, self._lost_s = self._lost_s, 0.0
        return Decision(planned.rates, keeps, planned.ids, changed, planned.took_s + lost_s, sent, stale)

    def announce(self, rates: Floats) -> None:
        """Announce upcoming rates, so that several ticks are planned together.

        Args:
            rates: Of the next ticks, shape (ticks, inputs).
        """
        self._announced.extend(map(self._known, rates))

    def observe(self, tick: Tick, tick_s: float) -> None:
        """Learn costs and selectivities, or the nodes' speed, from a finished tick."""
        if self.observer is not None and self.observer.observe(tick, tick_s):
            self._replan(self.observer.network)
        if not self._settings.feedback:
            return
        nodes = len(self._network.nodes)
        should = (self._wiring.use @ tick.served)[:nodes] / (self._wiring.limits[:nodes] * tick_s)
        took = tick.busy_s[:nodes] / tick_s
        known = should > _LEAST_WORK
        ratio = np.divide(took, should, out=self._slowdown.copy(), where=known)
        self._slowdown = self._slowdown + _LEARNED * (ratio - self._slowdown)
        if (np.abs(self._slowdown / self._assumed - 1) > _CORRECTED).any():
            self._assumed = self._slowdown
            slower = tuple(
                replace(node, capacity=node.capacity / float(slowdown))
                for node, slowdown in zip(self._network.nodes, self._assumed, strict=True)
            )
            self._replan(replace(self._network, nodes=slower))

    @property
    def table(self) -> int | None:
        """Number of precomputed plans or table rows; None without tables."""
        made = [planner.size for planner in tables_of(self._planner)]
        return sum(made) if made else None

    @property
    def proof(self) -> Proof:
        """The proved loss of precomputed plans."""
        return proof_of(self._planner)

    def _receive(self) -> bool:
        """Deliver the messages due at the start of a tick; returns whether more are on their way."""
        self._deliver()
        self._ticks += 1
        return any(planner.stale for planner in self._distributed if not isinstance(planner, Coordinated))

    def _deliver(self) -> None:
        """Deliver the messages due by the end of the ticks so far."""
        if self._options.delivery.delay_s is not None:
            for planner, begun_s in zip(self._distributed, self._begun_s, strict=True):
                planner.settle(begun_s + self._ticks * self._tick_s)

    def _plan_next(self) -> None:
        """Plan a batch of the announced ticks.

        With feedback or observed statistics, batches grow until something changes. Distributed planners then plan one
        tick at a time, as they would otherwise exchange messages for plans that are never used.
        """
        if self._options.delivery.delay_s is not None or self._settings.feedback or self.observer is not None:
            self._together = 1 if self._one_by_one else min(2 * self._together, MAX_TOGETHER)
        else:
            self._together = MAX_TOGETHER
        self._together = min(self._together, *(each.steady for each in self._coordinated), MAX_TOGETHER)
        known = np.array([self._announced.popleft() for _ in range(min(self._together, len(self._announced)))])
        begun = self._clock()
        plans = self._shedding.plan(known)
        took_s = (self._clock() - begun) / len(known)
        for rates, keeps, ids in zip(known, plans.keeps, plans.ids, strict=True):
            self._planned.append(_Planned(rates, keeps, ids, took_s))

    def _count(self, planned: _Planned) -> None:
        """Count the messages that a coordinator and its nodes exchange for a plan."""
        first = 0
        for fragment, each in zip(self._planner.fragments, self._planner.planners, strict=True):
            if isinstance(each, Coordinated):
                ids = planned.ids[first : first + each.columns]
                each.used(fragment.rates(planned.rates), planned.keeps[fragment.arcs], ids)
                first += len(ids)

    def _known(self, rates: Floats) -> Floats:
        self._seen.append(rates)
        if len(self._seen) <= self._settings.lag_ticks:
            return np.zeros_like(rates)
        known = self._mean(self._seen.pop(0))
        before = known if self._smooth is None else self._smooth
        self._smooth = before + self._settings.smoothing * (known - before)
        return self._smooth

    def _mean(self, newest: Floats) -> Floats:
        """Mean of the newest rates over as many ticks as the windows of a batch may touch."""
        if not (self._span or self._span_tuples):
            return newest
        summed = self._summed
        summed.append(summed[-1] + newest)
        ticks = max(1, self._span)
        for entering, (tuples, step) in self._span_tuples.items():
            late = max(newest[entering] - step / self._tick_s, 0.0)  # the last start in a tick
            before = summed[-1][entering] - tuples / self._tick_s - late
            starts = bisect_right(summed, before, key=lambda each: float(each[entering]))
            ticks = max(ticks, len(summed) - max(starts, 1))
        ticks = min(ticks, len(summed) - 1)
        del summed[: -1 - ticks]  # no later batch starts before
        return newest if ticks == 1 else (summed[-1] - summed[0]) / ticks

    def _replan(self, network: Network) -> None:
        """Plan with other capacities, costs or selectivities from now on, and discard plans made ahead."""
        self._deliver()
        begun = self._clock()
        self._lost_s += sum(each.took_s for each in self._planned)
        self._announced.extendleft(each.rates for each in reversed(self._planned))
        self._planned.clear()
        self._together = 1
        self._use(planner_of(self._name, network, self._options, self._planner))
        self._lost_s += self._clock() - begun

    def _use(self, planner: FragmentPlanner) -> None:
        """Switch to a planner, with shares of windows before aggregates if windows are dropped."""
        self._planner = planner
        self._distributed = [each for each in planner.planners if isinstance(each, Distributed)]
        self._coordinated = [each for each in self._distributed if isinstance(each, Coordinated)]
        late = self._options.delivery.delay_s is not None
        self._one_by_one = bool(self._distributed) and (late or not self._coordinated)
        self._shedding: Planner = planner
        if self._settings.drops is Drops.WINDOW:
            settings = self._settings
            self._shedding = WindowAware.for_network(
                planner, self._network, settings.batch, settings.headroom, together=self._name in COORDINATED
            )
