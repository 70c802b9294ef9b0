"""D-FIT with cuts: groups of nodes exchange linear bounds of scores."""

from collections.abc import Callable
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.distributed.cuts import Group, Master
from adapt.core.fit.distributed.exchange import Correspondent, Exchanging, Places, Traffic
from adapt.core.fit.distributed.messages import HEADER_BYTES, Channel, Message, Sheet, Topic
from adapt.core.fit.network.settings import AT_ONCE, Delivery
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.planners.direct_planners import MADE, UNSHED, Plans
from adapt.core.fit.program.program import ROUNDING, Program
from adapt.core.fit.tables.local_plans import nodes_ahead

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


def clusters(wiring: Wiring) -> tuple[tuple[int, ...], ...]:
    """Groups of nodes, upstream first, each fed by one other at most.

    Nodes that share a child plan together, and so do nodes in a cycle; in a tree every node is a group of its own.
    Nodes without operators belong to no group.

    Source: FIT, section 10, which leaves such clusters to future work.
    """
    ahead = dict(nodes_ahead(wiring))
    label = {node: node for node in ahead}
    while True:
        before = {
            group: {label[other] for node in ahead if label[node] == group for other in ahead[node]} - {group}
            for group in label.values()
        }
        together = _to_be_joined(before)
        if not together:
            break
        least = min(together)
        label = {node: least if group in together else group for node, group in label.items()}
    order = TopologicalSorter({group: sorted(before[group]) for group in sorted(before)}).static_order()
    return tuple(tuple(sorted(node for node in label if label[node] == group)) for group in order)


def _to_be_joined(before: dict[int, set[int]]) -> set[int]:
    """Groups that form a cycle, or several parents of one group; empty if neither exists."""
    try:
        TopologicalSorter(before).prepare()
    except CycleError as error:
        return set(error.args[1])
    return next((parents for _, parents in sorted(before.items()) if len(parents) > 1), set())


MAX_CUTS = 2000
"""Maximum number of cuts per group; beyond it, plans may miss the best score."""


class DFitCuts(Exchanging[GroupPeer]):
    """The node groups of a network with their cuts and messages.

    The best score of a group and everything downstream is a concave function of the arriving rates: the minimum of
    finitely many linear functions. A node without children knows all of them and sends them in advance. Any other group
    starts with one, that of dropping nothing, and plans by a linear program in which each child is represented by the
    cuts it has sent. Before a plan is applied, the parent asks each child for its score at the planned rates; a child
    whose score is lower than its cuts promise sends the cut that says so. As cuts hold for all rates, questions become
    rare.

    Where plans cannot wait for answers, nobody asks: a parent plans by the cuts it knows, and a child that reaches less
    than they promise sends a tighter cut.

    A group knows its own arcs, its messages and its clock. Its cuts may cover arcs that enter other groups: these send
    it the rates there. Questions and answers are messages too, which are never late.

    A node plans for the rates that arrive, so none is ever overloaded, however old the cuts that others use, unless
    nodes trust upstream. A cut is kept as the prices that define it, and these still define a valid cut when costs
    change: only what changed is sent again.

    Source: FIT, sections 4 and 6, with cuts in place of tables, as in Benders, Partitioning procedures for solving
    mixed-variables programming problems (1962), nested.
    """

    def __init__(
        self,
        program: Program,
        delivery: Delivery = AT_ONCE,
        max_cuts: int = MAX_CUTS,
    ) -> None:
        """All groups, before any message is delivered.

        Args:
            program: Of any network.
            delivery: With a delay, no plan waits for answers.
        """
        super().__init__(delivery)
        self._late, self._max_cuts = delivery.delay_s is not None, max_cuts
        self.asked = 0
        """Number of questions that groups were asked."""
        self._place(program)
        for name, deployed in self.deployments.items():
            self._start(name, GroupPeer(deployed))

    @property
    def stale(self) -> bool:
        """Whether some groups lack the latest cuts or rates of others.

        Late conditions cost no score: without them, a group plans where nothing needs to be dropped.
        """
        return not self._exchange.up_to_date(but=Topic.CONDITIONS)

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups, upstream first."""
        return tuple(deployed.group for deployed in reversed(self.deployments.values()))

    def cuts(self, name: int) -> Floats:
        """A group's current cuts: a score, then a slope per dimension."""
        return self._peers[name].cuts()

    def change(self, program: Program) -> None:
        """Apply new costs, selectivities, capacities or placements; groups exchange the consequences.

        Args:
            program: Of a network with the same inputs, operators and outputs.
        """
        if program.wiring.arcs != self.program.wiring.arcs:
            raise UsageError(
                "cuts follow new costs, capacities and placements; a change of operators needs a new planner"
            )
        self._place(program)
        self._follow(self.deployments)
        for name, deployed in self.deployments.items():
            if name in self._peers:
                self._exchange.carry(self._peers[name].deploy(deployed))
            else:
                self._start(name, GroupPeer(deployed))

    def plan(self, rates: Floats) -> Plans:
        """The best plans, agreed on by the groups.

        Nothing is dropped where everything fits. Where groups do not ask each other, plans follow the known cuts and
        the rates that have arrived, and tighter cuts are sent.
        """
        if not self._late:
            return self._plan(rates)
        ticks = [self._plan(rates[[at]]) for at in range(len(rates))]
        return Plans(*(np.concatenate([getattr(tick, name) for tick in ticks]) for name in _OF_PLANS))

    def _plan(self, rates: Floats) -> Plans:
        wiring = self.program.wiring
        keeps = np.ones((len(rates), len(wiring.arcs)))
        ids = np.full((len(rates), len(self.deployments)), UNSHED, np.int64)
        for at, group in enumerate(self.groups):
            name, flows = group.name, wiring.flows(rates, keeps)
            if self._late:
                self._report(name, flows[0])
            else:
                self._count(name, flows)
            peer, arriving = self._peers[name], flows[:, group.entering]
            passing = peer.elsewhere()[None] if self._late else flows[:, group.passing]
            for point in np.flatnonzero(~peer.fits(arriving, passing)):
                asks = not self._late and self.deployments[name].parent < 0
                ask = self._asking(name, flows[point]) if asks else None
                shares = peer.shares(arriving[point], passing[point], ask)
                if self._late:
                    self._exchange.carry(peer.tighten(arriving[point], passing[point]))
                keeps[point, group.drop_arcs] *= shares
                if (shares < 1).any():
                    ids[point, at] = MADE
        return Plans(keeps, wiring.scores(wiring.flows(rates, keeps)), ids)

    def _asking(self, name: int, flows: Floats) -> Ask:
        """Carries a group's questions and their answers; flows have shape (arcs,)."""

        def ask(question: Question) -> bool:
            child = question.child
            self.asked += 1
            size = 8 * (len(question.flows) + 1)
            self._exchange.count(Channel(name, child, Topic.QUESTIONS), Traffic(1, 1, 0, size))
            group, peer = self.deployments[child].group, self._peers[child]
            further = self._asking(child, flows)
            tighter = peer.answer(question, flows[group.entering], flows[group.passing], further)
            self._exchange.count(Channel(child, name, Topic.ANSWERS), Traffic(1, 1, 0, HEADER_BYTES))
            self._exchange.carry(peer.take_away())
            self.settle()
            return tighter

        return ask

    def _place(self, program: Program) -> None:
        """Derive what each group knows of a network."""
        self.program = program
        groups: dict[int, Group] = {}
        for nodes in reversed(clusters(program.wiring)):
            group = Group(program, nodes, tuple(groups.values()))
            groups[group.name] = group
        parent = {child: name for name, group in groups.items() for child in group.children}
        self._places = Places.of_nodes({name: (group.entering, group.passing) for name, group in groups.items()})
        self.deployments = {
            name: GroupDeployment(
                group=group,
                parent=parent.get(name, -1),
                children={child: groups[child].dimensions for child in group.children},
                complete=frozenset(child for child in group.children if groups[child].alone),
                places=self._places[name],
                max_cuts=self._max_cuts,
                trust_upstream=self._delivery.trust_upstream,
            )
            for name, group in groups.items()
        }


_OF_PLANS = ("keeps", "scores", "ids")
