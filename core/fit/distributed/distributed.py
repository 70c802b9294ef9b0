"""D-FIT: every node builds its own table from its neighbors' messages."""

from collections.abc import Iterator, Mapping
from dataclasses import astuple, replace

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.distributed.coordinator import COARSER, Fit, check_nodes, proved, too_large
from adapt.core.fit.distributed.exchange import Exchanging, Places, Traffic
from adapt.core.fit.distributed.messages import Channel, Topic
from adapt.core.fit.distributed.peer import Deployment, KeptTables, NodeTable, Peer, planned
from adapt.core.fit.network.names import Grid
from adapt.core.fit.network.settings import AT_ONCE, Delivery, TableSettings
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.direct_planners import NO_PLAN, Plans
from adapt.core.fit.planners.plan_table import Proof
from adapt.core.fit.program.program import Program
from adapt.core.fit.tables.local_plans import Part, busy_nodes
from adapt.core.fit.tables.rows import FitRows, Spacing, bounds_of_inputs
from adapt.core.fit.tables.server import Server, Topology
from adapt.core.table import Column, Kind, Table
from adapt.core.units.settings import SettingError


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
        check_nodes(program, "d-fit")
        if spacing.grid is Grid.GUARANTEED:
            raise SettingError(TableSettings, "{grid}=guaranteed needs a central planner; use c-fit or {grid}=safe")
        self._most, self._distance = most, distance
        super().__init__(delivery)
        self._spacing, self._epsilon = spacing, spacing.epsilon
        if kept is not None:
            self._spacing = replace(spacing, epsilon=kept.epsilon)
        self._place(program)
        if kept is not None:
            self._take_up(kept)
            return
        for node in self._topology.nodes:
            self._start(node, Peer(self.deployments[node]))

    @property
    def size(self) -> int:
        """Rows of all tables together."""
        return sum(len(table) for table in map(self.table, self._peers) if table is not None)

    @property
    def epsilon(self) -> float:
        """Grid step of the tables."""
        return self._spacing.epsilon

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
        return self._exchange.idle and not any(peer.too_large for peer in self._peers.values())

    def table(self, node: int) -> FitRows | None:
        """A node's table, with its own drop arcs' flows; None without one."""
        return self._peers[node].state.table if node in self._peers else None

    def kept(self) -> KeptTables:
        """The tables and traffic of all nodes, once settled."""
        made = {node: peer.state for node, peer in self._peers.items() if peer.state.table is not None}
        return KeptTables(
            self.epsilon,
            {node: state.table for node, state in made.items() if state.table is not None},
            {node: state.conditions for node, state in made.items()},
            self.traffic(),
        )

    def shares(self, node: int) -> Floats:
        """Shares kept on drop arcs by each table row; shape (rows, drops)."""
        server, table = Server(self.deployments[node].part), self.table(node)
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
        """Deliver messages until none is on its way, or until a time."""
        while True:
            self._exchange.run(until_s)
            if self.settled or not self._exchange.idle:
                break
            self._space(self._spacing.epsilon * COARSER)
        if until_s < np.inf:
            self._exchange.wait(until_s)

    def change(self, program: Program) -> None:
        """Apply new costs, selectivities, capacities or placements; nodes exchange the consequences.

        Args:
            program: Of a network with the same inputs, operators and outputs.
        """
        check_nodes(program, "d-fit")
        if program.wiring.arcs != self.program.wiring.arcs:
            raise UsageError(
                "tables follow new costs, capacities and placements; a change of operators needs a new planner"
            )
        self._spacing = replace(self._spacing, epsilon=self._epsilon)
        self._place(program)
        self._follow(self.deployments)
        for node in self._topology.nodes:
            if node in self._peers:
                self._exchange.carry(self._peers[node].deploy(self.deployments[node]))
            else:
                self._start(node, Peer(self.deployments[node]))

    def plan(self, rates: Floats) -> Plans:
        """Plan node by node, each by its current table."""
        wiring, points, late = self.program.wiring, len(rates), self._delivery.delay_s is not None
        if late and points > 1:
            ticks = [self.plan(rates[[at]]) for at in range(points)]
            return Plans(*(np.concatenate([getattr(tick, name) for tick in ticks]) for name in _OF_PLANS))
        keeps = np.ones((points, len(wiring.arcs)))
        ids = np.full((points, len(self._topology.nodes)), NO_PLAN, np.int64)
        for at, node in enumerate(self._topology.nodes):
            deployed, flows = self.deployments[node], wiring.flows(rates, keeps)
            arcs, elsewhere = deployed.part.arcs, None
            if late:
                self._report(node, flows[0])
            else:
                self._count(node, flows)
                elsewhere = flows[:, deployed.places.passing]
            kept, ids[:, at] = self._peers[node].plan(flows[:, deployed.part.entering], elsewhere)
            keeps[:, arcs] *= kept
        return Plans(keeps, wiring.scores(wiring.flows(rates, keeps)), ids)

    def _take_up(self, kept: KeptTables) -> None:
        """Continue from kept tables and traffic."""
        self._peers.update({node: Peer(self.deployments[node]) for node in self._topology.nodes})
        for node in self._topology.nodes:
            sent = self._peers[node].resume(NodeTable(kept.tables[node], kept.conditions[node]))
            for channel, sheet in sent:
                self._peers[channel.receiver].assume(channel, sheet)
        for channel, traffic in kept.traffic.items():
            self._exchange.count(channel, traffic)

    def _place(self, program: Program) -> None:
        """Derive what each node is deployed of a network."""
        self.program = program
        parts = {node: Part.from_program(program, node) for node in busy_nodes(program.wiring)}
        self._topology = Topology.from_parts(parts, program.wiring)
        inputs = bounds_of_inputs(program, self._most)
        dimensions = self._topology.dimensions
        self._places = Places.of_nodes(
            {node: (part.entering, dimensions[node][len(part.entering) :]) for node, part in parts.items()}
        )
        self.deployments = {
            node: Deployment(
                part=part,
                inputs=inputs.on(part.entering[part.feeders < 0]),
                receiver=self._topology.receiver.get(node, -1),
                dimensions=self._topology.dimensions[node],
                senders={other: self._topology.dimensions[other] for other in self._topology.senders(node)},
                places=self._places[node],
                spacing=self._spacing,
                distance=self._distance,
                trust_upstream=self._delivery.trust_upstream,
            )
            for node, part in parts.items()
        }

    def _space(self, epsilon: float) -> None:
        if epsilon >= 1:
            raise too_large(self._spacing.max_rows)
        self._spacing = replace(self._spacing, epsilon=epsilon)
        for node, peer in self._peers.items():
            self.deployments[node] = replace(self.deployments[node], spacing=self._spacing)
            self._exchange.carry(peer.deploy(self.deployments[node]))


_OF_PLANS = ("keeps", "scores", "ids")


_SENT = (
    Column("messages", Kind.COUNT),
    Column("rows", Kind.COUNT),
    Column("erased", Kind.COUNT, "rows", "withdrawn"),
    Column("size", Kind.BYTES, "bytes"),
)


def shown_nodes(nodes: DFit) -> Iterator[Table]:
    """Each node's table with ids, conditions, scores and shares; then the messages."""
    wiring, kept = nodes.program.wiring, nodes.kept()
    names = [node.name for node in wiring.network.nodes]
    for node, rows in kept.tables.items():
        keeps = nodes.shares(node)
        columns = [
            Column("plan", Kind.COUNT, about="id"),
            *(Column(f"{wiring.arcs[arc].name} from", Kind.NUMBER, "tuples/s") for arc in rows.dimensions),
            Column("score", Kind.NUMBER, "tuples/s", "weighted output rate downstream"),
            *(Column(f"keep {wiring.arcs[arc].name}", Kind.SHARE) for arc in rows.drops),
        ]
        cells = np.column_stack((rows.rates, rows.scores, keeps)).tolist()
        lines = ((number, *line) for number, line in enumerate(cells, 1))
        yield Table.from_rows(f"Drop plans of d-fit, node {names[node]}", columns, lines)
    columns = [Column("sender"), Column("receiver"), Column("about"), *_SENT]
    said = ((names[way.sender], names[way.receiver], way.topic.value, *astuple(sent)) for way, sent in _sent(kept))
    yield Table.from_rows("Messages between d-fit nodes", columns, said)


def stored_nodes(nodes: DFit) -> dict[str, Table]:
    """Tables and traffic of all nodes, from which `kept_nodes` restores them exactly."""
    kept = nodes.kept()
    columns = (Column("sender", Kind.COUNT), Column("receiver", Kind.COUNT), Column("topic"), *_SENT)
    said = ((way.sender, way.receiver, way.topic.value, *astuple(sent)) for way, sent in _sent(kept))
    tables = {"messages": Table.from_rows("Messages", columns, said)}
    arcs = nodes.program.wiring.arcs
    for node, rows in kept.tables.items():
        rates = [f"{arcs[arc].name} from" for arc in rows.dimensions]
        flows = [f"flow {arcs[arc].name}" for arc in rows.drops]
        cells = np.column_stack((rows.rates, rows.scores, rows.flows))
        tables[f"node-{node}"] = _numbers([*rates, "score", *flows], cells)
        tables[f"node-{node}-conditions"] = _numbers(rates, kept.conditions[node])
    return tables


def kept_nodes(program: Program, epsilon: float, tables: Mapping[str, Table]) -> KeptTables:
    """Restore what `stored_nodes` gave."""
    parts = {node: Part.from_program(program, node) for node in busy_nodes(program.wiring)}
    topology = Topology.from_parts(parts, program.wiring)
    rows = {node: _rows(topology.dimensions[node], part.drops, tables[f"node-{node}"]) for node, part in parts.items()}
    conditions = {node: _cells(tables[f"node-{node}-conditions"]) for node in parts}
    traffic = {
        Channel(int(sent["sender"] or 0), int(sent["receiver"] or 0), Topic(str(sent["topic"]))): Traffic(
            *(int(sent[column.name] or 0) for column in _SENT)
        )
        for sent in tables["messages"].records()
    }
    return KeptTables(epsilon, rows, conditions, traffic)


def _rows(dimensions: Indices, drops: Indices, stored: Table) -> FitRows:
    cells = _cells(stored)
    if cells.shape[1] != len(dimensions) + 1 + len(drops):
        raise ValueError(f"table {stored.title!r} has {cells.shape[1]} columns")
    rates, scores, flows = np.split(cells, [len(dimensions), len(dimensions) + 1], axis=1)
    return FitRows(dimensions, rates.copy(), scores[:, 0].copy(), drops, flows.copy())


def _sent(kept: KeptTables) -> list[tuple[Channel, Traffic]]:
    return sorted(kept.traffic.items(), key=lambda sent: sent[0])


def _numbers(names: list[str], cells: Floats) -> Table:
    return Table.from_rows("Drop plans", [Column(name, Kind.NUMBER) for name in names], cells.tolist())


def _cells(stored: Table) -> Floats:
    return np.array(stored.rows, np.float64).reshape(len(stored.rows), len(stored.columns))
