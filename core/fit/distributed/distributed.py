"""D-FIT: every node builds its own table from its neighbors' messages."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.distributed.coordinator import COARSER, Fit, check_nodes, proved, too_large
from adapt.core.fit.distributed.exchange import Channel, Exchange, Exchanging, Transport
from adapt.core.fit.distributed.messages import Sheet, Topic, good_enough
from adapt.core.fit.distributed.node_table import KeptTables, NodeTable, planned, shed
from adapt.core.fit.network.names import Grid
from adapt.core.fit.network.settings import check_ratio
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.plan_table import Proof
from adapt.core.fit.planners.planner import Plans
from adapt.core.fit.program.program import Program
from adapt.core.fit.tables.bounds import Bounds, bounds_of_inputs
from adapt.core.fit.tables.local_plans import Part, busy_nodes
from adapt.core.fit.tables.rows import FitRows, TooManyRows
from adapt.core.fit.tables.server import Server
from adapt.core.fit.tables.spacing import Spacing
from adapt.core.fit.tables.topology import Topology


class DFit(Exchanging):
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

    Source: FIT, sections 4, 6.3, 7 and 8.2.5.
    """

    def __init__(
        self,
        program: Program,
        most: Floats,
        spacing: Spacing,
        distance: float = 0.0,
        transport: Transport | None = None,
        seed: int = 0,
        trust_upstream: bool = False,
        kept: KeptTables | None = None,
    ) -> None:
        """All nodes, before any message is delivered.

        Args:
            program: Of a network whose nodes form no cycle.
            most: The highest rates, tuples/s, shape (inputs,).
            spacing: How tables are built, on the paper's or the safe grid; tables above its `max_rows` are built with a
                larger epsilon.
            distance: Relative score error accepted in a table at its receiver, to send fewer rows; 0: none.
            transport: Delay and loss of messages; None: neither.
            seed: Random seed of delays and losses.
            trust_upstream: Whether nodes accept whatever others send.
            kept: Tables and traffic of an earlier run on the same network; None: start from nothing.

        Raises:
            UsageError: the network or grid is not supported.
            KeyError: the table of a node is missing in `kept`.
        """
        check_nodes(program, "d-fit")
        if spacing.grid is Grid.GUARANTEED:
            raise UsageError("--grid guaranteed needs a central planner; use c-fit or --grid safe")
        check_ratio("distance", distance)
        self._most, self._distance, self._trust_upstream = most, distance, trust_upstream
        self._spacing, self._epsilon = spacing, spacing.epsilon
        self._exchange = Exchange(transport or Transport(), np.random.default_rng(seed))
        self._states: dict[int, NodeTable] = {}
        self._place(program)
        for node in self._topology.nodes:
            self._states[node] = NodeTable()
        if kept is not None:
            self._take_up(kept)
            return
        for node in self._topology.nodes:
            self._react(node)

    @property
    def size(self) -> int:
        """Rows of all tables together."""
        return sum(len(state.table) for state in self._states.values() if state.table is not None)

    @property
    def epsilon(self) -> float:
        """Grid step of the tables."""
        return self._spacing.epsilon

    @property
    def proof(self) -> Proof:
        """The proved loss once all tables have settled."""
        made = [self._states[node].table for node in self.tops()]
        tables = tuple(table for table in made if table is not None)
        if len(tables) < len(made) or not self.settled:
            return Proof(None)
        parts = Fit(self.program, self.epsilon, tables).parts(prune=False)
        return proved(self.program, parts, self.epsilon, self._most, self._epsilon, repairs=False).proof

    @property
    def settled(self) -> bool:
        """Whether no message is pending."""
        return self._exchange.idle and not any(state.too_large for state in self._states.values())

    def table(self, node: int) -> FitRows | None:
        """A node's table, with its own drop arcs' flows; None without one."""
        return self._states[node].table

    def kept(self) -> KeptTables:
        """The tables and traffic of all nodes, once settled."""
        made = {node: state for node, state in self._states.items() if state.table is not None}
        return KeptTables(
            self.epsilon,
            {node: state.table for node, state in made.items() if state.table is not None},
            {node: state.conditions for node, state in made.items()},
            self.traffic(),
        )

    def shares(self, node: int) -> Floats:
        """The share that each row of a node's table keeps on its drop arcs; shape (rows, drops)."""
        server, table = self._servers[node], self._states[node].table
        if table is None:
            return np.ones((0, len(server.part.drops)))
        arriving = table.rates[:, : len(server.entering)]
        inner = server.part.program
        keeps = inner.keeps(arriving, planned(server, table, arriving, np.arange(len(table))))
        return keeps[:, inner.drop_arcs[server.part.splits]]

    def tops(self) -> list[int]:
        """Nodes that send their table to no other node."""
        return [node for node in self._topology.nodes if node not in self._topology.receiver]

    def settle(self, until_s: float = np.inf) -> None:
        """Deliver messages until none is pending, or until a time.

        Raises:
            UsageError: no epsilon below 1 makes the tables small enough.
        """
        while True:
            self._exchange.run(until_s, self._receive)
            if self.settled or not self._exchange.idle:
                break
            self._space(self._spacing.epsilon * COARSER)
        if until_s < np.inf:
            self._exchange.wait(until_s)

    def _receive(self, node: int) -> None:
        if node in self._states:
            self._react(node)

    def change(self, program: Program) -> None:
        """Apply new costs, selectivities, capacities or placements; nodes exchange the consequences.

        Args:
            program: Of a network with the same inputs, operators and outputs.

        Raises:
            UsageError: the arcs differ.
        """
        check_nodes(program, "d-fit")
        if program.wiring.arcs != self.program.wiring.arcs:
            raise UsageError(
                "tables follow new costs, capacities and placements; a change of operators needs a new planner"
            )
        before = {node: self._knows(node) for node in self._topology.nodes}
        self._place(program)
        nodes = self._topology.nodes
        self._states = {node: self._states.get(node, NodeTable()) for node in nodes}
        open_channels = {channel for node in nodes for channel in self._channels_to(node)}
        for channel in self._exchange.channels():
            if channel not in open_channels:
                self._exchange.close(channel)
        if self._spacing.epsilon != self._epsilon:
            self._space(self._epsilon)
            return
        for node in nodes:
            if before.get(node) != self._knows(node):
                self._react(node)

    def plan(self, rates: Floats) -> Plans:
        """Plan node by node, each by its current table."""
        wiring, points = self.program.wiring, len(rates)
        keeps, cap = np.ones((points, len(wiring.arcs))), np.full((points, len(wiring.arcs)), np.inf)
        ids = np.empty((points, len(self._topology.nodes)), np.int64)
        for at, node in enumerate(self._topology.nodes):
            ids[:, at] = shed(
                self._servers[node], self._states[node], self._trust_upstream, wiring.flows(rates, keeps), keeps, cap
            )
        return Plans(keeps, wiring.scores(wiring.flows(rates, keeps)), ids)

    def _take_up(self, kept: KeptTables) -> None:
        """Continue from kept tables and traffic."""
        self._spacing = replace(self._spacing, epsilon=kept.epsilon)
        for node in self._topology.nodes:
            bounds = self._bounds(node)
            assert bounds is not None, "upstream nodes have sent their bounds"
            if not self._servers[node].leaf:
                for other, sheet in self._bounds_for_others(self._servers[node].passed_on(bounds)):
                    self._exchange.assume(Channel(node, other, Topic.BOUNDS), sheet)
            table, where = kept.tables[node], kept.conditions[node]
            if not np.array_equal(table.dimensions, self._topology.dimensions[node]):
                raise KeyError(node)
            self._states[node] = NodeTable(table, where)
            if node in self._topology.receiver:
                receiver = self._topology.receiver[node]
                self._exchange.assume(Channel(node, receiver, Topic.TABLE), _sheet(table))
                self._exchange.assume(Channel(node, receiver, Topic.CONDITIONS), Sheet(table.dimensions, where))
        self._exchange.assume_sent(kept.traffic)

    def _place(self, program: Program) -> None:
        self.program = program
        self._servers = {node: Server(Part.from_program(program, node)) for node in busy_nodes(program.wiring)}
        self._topology = Topology.from_servers(self._servers, program.wiring)
        self._inputs = bounds_of_inputs(program, self._most)

    def _knows(self, node: int) -> tuple[object, ...]:
        """Everything that determines a node's table, except received messages."""
        arcs = self._topology.dimensions[node].tobytes()
        return (*self._servers[node].facts(), arcs, self._topology.receiver.get(node), self._channels_to(node))

    def _space(self, epsilon: float) -> None:
        if epsilon >= 1:
            raise too_large(self._spacing.max_rows)
        self._spacing = replace(self._spacing, epsilon=epsilon)
        for node in self._topology.nodes:
            self._react(node)

    def _channels_to(self, node: int) -> list[Channel]:
        """The channels on which a node receives messages."""
        channels = [
            Channel(other, node, topic)
            for other in self._topology.senders(node)
            for topic in (Topic.TABLE, Topic.CONDITIONS)
        ]
        entering = self._servers[node].entering
        before = [o for o in self._topology.nodes if np.isin(self._servers[o].leaving, entering).any()]
        return channels + [Channel(other, node, Topic.BOUNDS) for other in before]

    def _react(self, node: int) -> None:
        """Rebuild what follows from a node's current knowledge, and send it."""
        server = self._servers[node]
        bounds = self._bounds(node)
        if bounds is None:
            self._states[node] = NodeTable()
            return
        if not server.leaf:
            for other, sheet in self._bounds_for_others(server.passed_on(bounds)):
                self._exchange.send(Channel(node, other, Topic.BOUNDS), sheet)
        behind = self._behind(node)
        if behind is None:
            self._states[node] = NodeTable()
            return
        tables, conditions = behind
        try:
            table = server.table(bounds, tables, self._spacing)
        except TooManyRows:
            self._states[node] = NodeTable(too_large=True)
            return
        where = server.conditions(conditions, table.dimensions)
        self._states[node] = NodeTable(table, where)
        if node in self._topology.receiver:
            self._send_table(node, table, where)

    def _bounds(self, node: int) -> Bounds | None:
        """The highest rates on the arcs that enter a node; None before all are received."""
        entering = self._servers[node].entering
        from_inputs = entering[np.isin(entering, self._inputs.arcs)]
        parts = [self._inputs.on(from_inputs)]
        for channel in self._channels_to(node):
            sheet = self._exchange.received(channel)
            if channel.topic is Topic.BOUNDS and sheet is not None:
                parts.append(Bounds(sheet.arcs, sheet.rows[:, 0], sheet.rows[:, 1]))
        bounds = Bounds.joined(parts)
        return bounds.on(entering) if np.isin(entering, bounds.arcs).all() else None

    def _behind(self, node: int) -> tuple[list[FitRows], list[tuple[Indices, Floats]]] | None:
        """Tables and conditions received by a node; None if some are missing or cover other arcs."""
        tables, conditions = [], []
        for other in self._topology.senders(node):
            rows = self._exchange.received(Channel(other, node, Topic.TABLE))
            where = self._exchange.received(Channel(other, node, Topic.CONDITIONS))
            arcs = self._topology.dimensions[other]
            if rows is None or where is None:
                return None
            if not (np.array_equal(rows.arcs, arcs) and np.array_equal(where.arcs, arcs)):
                return None
            rates = np.ascontiguousarray(rows.rows[:, : len(arcs)])
            tables.append(FitRows.without_drops(arcs, rates, rows.rows[:, -1]))
            conditions.append((arcs, where.rows))
        return tables, conditions

    def _bounds_for_others(self, leaving: Bounds) -> Iterator[tuple[int, Sheet]]:
        for other in self._topology.nodes:
            arcs = leaving.arcs[np.isin(leaving.arcs, self._servers[other].entering)]
            if len(arcs):
                part = leaving.on(arcs)
                yield other, Sheet(arcs, np.stack((part.most, part.corners), axis=1))

    def _send_table(self, node: int, table: FitRows, where: Floats) -> None:
        receiver = self._topology.receiver[node]
        sheet = _sheet(table)
        channel = Channel(node, receiver, Topic.TABLE)
        sent = self._exchange.known(channel)
        if sent is not None:
            sheet = good_enough(sent, sheet, self._distance)
        self._exchange.send(channel, sheet)
        self._exchange.send(Channel(node, receiver, Topic.CONDITIONS), Sheet(table.dimensions, where))


def _sheet(table: FitRows) -> Sheet:
    return Sheet(table.dimensions, np.concatenate((table.rates, table.scores[:, None]), axis=1))
