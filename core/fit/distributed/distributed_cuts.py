"""D-FIT with cuts: groups of nodes exchange linear bounds of scores."""

from graphlib import CycleError, TopologicalSorter

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.cuts import Ask, Group
from adapt.core.fit.distributed.messages import HEADER_BYTES, Channel, Exchanging, Topic, Traffic, watching
from adapt.core.fit.network.settings import AT_ONCE, Delivery
from adapt.core.fit.network.wiring import Wiring
from adapt.core.fit.planners.direct_planners import MADE, UNSHED, Plans
from adapt.core.fit.program.program import Program
from adapt.core.fit.tables.local_plans import nodes_ahead


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


class DFitCuts(Exchanging[Group]):
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

    Attributes:
        groups: All groups, upstream first.
        asked: Number of questions that groups were asked.
    """

    def __init__(self, program: Program, delivery: Delivery = AT_ONCE, max_cuts: int = MAX_CUTS) -> None:
        """All groups, before any message is delivered.

        Args:
            program: Of any network.
            delivery: With a delay, no plan waits for answers.
        """
        super().__init__(delivery)
        self._max_cuts, self.asked = max_cuts, 0
        self._place(program)

    @property
    def stale(self) -> bool:
        """Whether some groups lack the latest cuts or rates of others.

        Late conditions cost no score: without them, a group plans where nothing needs to be dropped.
        """
        return not self.exchange.up_to_date(but=Topic.CONDITIONS)

    def _plan(self, rates: Floats) -> Plans:
        """The best plans, agreed on by the groups; nothing is dropped where everything fits.

        Where groups do not ask each other, plans follow the known cuts and the rates that have arrived, and tighter
        cuts are sent.
        """
        wiring = self.program.wiring
        keeps = np.ones((len(rates), len(wiring.arcs)))
        ids = np.full((len(rates), len(self.groups)), UNSHED, np.int64)
        for at, group in enumerate(self.groups):
            flows = wiring.flows(rates, keeps)
            self._exchange_rates(group.node, flows)
            arriving = flows[:, group.entering]
            passing = group.elsewhere()[None] if self.late else flows[:, group.passing]
            for point in np.flatnonzero(~group.fits(arriving, passing)):
                asks = not self.late and group.parent < 0
                shares = group.shares(arriving[point], passing[point], self._asking(flows[point]) if asks else None)
                if self.delivery.trust_upstream:
                    shares[: len(group.entering)][group.from_others] = 1.0
                if self.late:
                    group.tighten(arriving[point], passing[point])
                keeps[point, group.drop_arcs] *= shares
                if (shares < 1).any():
                    ids[point, at] = MADE
        return Plans(keeps, wiring.scores(wiring.flows(rates, keeps)), ids)

    def _asking(self, now: Floats) -> Ask:
        """Carries questions and their answers; `now` are the flows before the plan, shape (arcs,)."""

        def ask(child: int, flows: Floats, promised: float) -> bool:
            group = self.members[child]
            fed = np.isin(group.entering, self.members[group.parent].leaving)
            self.asked += 1
            size = 8 * (int(fed.sum()) + 1)
            self.exchange.count(Channel(group.parent, child, Topic.QUESTIONS), Traffic(1, 1, 0, size))
            planned = np.where(fed, flows[group.entering], now[group.entering])
            tighter = group.answer(planned, now[group.passing], promised, ask)
            self.exchange.count(Channel(child, group.parent, Topic.ANSWERS), Traffic(1, 1, 0, HEADER_BYTES))
            self.settle()
            return tighter

        return ask

    def _place(self, program: Program) -> None:
        self.program = program
        made: dict[int, Group] = {}
        for nodes in reversed(clusters(program.wiring)):
            group = Group(program, nodes, tuple(made.values()), self.exchange, self._max_cuts)
            made[group.node] = group
        self.groups = tuple(reversed(made.values()))
        watching({node: group.entering for node, group in made.items()}, made)
        self._deploy(made)

    def _follow(self, member: Group, before: Group | None) -> None:
        if before is None:
            member.react()
        else:
            member.follow(before)
