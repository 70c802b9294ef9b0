"""D-FIT with cuts: nodes send linear score bounds instead of tables."""

from collections.abc import Callable
from functools import partial

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.distributed.clusters import clusters
from adapt.core.fit.distributed.cuts import Group, Master, Recipe
from adapt.core.fit.distributed.exchange import Exchange, Exchanging, Transport
from adapt.core.fit.distributed.mailbox import Channel, Mailbox, Overdue, Packet
from adapt.core.fit.distributed.messages import Sheet, Topic
from adapt.core.fit.planners.planner import MADE, UNSHED, Plans
from adapt.core.fit.program.program import Program

MAX_CUTS = 2000
"""Maximum number of cuts per group; beyond it, plans may miss the best score."""

_FAR = 1e-11
"""Relative gap above the best score at which a cut counts as tight."""


class _Member:
    """A group's ends of its channels."""

    def __init__(self, react: Callable[[], None]) -> None:
        self.mail, self._react = Mailbox(1), react
        self.pending, self.received = self.mail.pending, self.mail.received

    def take(self, event: Packet | Overdue) -> list[Packet]:
        if self.mail.take(event):
            self._react()
        return self.mail.sent()


class DFitCuts(Exchanging):
    """The node groups of a network with their cuts and messages.

    The best score of a group and everything downstream is a concave function of the arriving rates: the minimum of
    finitely many linear functions. A node without children knows all of them and sends them in advance. Any other group
    starts with one, that of dropping nothing, and plans by a linear program in which each child is represented by the
    cuts it has sent. Before a plan is applied, the parent asks each child for its score at the planned rates; a child
    whose score is lower than its cuts promise sends the cut that says so. As cuts hold for all rates, questions become
    rare.

    Where plans cannot wait for answers, nobody asks: a parent plans by the cuts it knows, and a child that reaches less
    than they promise sends a tighter cut.

    A node plans for the rates that arrive, so none is ever overloaded, however old the cuts that others use, unless
    nodes trust upstream. A cut is kept as the prices that define it, and these still define a valid cut when costs
    change: only what changed is sent again.

    Source: FIT, sections 4 and 6, with cuts in place of tables, as in Benders, Partitioning procedures for solving
    mixed-variables programming problems (1962), nested.
    """

    def __init__(
        self,
        program: Program,
        transport: Transport | None = None,
        seed: int = 0,
        max_cuts: int = MAX_CUTS,
        asks: bool = True,
        trust_upstream: bool = False,
    ) -> None:
        """All groups, before any message is delivered.

        Args:
            program: Of any network.
            transport: Delay and loss of messages; None: neither.
            seed: Random seed of delays and losses.
            asks: Whether a plan waits for all answers, however long messages take.
            trust_upstream: Whether groups accept whatever others send.
        """
        self._exchange, self._max_cuts = Exchange(transport or Transport(), np.random.default_rng(seed)), max_cuts
        self._asks, self._trust_upstream = asks, trust_upstream
        self._recipes: dict[int, list[Recipe]] = {}
        self._masters: dict[int, Master] = {}
        self.asked = 0
        """Number of questions that groups were asked."""
        self._members: dict[int, _Member] = {}
        self._place(program)
        for name in self._groups:
            self._recipes[name] = self._groups[name].first_recipes()
            self._react(name)

    @property
    def settled(self) -> bool:
        """Whether no message is pending."""
        return self._exchange.idle

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups, upstream first."""
        return tuple(self._groups[name] for name in reversed(self._groups))

    def cuts(self, name: int) -> Floats:
        """A group's current cuts: a score, then a slope per dimension."""
        group = self._groups[name]
        sheets = self._sheets(name)
        return np.array([group.cut(recipe, sheets) for recipe in self._recipes[name]])

    def settle(self, until_s: float = np.inf) -> None:
        """Deliver messages until none is pending, or until a time."""
        self._exchange.run(until_s)
        if until_s < np.inf:
            self._exchange.wait(until_s)

    def change(self, program: Program) -> None:
        """Apply new costs, selectivities, capacities or placements; groups exchange the consequences.

        Args:
            program: Of a network with the same inputs, operators and outputs.

        Raises:
            UsageError: the arcs differ.
        """
        if program.wiring.arcs != self.program.wiring.arcs:
            raise UsageError(
                "cuts follow new costs, capacities and placements; a change of operators needs a new planner"
            )
        before, parents = self._groups, self._parent
        self._place(program)
        needed = {self._channel(name) for name in self._parent}
        self._exchange.close(self.traffic().keys() - needed)
        for member in self._members.values():
            member.mail.keep(needed)
        recipes, self._masters = self._recipes, {}
        self._recipes = {}
        for name, group in self._groups.items():
            alike = name in before and before[name].shape() == group.shape()
            stays = alike and not group.alone
            self._recipes[name] = recipes[name] if stays else group.first_recipes()
            same_parent = parents.get(name) == self._parent.get(name)
            if not (alike and same_parent and before[name].facts() == group.facts()):
                self._react(name)

    def plan(self, rates: Floats) -> Plans:
        """The best plans, agreed on by the groups.

        Nothing is dropped where everything fits. Where groups do not ask each other, plans follow the known cuts, and
        tighter cuts are sent.
        """
        return self._plan(rates, asks=self._asks, sends=not self._asks)

    def plan_unasked(self, rates: Floats) -> Plans:
        """Plan by the cuts received so far, however old."""
        return self._plan(rates, asks=False, sends=False)

    def _plan(self, rates: Floats, asks: bool, sends: bool) -> Plans:
        program, wiring = self.program, self.program.wiring
        keeps = np.ones((len(rates), len(wiring.arcs)))
        ids = np.full((len(rates), len(self._groups)), UNSHED, np.int64)
        over = np.flatnonzero(~program.feasible(rates))
        for at, group in enumerate(self.groups):
            flows = wiring.flows(rates, keeps)
            for point in over:
                arriving = flows[point, group.entering]
                if asks and group.name not in self._parent:
                    values = self._agreed(group, arriving, rates[point])[1]
                else:
                    score, values = self._solved(group, arriving, rates[point])
                    if sends:
                        self._send_tighter_cut(group, arriving, rates[point], score)
                shares = group.shares(arriving, values)
                if self._trust_upstream:
                    shares[wiring.source[group.drop_arcs[: len(group.entering)]] >= program.inputs] = 1.0
                keeps[point, group.drop_arcs] *= shares
                if (shares < 1).any():
                    ids[point, at] = MADE
        return Plans(keeps, wiring.scores(wiring.flows(rates, keeps)), ids)

    def _agreed(self, group: Group, arriving: Floats, rates: Floats) -> tuple[float, Floats]:
        """A group's best score and variables, once no child has a tighter cut for them."""
        while True:
            score, values = self._solved(group, arriving, rates)
            tightened = [self._child_tightens(child, group, values, rates) for child in group.children]
            if not any(tightened):
                return score, values

    def _child_tightens(self, name: int, parent: Group, values: Floats, rates: Floats) -> bool:
        """Ask a child for its score at the planned rates; returns whether it sent a tighter cut."""
        child = self._groups[name]
        if child.alone:
            return False
        self.asked += 1
        columns = len(parent.drop_arcs)
        flows = parent.flow @ values[:columns]
        wiring = self.program.wiring
        from_input = wiring.source[child.entering] < wiring.inputs
        arriving = np.where(
            from_input,
            rates[np.where(from_input, wiring.source[child.entering], 0)],
            np.maximum(flows[child.entering], 0.0),
        )
        said = values[columns + parent.children.index(name)]
        score, _ = self._agreed(child, arriving, rates)
        if score >= said * (1 - _FAR) or len(self._recipes[name]) >= self._max_cuts:
            return False
        recipe = self._master(name).recipe()
        cut = child.cut(recipe, self._sheets(name))
        passing = rates[wiring.source[child.passing]]
        would = float(cut[0] + cut[1:] @ np.concatenate((arriving, passing)))
        if would >= said * (1 - _FAR):
            return False  # the solver's rounding
        self._recipes[name].append(recipe)
        self._react(name)
        self.settle()
        return True

    def _send_tighter_cut(self, group: Group, arriving: Floats, rates: Floats, score: float) -> None:
        """Let a group whose cuts promise more than it reaches send a tighter cut."""
        name = group.name
        if name not in self._parent or group.alone or len(self._recipes[name]) >= self._max_cuts:
            return
        point = np.concatenate((arriving, rates[self.program.wiring.source[group.passing]]))
        cuts = self.cuts(name)
        if score >= float((cuts[:, 0] + cuts[:, 1:] @ point).min()) * (1 - _FAR):
            return
        recipe = self._master(name).recipe()
        cut = group.cut(recipe, self._sheets(name))
        if float(cut[0] + cut[1:] @ point) < float((cuts[:, 0] + cuts[:, 1:] @ point).min()) * (1 - _FAR):
            self._recipes[name].append(recipe)
            self._react(name)

    def _solved(self, group: Group, arriving: Floats, rates: Floats) -> tuple[float, Floats]:
        passing = rates[self.program.wiring.source[group.passing]]
        return self._master(group.name).solve(arriving, passing)

    def _master(self, name: int) -> Master:
        if name not in self._masters:
            self._masters[name] = Master(self._groups[name], self.program.wiring.worth, self._sheets(name))
        return self._masters[name]

    def _place(self, program: Program) -> None:
        self.program = program
        self._groups: dict[int, Group] = {}
        for nodes in reversed(clusters(program.wiring)):
            group = Group(program, nodes, tuple(self._groups.values()))
            self._groups[group.name] = group
        self._parent = {child: name for name, group in self._groups.items() for child in group.children}
        self._members = {name: self._members.get(name) or _Member(partial(self._react, name)) for name in self._groups}
        self._exchange.members = dict(self._members)

    def _channel(self, name: int) -> Channel:
        return Channel(name, self._parent[name], Topic.CUTS)

    def _sheets(self, name: int) -> dict[int, Sheet]:
        """The received cuts of each child; before any, a child scores one per arriving tuple."""
        sheets = {}
        for child in self._groups[name].children:
            arcs = self._groups[child].dimensions
            received = self._members[name].mail.received(self._channel(child))
            if received is None or not np.array_equal(received.arcs, arcs) or not len(received.rows):
                received = Sheet(arcs, np.concatenate((np.zeros((1, 1)), np.ones((1, len(arcs)))), axis=1))
            sheets[child] = received
        return sheets

    def _react(self, name: int) -> None:
        """Rebuild what follows from a group's current knowledge, and send it."""
        self._masters.pop(name, None)
        if name in self._parent:
            member = self._members[name]
            member.mail.send(self._channel(name), Sheet(self._groups[name].dimensions, self.cuts(name)))
            self._exchange.carry(member.mail.sent())
