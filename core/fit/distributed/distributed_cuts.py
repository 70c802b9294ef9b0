"""D-FIT with cuts: nodes send linear score bounds instead of tables."""

from collections.abc import Generator
from typing import TypeVar

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.distributed.clusters import clusters
from adapt.core.fit.distributed.correspondent import Places
from adapt.core.fit.distributed.cuts import Group
from adapt.core.fit.distributed.exchange import Exchanging, Traffic, Transport
from adapt.core.fit.distributed.group_peer import GroupDeployment, GroupPeer, Question
from adapt.core.fit.distributed.mailbox import Channel
from adapt.core.fit.distributed.messages import ACKNOWLEDGED_BYTES, Topic
from adapt.core.fit.distributed.starting import Here
from adapt.core.fit.planners.planner import MADE, UNSHED, Plans
from adapt.core.fit.program.program import Program

Answer = TypeVar("Answer")

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
    it the rates there. Questions and answers are messages too, which are neither late nor lost.

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
        start: Here | None = None,
    ) -> None:
        """All groups, before any message is delivered.

        Args:
            program: Of any network.
            transport: Delay and loss of messages; None: neither.
            seed: Random seed of delays and losses.
            asks: Whether a plan waits for all answers, however long messages take.
            trust_upstream: Whether groups accept whatever others send.
            start: Starts groups elsewhere; None: here.
        """
        super().__init__(transport, seed)
        self._asks, self._trust_upstream, self._max_cuts = asks, trust_upstream, max_cuts
        self._start = start or Here()
        self.asked = 0
        """Number of questions that groups were asked."""
        self._place(program)
        for name in self.deployments:
            self._begin(name)
            self._exchange.carry(self._peers[name].start())

    @property
    def stale(self) -> bool:
        """Whether some groups lack the latest cuts or rates of others.

        Late conditions cost no score: without them, a group plans where nothing needs to be dropped.
        """
        return not self._exchange.up_to_date(but=Topic.CONDITIONS)

    @property
    def settled(self) -> bool:
        """Whether no message is pending."""
        return self._exchange.idle

    @property
    def groups(self) -> tuple[Group, ...]:
        """All groups, upstream first."""
        return tuple(deployed.group for deployed in reversed(self.deployments.values()))

    def cuts(self, name: int) -> Floats:
        """A group's current cuts: a score, then a slope per dimension."""
        return self._peers[name].cuts()

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
        self._place(program)
        self._follow(self.deployments)
        for name, deployed in self.deployments.items():
            if name in self._peers:
                self._exchange.carry(self._peers[name].deploy(deployed))
            elif name not in self.down:
                self._begin(name)
                self._exchange.carry(self._peers[name].start())

    def plan(self, rates: Floats) -> Plans:
        """The best plans, agreed on by the groups.

        Nothing is dropped where everything fits. Where groups do not ask each other, plans follow the known cuts and
        the rates that have arrived, and tighter cuts are sent.
        """
        if self._asks and not self._start.apart:
            return self._plan(rates, asks=True, late=False)
        ticks = [self._plan(rates[[at]], asks=self._asks, late=True) for at in range(len(rates))]
        return Plans(*(np.concatenate([getattr(tick, name) for tick in ticks]) for name in _OF_PLANS))

    def plan_unasked(self, rates: Floats) -> Plans:
        """Plan by the cuts received so far, however old."""
        return self._plan(rates, asks=False, late=False)

    def _plan(self, rates: Floats, asks: bool, late: bool) -> Plans:
        self._revive()
        wiring = self.program.wiring
        keeps = np.ones((len(rates), len(wiring.arcs)))
        ids = np.full((len(rates), len(self.deployments)), UNSHED, np.int64)
        for at, group in enumerate(self.groups):
            name, flows = group.name, wiring.flows(rates, keeps)
            if late:
                self._report(name, flows[0])
            else:
                self._count(name, flows)
            if name not in self._peers:
                keeps[:, group.drop_arcs] = 0.0
                continue
            peer, arriving = self._peers[name], flows[:, group.entering]
            passing = peer.elsewhere()[None] if late else flows[:, group.passing]
            for point in np.flatnonzero(~peer.fits(arriving, passing)):
                deciding = peer.shares(arriving[point], passing[point], asks and self.deployments[name].parent < 0)
                shares = self._heard(name, deciding, flows[point])
                if late and not asks:
                    self._exchange.carry(peer.tighten(arriving[point], passing[point]))
                keeps[point, group.drop_arcs] *= shares
                if (shares < 1).any():
                    ids[point, at] = MADE
        return Plans(keeps, wiring.scores(wiring.flows(rates, keeps)), ids)

    def _heard(self, name: int, deciding: Generator[Question, bool, Answer], flows: Floats) -> Answer:
        """Carry a group's questions and their answers; flows have shape (arcs,)."""
        try:
            question = next(deciding)
            while True:
                question = deciding.send(self._answered(name, question, flows))
        except StopIteration as decided:
            answer: Answer = decided.value
            return answer

    def _answered(self, name: int, question: Question, flows: Floats) -> bool:
        """Whether a child has sent a tighter cut; never while it is down."""
        child = question.child
        if child not in self._peers:
            return False
        self.asked += 1
        size = 8 * (len(question.flows) + 1)
        self._exchange.count(Channel(name, child, Topic.QUESTIONS), Traffic(1, 0, 0, 1, 0, size))
        group, peer = self.deployments[child].group, self._peers[child]
        tighter = self._heard(child, peer.answer(question, flows[group.entering], flows[group.passing]), flows)
        self._exchange.count(Channel(child, name, Topic.ANSWERS), Traffic(1, 0, 0, 1, 0, ACKNOWLEDGED_BYTES))
        self._exchange.carry(peer.sent())
        self.settle()
        return tighter

    def _started(self, node: int, run: int) -> GroupPeer:
        return self._start.group(self.deployments[node], run)

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
                trust_upstream=self._trust_upstream,
            )
            for name, group in groups.items()
        }


_OF_PLANS = ("keeps", "scores", "ids")
