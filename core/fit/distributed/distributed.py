"""D-FIT: every node builds its own table from its neighbors' messages."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.coordinator import COARSER, Fit, check_nodes, proved, too_large
from adapt.core.fit.distributed.messages import Channel, Exchanging, Member, Sheet, Topic, Traffic, watching
from adapt.core.fit.network.names import Grid
from adapt.core.fit.network.settings import AT_ONCE, Delivery, TableSettings
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.direct_planners import MADE, NO_PLAN, UNSHED, Plans
from adapt.core.fit.planners.plan_table import Proof
from adapt.core.fit.planners.program import Program
from adapt.core.fit.tables.composition import covered
from adapt.core.fit.tables.local_plans import Part, busy_nodes
from adapt.core.fit.tables.rows import Bounds, FitRows, PointTree, Spacing, TooManyRows, bounds_of_inputs
from adapt.core.fit.tables.server import Server, Topology
from adapt.core.units.settings import SettingError

_FITS = 1 + 1e-11
"""Relative load up to which nothing needs to be dropped."""

_SAME = 1 + 1e-9
"""Tolerance for rounding: planned rates may arrive slightly higher and still match their row."""

_ALL_FITS = -2
"""Instead of a row number: everything fits."""

_HALVINGS = 8
"""Steps in which the least loss is found that makes a table small enough."""

_UPSTREAM = (Topic.TABLE, Topic.CONDITIONS)


def small_enough(table: Sheet, most_bytes: int | None) -> Sheet:
    """Part of a table of limited size, with the least loss.

    The rows that stay represent the others. As every row is feasible by itself, any of them may go; points above it get
    a row that scores less.

    Args:
        table: Rates and score, shape (rows, arcs + 1).
        most_bytes: The size, at least that of one row; None: unlimited.

    Source: FIT, section 8.2.5, which proposes to adjust epsilon to the communication overhead.
    """
    rows = len(table.rows) if most_bytes is None else max(most_bytes // table.row_bytes(Topic.TABLE), 1)
    if len(table.rows) <= rows:
        return table
    best, low, high = None, 0.0, 1.0
    for _ in range(_HALVINGS):
        loss = (low + high) / 2
        stays = covered(table.rows[:, :-1], table.rows[:, -1], loss)
        if len(stays) <= rows:
            best, high = stays, loss
        else:
            low = loss
    if best is None:
        best = stays[np.linspace(0, len(stays) - 1, rows).astype(np.int64)]
    return Sheet(table.arcs, table.rows[best])


def good_enough(sent: Sheet, new: Sheet, distance: float) -> Sheet:
    """A table close to a new one that reuses rows already sent.

    An old row stays if its score differs by at most a third of the distance from the new table's score at its rates. A
    new row is added if no row that stays, at or below it, has a score as close. Choosing the best row of the result,
    and getting the new table's score there, loses at most `distance` of the new table's best score.

    Args:
        sent: Rates and score of the table sent before; shape (rows, arcs + 1).
        new: The current table, likewise.
        distance: Relative score error, in [0, 1).

    Source: FIT, section 8.2.5, which does not say how the rows to send are found.
    """
    if distance == 0 or not np.array_equal(sent.arcs, new.arcs):
        return new
    allowed, old = distance / 3, sent.rows[:, :-1]
    given = _best_below(new.rows[:, :-1], new.rows[:, -1], old)
    stays = (given >= 0) & (np.abs(sent.rows[:, -1] - given) <= allowed * given)
    reached = _best_below(old[stays], given[stays], new.rows[:, :-1])
    comes = (reached < (1 - allowed) * new.rows[:, -1]) | (reached < 0)
    if stays.sum() + comes.sum() > 2 * len(new.rows):
        return new
    return Sheet(new.arcs, np.concatenate((sent.rows[stays], new.rows[comes])))


def _best_below(rates: Floats, scores: Floats, points: Floats) -> Floats:
    """The best score of a row at or below each point, else -1; shape (points,)."""
    if not len(rates):
        return np.full(len(points), -1.0)
    found = PointTree.from_table(rates, scores, prune=True).find(np.ascontiguousarray(points))
    return np.where(found >= 0, scores[found], -1.0)


@dataclass(frozen=True, eq=False)
class NodeTable:
    """A node's table, once it has received what it needs."""

    table: FitRows  # with the flows of its own drop arcs
    conditions: Floats  # for no drops downstream, shape (conditions, dimensions of the table)

    @cached_property
    def _tree(self) -> PointTree:
        return PointTree.from_table(self.table.rates, self.table.scores, prune=True)

    def find(self, rates: Floats) -> Indices:
        """The best row at or below each point; shape (points,).

        Returns:
            The row number; -1 if no row matches, -2 where everything fits."""
        found = np.full(len(rates), _ALL_FITS)
        over = np.flatnonzero(~(rates @ self.conditions.T <= _FITS).all(axis=1))
        found[over] = self._tree.find(np.ascontiguousarray(rates[over] * _SAME))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class KeptTables:
    """The tables and traffic of nodes that had settled."""

    epsilon: float  # grid step of the tables
    tables: Mapping[int, NodeTable]  # of each node
    traffic: Mapping[Channel, Traffic]  # messages sent


def shed_alone(server: Server, arriving: Floats) -> tuple[Floats, Indices]:
    """The variables and plan ids of a node without a table."""
    inner = server.part.program
    links = (arriving @ server.part.links.T).max(axis=1, initial=1.0)
    variables, _ = server.alone.plan(arriving / links[:, None])
    shed = (variables < inner.unshed(arriving)).any(axis=1)
    return variables, np.where(shed, MADE, UNSHED)


class Peer(Member):
    """A node that knows its own part, its messages and its clock.

    It plans by its own table. Arcs of the table that enter other nodes count with the rates that these have sent, 0
    before any.

    Attributes:
        part: Its own arcs and operators.
        receiver: The node that receives its table; -1: none.
        state: Its table; None until it has received what it needs.
        too_large: Whether its table exceeds the limit.
    """

    def __init__(self, nodes: "DFit", part: Part, topology: Topology, inputs: Bounds) -> None:
        """A node that has received nothing.

        Args:
            inputs: Bounds of the arcs of all inputs, of which it knows those that enter it.
        """
        super().__init__(part.node, nodes.exchange)
        self.part, self.server, self._nodes = part, Server(part), nodes
        self.dimensions, self.receiver = topology.dimensions[part.node], topology.receiver.get(part.node, -1)
        self.passing = self.dimensions[len(part.entering) :]
        self._inputs = inputs.on(part.entering[part.feeders < 0])
        self._senders = {other: topology.dimensions[other] for other in topology.senders(part.node)}
        self._spacing = nodes.spacing
        self.state: NodeTable | None = None
        self.too_large = False

    def channels(self) -> list[Channel]:
        """The channels on which it receives messages."""
        return [
            *(Channel(other, self.node, topic) for other in self._senders for topic in _UPSTREAM),
            *(Channel(int(other), self.node, Topic.BOUNDS) for other in np.unique(self.part.feeders) if other >= 0),
            *(Channel(other, self.node, Topic.RATES) for other in self.watched),
        ]

    def decides(self) -> tuple[object, ...]:
        """Everything that determines its table, except messages; for comparison."""
        return (*self.part.facts(), self.dimensions.tobytes(), self.receiver, self.channels(), self._spacing)

    def space(self, spacing: Spacing) -> None:
        """Build its table with another spacing."""
        self._spacing = spacing
        self.react()

    def plan(self, arriving: Floats, elsewhere: Floats) -> tuple[Floats, Indices]:
        """The share kept on each of its arcs, and plan ids.

        Args:
            arriving: Tuples/s on the entering arcs, shape (points, entering).
            elsewhere: Tuples/s on passing arcs, shape (points, passing).

        Returns:
            Shape (points, arcs of the part), and shape (points,).

        Source: FIT, sections 4 and 6.4.
        """
        if self.state is None:
            variables, ids = shed_alone(self.server, arriving)
        else:
            found = self.state.find(np.concatenate((arriving, elsewhere), axis=1))
            variables, without = self.planned(self.state.table, arriving, found), found == -1
            variables[without], _ = shed_alone(self.server, arriving[without])
            ids = np.where(found >= 0, found + 1, np.where(found == _ALL_FITS, UNSHED, NO_PLAN))
        kept = self.part.program.keeps(arriving, variables)
        if self._nodes.delivery.trust_upstream:
            kept[:, np.isin(self.part.arcs, self.part.entering[self.part.feeders >= 0])] = 1.0
        return kept, ids

    def planned(self, table: FitRows, arriving: Floats, found: Indices) -> Floats:
        """The variables of a node for the rows found, else 0."""
        inner = self.part.program
        variables = np.where(found[:, None] == _ALL_FITS, inner.unshed(arriving), 0.0)
        some = np.flatnonzero(found >= 0)
        roots = np.flatnonzero(inner.input_of >= 0)
        variables[np.ix_(some, self.part.splits)] = table.flows[found[some]]
        variables[np.ix_(some, roots)] = table.rates[np.ix_(found[some], inner.input_of[roots])]
        return variables

    def react(self, kept: NodeTable | None = None) -> None:
        """Rebuild its table, unless it is kept, and send what changed."""
        self.state, self.too_large, bounds = None, False, self._bounds()
        if bounds is None:
            return
        part = self.part
        if not self.server.leaf:
            leaving = self.server.passed_on(bounds)
            for other in np.unique(part.readers[part.readers >= 0]):
                at = leaving.on(part.leaving[part.readers == other])
                self.send(int(other), Topic.BOUNDS, Sheet(at.arcs, np.stack((at.most, at.corners), axis=1)))
        try:
            self.state = kept or self._built(bounds)
        except TooManyRows:
            self.too_large = True
        if self.state is None or self.receiver < 0:
            return
        table, most_bytes = self.state.table, self._spacing.sent_bytes
        rows = np.concatenate((table.rates, table.scores[:, None]), axis=1)
        sheet = small_enough(Sheet(table.dimensions, rows), most_bytes)
        sent = self.exchange.sent.get(Channel(self.node, self.receiver, Topic.TABLE))
        if sent is not None:
            sheet = small_enough(good_enough(sent, sheet, self._nodes.distance), most_bytes)
        self.send(self.receiver, Topic.TABLE, sheet)
        self.send(self.receiver, Topic.CONDITIONS, Sheet(table.dimensions, self.state.conditions))

    def _built(self, bounds: Bounds) -> NodeTable | None:
        """A new table; None before those of all senders are received, over the right arcs."""
        tables, conditions = [], []
        for other, arcs in self._senders.items():
            rows, where = (self.heard(other, topic, arcs) for topic in _UPSTREAM)
            if rows is None or where is None:
                return None
            rates = np.ascontiguousarray(rows.rows[:, : len(arcs)])
            tables.append(FitRows.without_drops(arcs, rates, rows.rows[:, -1]))
            conditions.append((arcs, where.rows))
        table = self.server.table(bounds, tables, self._spacing)
        return NodeTable(table, self.server.conditions(conditions, table.dimensions))

    def _bounds(self) -> Bounds | None:
        """The highest rates on the arcs that enter it; None before all are received."""
        parts = [self._inputs]
        for other in np.unique(self.part.feeders[self.part.feeders >= 0]).tolist():
            sheet = self.heard(other, Topic.BOUNDS)
            if sheet is not None:
                parts.append(Bounds(sheet.arcs, sheet.rows[:, 0], sheet.rows[:, 1]))
        bounds, entering = Bounds.joined(parts), self.part.entering
        return bounds.on(entering) if np.isin(entering, bounds.arcs).all() else None


class DFit(Exchanging[Peer]):
    """All nodes with their tables, and the messages between them.

    Bounds are sent downstream, tables and conditions upstream; a node that receives something new rebuilds its table
    and sends what changed. A node's table goes to one other node, its parent. Where nodes share a child, it goes to the
    last of those parents, which forwards what it does not feed itself. As no two nodes wait for each other, the tables
    converge to those of a coordinator.

    A node plans by its own table: where its conditions do not hold, it takes the best row at or below the arriving
    rates, scales its inputs down to it, and drops on its splits what the row says. So no node is ever overloaded, even
    where other nodes plan with old tables: it drops on arrival what they should have dropped, and their work for those
    tuples is lost. Nodes that trust upstream accept what arrives, as in the paper, and are overloaded until the others
    catch up. A node without a table assumes that all tuples it sends to other nodes are worth the same.

    A node knows its own arcs, its messages and its clock. Its table may hold arcs that enter other nodes: these send it
    the rates there. Rates that are late cost score, but overload no node, as every node checks what arrives itself.

    Source: FIT, sections 4, 6.3, 7 and 8.2.5.

    Attributes:
        spacing: How tables are built, as fine as their limit allows.
    """

    def __init__(
        self,
        program: Program,
        most: Floats,
        spacing: Spacing,
        delivery: Delivery = AT_ONCE,
        distance: float = 0.0,
        kept: KeptTables | None = None,
    ) -> None:
        """All nodes, before any message is delivered.

        Args:
            program: Of a network whose nodes form no cycle.
            most: The highest rates, tuples/s, shape (inputs,).
            spacing: How tables are built, on the paper's or the safe grid; tables above its `max_rows` are built with a
                larger epsilon.
            delivery: With a delay, plans use the rates of other nodes' arcs that messages have brought so far; else
                those that messages would bring if each point lasted.
            distance: Relative score error accepted in a table at its receiver, to send fewer rows.
            kept: Tables and traffic of an earlier run on the same network; None: start from nothing.
        """
        super().__init__(delivery)
        self._most, self.distance, self._epsilon = most, distance, spacing.epsilon
        self.spacing, self._kept = spacing, kept
        check_nodes(program, "d-fit")
        if spacing.grid is Grid.GUARANTEED:
            raise SettingError(TableSettings, "{grid}=guaranteed needs a central planner; use c-fit or {grid}=safe")
        self._place(program)

    @property
    def size(self) -> int:
        """Rows of all tables together."""
        return sum(len(peer.state.table) for peer in self.members.values() if peer.state is not None)

    @property
    def epsilon(self) -> float:
        """Grid step of the tables."""
        return self.spacing.epsilon

    @property
    def proof(self) -> Proof:
        """The proved loss once all tables have settled."""
        made = [self.table(node) for node in self.tops()]
        tables = tuple(table for table in made if table is not None)
        if len(tables) < len(made) or not self.settled:
            return Proof(None)
        parts = Fit(self.program, self.epsilon, tables).parts(prune=False)
        return proved(self.program, parts, self.epsilon, self._most, self._epsilon).proof

    @property
    def settled(self) -> bool:
        """Whether all messages have arrived and no table is too large."""
        return self.exchange.up_to_date() and not any(peer.too_large for peer in self.members.values())

    def table(self, node: int) -> FitRows | None:
        """A node's table, with its own drop arcs' flows; None without one."""
        state = self.members[node].state if node in self.members else None
        return None if state is None else state.table

    def kept(self) -> KeptTables:
        """The tables and traffic of all nodes, once settled."""
        made = {node: peer.state for node, peer in self.members.items() if peer.state is not None}
        return KeptTables(self.epsilon, made, self.exchange.traffic())

    def tops(self) -> list[int]:
        """Nodes that send their table to no other node."""
        return [node for node in self._order if self.members[node].receiver < 0]

    def settle(self, until_s: float = np.inf) -> None:
        """Deliver messages until none is on its way, or until a time.

        Tables that are too large become coarser."""
        self.exchange.run(until_s)
        while not self.settled and self.exchange.up_to_date():
            epsilon = self.spacing.epsilon * COARSER
            if epsilon >= 1:
                raise too_large(self.spacing.max_rows)
            self.spacing = replace(self.spacing, epsilon=epsilon)
            for peer in self.members.values():
                peer.space(self.spacing)
            self.exchange.run(until_s)
        self.exchange.wait(until_s)

    def change(self, program: Program) -> None:
        """Apply new costs, selectivities, capacities or placements; nodes exchange the consequences."""
        check_nodes(program, "d-fit")
        super().change(program)

    def _plan(self, rates: Floats) -> Plans:
        wiring = self.program.wiring
        keeps = np.ones((len(rates), len(wiring.arcs)))
        ids = np.full((len(rates), len(self._order)), NO_PLAN, np.int64)
        for at, node in enumerate(self._order):
            flows, peer = wiring.flows(rates, keeps), self.members[node]
            self._exchange_rates(node, flows)
            elsewhere = peer.elsewhere()[None] if self.late else flows[:, peer.passing]
            kept, ids[:, at] = peer.plan(flows[:, peer.part.entering], elsewhere)
            keeps[:, peer.part.arcs] *= kept
        return Plans(keeps, wiring.scores(wiring.flows(rates, keeps)), ids)

    def _place(self, program: Program) -> None:
        kept, self._kept = self._kept, None
        self.program = program
        self.spacing = replace(self.spacing, epsilon=self._epsilon if kept is None else kept.epsilon)
        parts = {node: Part.from_program(program, node) for node in busy_nodes(program.wiring)}
        topology, inputs = Topology.from_parts(parts, program.wiring), bounds_of_inputs(program, self._most)
        self._order = topology.nodes
        made = {node: Peer(self, parts[node], topology, inputs) for node in topology.nodes}
        watching({node: part.entering for node, part in parts.items()}, made)
        if kept is None:
            self._deploy(made)
            return
        self.members.update(made)
        for node, peer in made.items():  # upstream first, as bounds come from there
            peer.react(kept.tables[node])
            self.exchange.run(np.inf, silent=True)
        self.exchange.restart(kept.traffic)

    def _follow(self, member: Peer, before: Peer | None) -> None:
        if before is None or member.decides() != before.decides():
            member.react()
        else:
            member.state, member.too_large = before.state, before.too_large
