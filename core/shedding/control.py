"""What decides, tick by tick, on the shares that are kept: known rates, a planner, and what is measured of nodes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Protocol, runtime_checkable

import numpy as np

from adapt.core.resources.functions import Floats
from adapt.core.shedding.fragments import Apart
from adapt.core.shedding.names import DropPlanner, Drops
from adapt.core.shedding.network import Network
from adapt.core.shedding.planner import UNSHED, Planner
from adapt.core.shedding.registry import PlannerOptions, planner_of
from adapt.core.shedding.running.tick import Tick
from adapt.core.shedding.settings import SheddingSettings
from adapt.core.shedding.window_aware import WindowAware
from adapt.core.shedding.wiring import Indices, Wiring

_LEARNED = 0.3
"""Weight of the newest tick in what is thought of a node's speed."""

_LEAST_WORK = 0.01
"""Part of a node's capacity below which a tick says nothing of its speed."""

_TOGETHER = 4096
"""Ticks whose plans are made together."""

_CORRECTED = 0.01
"""Capacities are corrected when they change by more than this part; a planner is made anew for that."""


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """What is done in a tick.

    Attributes:
        rates: For which it was planned, tuples/s, shape (inputs,).
        keeps: The shares that are kept on arcs, shape (arcs,).
        plans: Ids of the plan, one for each fragment; shape (fragments,).
        changed: Whether any share is not that of the tick before.
        planned_s: How long planning took by the clock; where it was for many ticks together, its part.
    """

    rates: Floats
    keeps: Floats
    plans: Indices
    changed: bool
    planned_s: float


@dataclass(frozen=True, slots=True)
class Sent:
    """Messages between nodes, their rows and bytes."""

    messages: int
    rows: int
    size: int


@runtime_checkable
class _Telling(Protocol):
    """A planner whose nodes tell each other."""

    def traffic(self) -> Mapping[Any, Any]:
        """What was sent, by channel."""
        ...


def _of(planner: _Telling) -> list[Any]:
    return list(planner.traffic().values())


class Control:
    """Plans for every tick.

    Rates are those of `lag_ticks` before, smoothed; before any are known, nothing is dropped. What fits is not shed.
    Where a plan changes a share by less than `min_rate_change`, the old one stays.

    Where windows are dropped, shares before aggregates are of windows, such that nodes are loaded as was planned.

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
        planner: Apart | None = None,
    ) -> None:
        """A control that has seen nothing.

        Args:
            network: As it is declared.
            name: The planner.
            settings: Lag, smoothing, least change, feedback.
            options: Of the planner.
            clock: Tells seconds, for how long planning takes; nothing else depends on it.
            planner: The planner, if it was made in advance.

        Raises:
            UsageError: the planner needs an option that is not given, or cannot take this network.
        """
        self._network, self._name, self._settings, self._options = network, name, settings, options
        self._wiring, self._clock = Wiring.of(network), clock
        self._keeps = np.ones(len(self._wiring.arcs))
        self._seen: list[Floats] = []
        self._smooth: Floats | None = None
        self._ahead: Iterator[tuple[Floats, Floats, Indices, float]] = iter(())
        self._dearer = np.ones(len(network.nodes))
        self._assumed = self._dearer
        begun = clock()
        self._planner = planner or planner_of(name, network, options)
        self._shedding = self._by_windows()
        self.prepared_s = clock() - begun
        """How long it took to make the planner, its table included; nothing to speak of if it was made in advance."""

    @property
    def sent(self) -> "Sent":
        """What nodes have told each other so that plans could be made; nothing where one place plans."""
        told = [each for planner in self._planner.planners if isinstance(planner, _Telling) for each in _of(planner)]
        return Sent(
            sum(each.messages for each in told), sum(each.rows for each in told), sum(each.size for each in told)
        )

    def decide(self, rates: Floats) -> Decision:
        """The shares for the next tick.

        Args:
            rates: Of that tick, tuples/s, shape (inputs,); used from `lag_ticks` later on. As foreseen, if they were.
        """
        known, keeps, ids, planned_s = next(self._ahead, None) or next(self._planned([rates]))
        before = self._keeps
        if (ids != UNSHED).any():
            slight = np.abs(keeps - before) < self._settings.min_rate_change
            keeps = np.where(slight, before, keeps)
        changed = bool((keeps != before).any())
        self._keeps = keeps
        return Decision(known, keeps, ids, changed, planned_s)

    def foresee(self, rates: Floats) -> None:
        """Make the plans of the next ticks together, which is faster; with feedback they wait for what is measured.

        Args:
            rates: Of these ticks, shape (ticks, inputs).
        """
        if not self._settings.feedback:
            self._ahead = chain(self._ahead, self._planned(list(rates)))

    def observe(self, tick: Tick, tick_s: float) -> None:
        """What came of it."""
        if not self._settings.feedback:
            return
        nodes = len(self._network.nodes)
        should = (self._wiring.use @ tick.served)[:nodes] / (self._wiring.limits[:nodes] * tick_s)
        took = tick.busy_s[:nodes] / tick_s
        telling = should > _LEAST_WORK
        ratio = np.divide(took, should, out=self._dearer.copy(), where=telling)
        self._dearer = self._dearer + _LEARNED * (ratio - self._dearer)
        if (np.abs(self._dearer / self._assumed - 1) > _CORRECTED).any():
            self._correct()

    def flows(self, rates: Floats, keeps: Floats) -> Floats:
        """Tuples/s that are kept on arcs where these shares are, of windows where those drop; shape (ticks, arcs)."""
        shedding = self._shedding
        return (
            shedding.flows(rates, keeps)[0] if isinstance(shedding, WindowAware) else self._wiring.flows(rates, keeps)
        )

    def _planned(self, rates: Sequence[Floats]) -> Iterator[tuple[Floats, Floats, Indices, float]]:
        """For ticks of these rates: the rates that are known, the plan's shares, its ids, and how long it took."""
        for first in range(0, len(rates), _TOGETHER):
            known = np.array([self._known(each) for each in rates[first : first + _TOGETHER]])
            begun = self._clock()
            plans = self._shedding.plan(known)
            planned_s = (self._clock() - begun) / len(known)
            yield from ((*each, planned_s) for each in zip(known, plans.keeps, plans.ids, strict=True))

    def _known(self, rates: Floats) -> Floats:
        self._seen.append(rates)
        if len(self._seen) <= self._settings.lag_ticks:
            return np.zeros_like(rates)
        known = self._seen.pop(0)
        before = known if self._smooth is None else self._smooth
        self._smooth = before + self._settings.smoothing * (known - before)
        return self._smooth

    def _correct(self) -> None:
        """Plan from now on with what nodes are found to be able to do."""
        self._assumed = self._dearer
        nodes = tuple(
            replace(node, capacity=node.capacity / float(dearer))
            for node, dearer in zip(self._network.nodes, self._assumed, strict=True)
        )
        self._planner = planner_of(self._name, replace(self._network, nodes=nodes), self._options, self._planner)
        self._shedding = self._by_windows()

    def _by_windows(self) -> Planner:
        """The planner, with shares of windows before aggregates if windows are dropped."""
        if self._settings.drops is Drops.RANDOM:
            return self._planner
        return WindowAware.of(self._planner, self._network, self._settings.batch)
