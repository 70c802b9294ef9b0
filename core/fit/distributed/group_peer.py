"""One group of nodes that exchanges cuts: messages, cuts, plans."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.correspondent import Correspondent, Places
from adapt.core.fit.distributed.cuts import Group, Master
from adapt.core.fit.distributed.mailbox import Channel, Message
from adapt.core.fit.distributed.messages import Sheet, Topic
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.program.program import ROUNDING

_FAR = 1e-11
"""Relative gap above the best score at which a cut counts as tight."""

_UPSTREAM = (Topic.CUTS, Topic.CONDITIONS)


@dataclass(frozen=True, slots=True, eq=False)
class GroupDeployment:
    """All that a group knows except by messages."""

    group: Group  # its own arcs and operators
    parent: int  # the group that feeds it; -1: none
    children: dict[int, Indices]  # the groups that it feeds, with the arcs of their cuts
    complete: frozenset[int]  # those of them whose first cuts are all their cuts
    places: Places  # where it sees rates, and where it needs those that others see
    max_cuts: int  # maximum number of its cuts
    trust_upstream: bool  # whether it accepts whatever others send

    def channels_to(self) -> list[Channel]:
        """The channels on which it receives messages."""
        ways = [Channel(child, self.group.name, topic) for child in self.children for topic in _UPSTREAM]
        return ways + self.places.channels_to()

    def channels_from(self) -> list[Channel]:
        """The channels on which it sends messages."""
        ways = [Channel(self.group.name, self.parent, topic) for topic in _UPSTREAM if self.parent >= 0]
        return ways + self.places.channels_from()

    def decides(self) -> tuple[object, ...]:
        """Everything that determines its cuts, except messages; for comparison."""
        return (self.parent, self.channels_to(), *self.group.facts())


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Whether a child reaches the score that its cuts promise."""

    child: int
    arcs: Indices  # from the parent to the child, shape (arcs,)
    flows: Floats  # planned on these, tuples/s, shape (arcs,)
    score: float  # promised


Ask: TypeAlias = Callable[[Question], bool]
"""Asks a child; returns whether it has sent a tighter cut."""


class GroupPeer(Correspondent):
    """A group that knows its own part and its messages.

    Arcs of its cuts that enter other groups count with the rates that these have sent, 0 before any; children without
    cuts, with one per arriving tuple.
    """

    def __init__(self, deployment: GroupDeployment) -> None:
        """A group that has received nothing."""
        super().__init__(deployment.places)
        self.deployment, self._recipes = deployment, deployment.group.first_recipes()
        self._made: Master | None = None

    def deploy(self, deployment: GroupDeployment) -> list[Message]:
        """Change its part or its neighbors; recipes that still fit stay."""
        before, self.deployment, self._places = self.deployment, deployment, deployment.places
        self._mail.keep({*deployment.channels_to(), *deployment.channels_from()})
        self._made = None
        if deployment.group.alone or before.group.shape() != deployment.group.shape():
            self._recipes = deployment.group.first_recipes()
        if before.decides() != deployment.decides():
            self._react()
        return self._mail.take_away()

    def cuts(self) -> Floats:
        """Its current cuts: a score, then a slope per dimension."""
        group, sheets = self.deployment.group, self._sheets()
        return np.array([group.cut(recipe, sheets) for recipe in self._recipes])

    def fits(self, arriving: Floats, passing: Floats) -> NDArray[np.bool_]:
        """Whether nothing needs to be dropped from here on; shape (points,).

        Args:
            arriving: Tuples/s on the entering arcs, shape (points, entering).
            passing: Tuples/s on passing arcs, shape (points, passing).
        """
        rows = self._conditions()
        if rows is None:
            return np.zeros(len(arriving), np.bool_)
        return np.asarray((np.concatenate((arriving, passing), axis=1) @ rows.T <= 1 + ROUNDING).all(axis=1))

    def shares(self, arriving: Floats, passing: Floats, ask: Ask | None) -> Floats:
        """The share that each of its variables keeps; shape (variables,).

        Args:
            arriving: Tuples/s on the entering arcs, shape (entering,).
            passing: Tuples/s on passing arcs, shape (passing,).
            ask: Asks the groups downstream first; None: they are not asked.
        """
        group = self.deployment.group
        if ask is None:
            _, values = self._master().solve(arriving, passing)
        else:
            _, values = self._agreed(arriving, passing, ask)
        shares = group.shares(arriving, values)
        if self.deployment.trust_upstream:
            shares[: len(arriving)][~group.from_inputs] = 1.0
        return shares

    def answer(self, question: Question, arriving: Floats, passing: Floats, ask: Ask) -> bool:
        """Whether a tighter cut follows; it is sent.

        Args:
            arriving: Tuples/s on the entering arcs, now.
            ask: Asks the groups downstream.
        """
        planned = arriving.copy()
        planned[np.searchsorted(self.deployment.group.entering, question.arcs)] = question.flows
        score, _ = self._agreed(planned, passing, ask)
        return self._tightened(score, question.score, np.concatenate((planned, passing)))

    def tighten(self, arriving: Floats, passing: Floats) -> list[Message]:
        """Send a tighter cut if its cuts promise more than it reaches."""
        if self.deployment.parent >= 0 and not self.deployment.group.alone:
            point, cuts = np.concatenate((arriving, passing)), self.cuts()
            score, _ = self._master().solve(arriving, passing)
            self._tightened(score, float((cuts[:, 0] + cuts[:, 1:] @ point).min()), point)
        return self._mail.take_away()

    def take_away(self) -> list[Message]:
        """The messages that wait."""
        return self._mail.take_away()

    def _agreed(self, arriving: Floats, passing: Floats, ask: Ask) -> tuple[float, Floats]:
        """Its best score and variables, once no child has a tighter cut for them."""
        group, columns = self.deployment.group, len(self.deployment.group.drop_arcs)
        while True:
            score, values = self._master().solve(arriving, passing)
            flows, tighter = np.maximum(group.flow @ values[:columns], 0.0), False
            for child, arcs in self.deployment.children.items():
                if child not in self.deployment.complete:
                    fed = np.sort(arcs[np.isin(arcs, group.leaving)])
                    promised = float(values[columns + group.children.index(child)])
                    tighter |= ask(Question(child, fed, flows[fed], promised))
            if not tighter:
                return score, values

    def _tightened(self, score: float, promised: float, point: Floats) -> bool:
        """Whether it reaches less than promised at a point and has a cut that says so; the cut is sent."""
        if score >= promised * (1 - _FAR) or len(self._recipes) >= self.deployment.max_cuts:
            return False
        recipe = self._master().recipe()
        cut = self.deployment.group.cut(recipe, self._sheets())
        if float(cut[0] + cut[1:] @ point) >= promised * (1 - _FAR):
            return False  # the solver's rounding
        self._recipes.append(recipe)
        self._react()
        return True

    def _master(self) -> Master:
        if self._made is None:
            self._made = Master(self.deployment.group, self._sheets())
        return self._made

    def _sheets(self) -> dict[int, Sheet]:
        """The received cuts of each child."""
        sheets = {}
        for child, arcs in self.deployment.children.items():
            received = self._mail.received.get(Channel(child, self.deployment.group.name, Topic.CUTS))
            if received is None or not np.array_equal(received.arcs, arcs) or not len(received.rows):
                received = Sheet(arcs, np.concatenate((np.zeros((1, 1)), np.ones((1, len(arcs)))), axis=1))
            sheets[child] = received
        return sheets

    def _conditions(self) -> Floats | None:
        """Conditions for no drops from here on: all rows @ rates <= 1; None while those of a child are missing."""
        group = self.deployment.group
        found = [group.conditions()]
        for child, arcs in self.deployment.children.items():
            sheet = self._mail.received.get(Channel(child, group.name, Topic.CONDITIONS))
            if sheet is None or not np.array_equal(sheet.arcs, arcs):
                return None
            found.append(group.mapped(sheet))
        return np.concatenate(found)

    def _react(self) -> None:
        self._made = None
        if self.deployment.parent < 0:
            return
        cuts, where = (Channel(self.deployment.group.name, self.deployment.parent, topic) for topic in _UPSTREAM)
        self._mail.send(cuts, Sheet(self.deployment.group.dimensions, self.cuts()))
        rows = self._conditions()
        if rows is not None:
            self._mail.send(where, Sheet(self.deployment.group.dimensions, rows))
