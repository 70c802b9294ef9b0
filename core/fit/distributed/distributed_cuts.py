"""D-FIT with cuts: nodes send linear score bounds instead of tables."""

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.distributed.clusters import clusters
from adapt.core.fit.distributed.correspondent import Places
from adapt.core.fit.distributed.cuts import Group
from adapt.core.fit.distributed.exchange import Exchanging, Traffic
from adapt.core.fit.distributed.group_peer import Ask, GroupDeployment, GroupPeer, Question
from adapt.core.fit.distributed.mailbox import Channel
from adapt.core.fit.distributed.messages import HEADER_BYTES, Topic
from adapt.core.fit.planners.planner import MADE, UNSHED, Plans
from adapt.core.fit.program.program import Program

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
        delay_s: float | None = None,
        max_cuts: int = MAX_CUTS,
        trust_upstream: bool = False,
    ) -> None:
        """All groups, before any message is delivered.

        Args:
            program: Of any network.
            delay_s: Delay of messages, at least 0; no plan then waits for answers. None: no delay.
            trust_upstream: Whether groups accept whatever others send.
        """
        super().__init__(delay_s)
        self._late, self._trust_upstream, self._max_cuts = delay_s is not None, trust_upstream, max_cuts
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
                trust_upstream=self._trust_upstream,
            )
            for name, group in groups.items()
        }


_OF_PLANS = ("keeps", "scores", "ids")
