"""D-FIT: every node makes its own table from what its neighbours tell it, and plans by it for itself."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.distributed.coordinator import COARSER, check_nodes, too_large
from adapt.core.fit.distributed.exchange import Channel, Exchange, Exchanging, Transport
from adapt.core.fit.distributed.messages import Sheet, Topic, good_enough
from adapt.core.fit.distributed.node_table import KeptTables, NodeTable, planned, shed
from adapt.core.fit.network.names import Grid
from adapt.core.fit.network.settings import check_ratio
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.planner import Plans
from adapt.core.fit.program.program import Program
from adapt.core.fit.tables.bounds import Bounds, bounds_of_inputs
from adapt.core.fit.tables.local_plans import busy_nodes
from adapt.core.fit.tables.rows import FitRows, TooManyRows
from adapt.core.fit.tables.server import Server
from adapt.core.fit.tables.spacing import Spacing
from adapt.core.fit.tables.topology import Topology


class DFit(Exchanging):
    """The nodes of a network with their tables, and the messages between them.

    What can come is sent downstream, tables and conditions are told upstream; a node that hears something new makes
    its own anew and tells what changed. A node's table goes to one other: its parent; where nodes share a child, to the
    last of those before it, which passes on what it does not feed itself. As no node waits for one that waits for it,
    the tables end as those that a coordinator makes.

    A node plans by its own table: where its conditions do not hold, it takes the best row at or below what arrives,
    scales what enters down to it, and drops on its splits what the row says. So no node is ever overloaded, however
    old the tables that others go by: it sheds at its entrance what they should have, and what they did for that was
    for nothing. Nodes that trust each other let in what comes, as the paper has it, and are overloaded until the others
    know better. A node that has no table takes all that leaves it for others to be worth the same.

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
        """All nodes, with everything still to be sent.

        Args:
            program: Of a network without nodes in a circle.
            most: The highest rates, tuples/s, shape (inputs,).
            spacing: How tables are made, on the paper's or the safe grid; if a table would have more than its
                `max_rows`, all are made with a larger epsilon.
            distance: Part of the score that a table may be off at its receiver, so that fewer rows are sent; 0, none.
            transport: What messages meet; None, nothing.
            seed: Of delays and losses.
            trust_upstream: Whether nodes let in whatever others send.
            kept: What nodes made and sent before, for the same network; None, all is still to be made.

        Raises:
            UsageError: the network or grid is of another kind.
            KeyError: a node's table was not kept.
        """
        check_nodes(program, "d-fit")
        if spacing.grid is Grid.GUARANTEED:
            raise UsageError("--grid guaranteed needs a central planner; use c-fit or --grid safe")
        check_ratio("distance", distance)
        self._most, self._epsilon, self._distance, self._trust_upstream = (
            most,
            spacing.epsilon,
            distance,
            trust_upstream,
        )
        self._spacing = spacing
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
        """Rows of all tables."""
        return sum(len(state.table) for state in self._states.values() if state.table is not None)

    @property
    def epsilon(self) -> float:
        """That tables are made with."""
        return self._spacing.epsilon

    @property
    def settled(self) -> bool:
        """Whether there is nothing left to tell."""
        return self._exchange.idle and not any(state.too_large for state in self._states.values())

    def table(self, node: int) -> FitRows | None:
        """The table of a node, with the flows of its own drop arcs only; None, it has none yet."""
        return self._states[node].table

    def kept(self) -> KeptTables:
        """What nodes have made and sent, once they are settled."""
        made = {node: state for node, state in self._states.items() if state.table is not None}
        return KeptTables(
            self.epsilon,
            {node: state.table for node, state in made.items() if state.table is not None},
            {node: state.conditions for node, state in made.items()},
            self.traffic(),
        )

    def shares(self, node: int) -> tuple[Indices, Floats]:
        """The variables of a node's splits, and the share that each row of its table keeps there.

        Returns:
            Shapes (splits,) and (rows, splits).
        """
        server, table = self._servers[node], self._states[node].table
        splits, whole = server.split_variables()
        if table is None:
            return whole, np.ones((0, len(whole)))
        arriving = table.rates[:, : len(server.entering)]
        inner = server.part.program
        keeps = inner.keeps(arriving, planned(server, table, arriving, np.arange(len(table))))
        return whole, keeps[:, inner.drop_arcs[splits]]

    def tops(self) -> list[int]:
        """Nodes that tell their tables to none."""
        return [node for node in self._topology.nodes if node not in self._topology.receiver]

    def settle(self, until_s: float = np.inf) -> None:
        """Let messages go until nothing is left to tell, or until a time.

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
        """Other costs, selectivities, capacities, or operators on other nodes; nodes tell each other what follows.

        Args:
            program: Of a network with the same inputs, operators and outputs.

        Raises:
            UsageError: arcs are others.
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
        """Node by node, each by the table that it has now."""
        wiring, points = self.program.wiring, len(rates)
        keeps, cap = np.ones((points, len(wiring.arcs))), np.full((points, len(wiring.arcs)), np.inf)
        ids = np.empty((points, len(self._topology.nodes)), np.int64)
        for at, node in enumerate(self._topology.nodes):
            ids[:, at] = shed(
                self._servers[node], self._states[node], self._trust_upstream, wiring.flows(rates, keeps), keeps, cap
            )
        return Plans(keeps, wiring.scores(wiring.flows(rates, keeps)), ids)

    def _take_up(self, kept: KeptTables) -> None:
        """Go on from what was made and sent before."""
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
        self._servers = {node: Server(program, node) for node in busy_nodes(program.wiring)}
        self._topology = Topology.from_servers(self._servers, program.wiring)
        self._inputs = bounds_of_inputs(program, self._most)

    def _knows(self, node: int) -> tuple[object, ...]:
        """All that a node goes by but for what it is sent."""
        arcs = self._topology.dimensions[node].tobytes()
        return (*self._servers[node].facts(), arcs, self._topology.receiver.get(node), self._channels_to(node))

    def _space(self, epsilon: float) -> None:
        if epsilon >= 1:
            raise too_large(self._spacing.max_rows)
        self._spacing = replace(self._spacing, epsilon=epsilon)
        for node in self._topology.nodes:
            self._react(node)

    def _channels_to(self, node: int) -> list[Channel]:
        """Those by which a node is sent something."""
        channels = [
            Channel(other, node, topic)
            for other in self._topology.senders(node)
            for topic in (Topic.TABLE, Topic.CONDITIONS)
        ]
        entering = self._servers[node].entering
        before = [o for o in self._topology.nodes if np.isin(self._servers[o].leaving, entering).any()]
        return channels + [Channel(other, node, Topic.BOUNDS) for other in before]

    def _react(self, node: int) -> None:
        """Make and tell anew what follows from what a node knows now."""
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
        """What can come on the arcs that enter a node; None, it has not been sent of all."""
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
        """Tables and conditions that a node was told; None, some are missing or about other arcs."""
        tables, conditions = [], []
        for other in self._topology.senders(node):
            rows = self._exchange.received(Channel(other, node, Topic.TABLE))
            where = self._exchange.received(Channel(other, node, Topic.CONDITIONS))
            arcs = self._topology.dimensions[other]
            if rows is None or where is None:
                return None
            if not (np.array_equal(rows.arcs, arcs) and np.array_equal(where.arcs, arcs)):
                return None
            flows = np.zeros((len(rows.rows), len(self.program.drop_arcs)))
            rates = np.ascontiguousarray(rows.rows[:, : len(arcs)])
            tables.append(FitRows(arcs, rates, rows.rows[:, -1], flows))
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
