"""A coordinator and its nodes, connected by messages."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from zlib import crc32

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.distributed import shed_alone
from adapt.core.fit.distributed.messages import (
    ERASED_BYTES,
    HEADER_BYTES,
    Channel,
    Exchanging,
    Member,
    Sheet,
    Topic,
    Traffic,
)
from adapt.core.fit.network.network import Network, Operator
from adapt.core.fit.network.settings import AT_ONCE, Delivery
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.planners.direct_planners import ALONE, NO_PLAN, UNSHED, Planner, Plans
from adapt.core.fit.planners.plan_table import TablePlanner
from adapt.core.fit.planners.program import Program
from adapt.core.fit.planners.solver import Learnt, Seen, Workload
from adapt.core.fit.tables.local_plans import Part, busy_nodes
from adapt.core.fit.tables.server import Server

COORDINATOR = -1
"""The number of the coordinator; those of nodes start at 0."""


class ManagedNode(Member):
    """A node that reports to a coordinator and follows its plans.

    Attributes:
        inputs: The inputs whose rates it measures, ascending.
        arcs: The arcs on which it can drop, ascending; shape (arcs,).
        scaled: Which of these come from inputs, and are scaled down to a plan; shape (arcs,).
        catalogue: A row per operator: number, cost, selectivity; and per resource: -1 - number, capacity, 0.
        shares: Share kept on each of its arcs; None before any plan has arrived.
        plan_id: Of the plan that it follows.
    """

    def __init__(self, nodes: "Coordinated", node: int, inputs: Indices, arcs: Indices, catalogue: Floats) -> None:
        """A node without a plan."""
        super().__init__(node, nodes.exchange)
        self.inputs, self.arcs, self.catalogue = inputs, arcs, catalogue
        self.scaled = nodes.program.wiring.source[arcs] < nodes.program.inputs
        self.plan_id = ALONE
        self.shares: Floats | None = None
        self._table: Sheet | None = None
        self._number = 0

    def channels(self) -> list[Channel]:
        """All channels between it and the coordinator."""
        ways = {(self.node, COORDINATOR): (Topic.CATALOGUE, Topic.RATES)}
        ways[COORDINATOR, self.node] = (Topic.PLANS, Topic.PLAN)
        return [Channel(*ends, topic) for ends, topics in ways.items() for topic in topics]

    def report(self) -> None:
        """Send its catalogue, and follow the plan received."""
        self.send(COORDINATOR, Topic.CATALOGUE, Sheet(np.empty(0, np.int64), self.catalogue))
        self.react()

    def react(self) -> None:
        """Follow the plan received, unless its table has not arrived yet."""
        plan, table = self.heard(COORDINATOR, Topic.PLAN, self.arcs), self.heard(COORDINATOR, Topic.PLANS)
        if plan is None:
            return
        number, found, *told = plan.rows[0].tolist()
        shares = np.ones(len(plan.arcs))
        if number == 0:
            shares[:] = told
        else:
            if table is not None and self._table is not table:
                self._table, self._number = table, _number_of(table)
            if self._table is None or self._number != number:
                return
            if found > 0:
                shares = self._table.rows[int(found) - 1].copy()
            shares[self.scaled] *= told
        self.shares, self.plan_id = shares, int(found)


class _Coordinator(Member):
    """Knows whether it has received anything since it last decided."""

    news = False

    def channels(self) -> list[Channel]:
        """Those of its nodes."""
        return []

    def react(self) -> None:
        """It decides once all that arrives together is there."""
        self.news = True

    def take(self, topic: Topic) -> None:  # noqa: ARG002
        """Rates count too."""
        self.react()


def _number_of(table: Sheet) -> int:
    """A number above 0 that differs between tables."""
    return 1 + crc32(np.ascontiguousarray(table.rows).tobytes())


def managed_nodes(nodes: "Coordinated") -> dict[int, ManagedNode]:
    """The nodes that have anything to do for a coordinator.

    A node drops on the arcs that leave its splits. On an arc of an input, the node of the input drops if it has one,
    else the node that reads it.
    """
    program = nodes.program
    wiring, network = program.wiring, program.wiring.network
    number = {node.name: at for at, node in enumerate(network.nodes)}
    measures = np.array([number[network.node_of(entering)] for entering in network.inputs], np.int64)
    drops = np.array([number[dropping_node(wiring, arc)] for arc in program.drop_arcs], np.int64)
    operators = np.array([number[operator.node] for operator in network.operators], np.int64)
    ends = np.array([*range(len(number)), *(number[link.target] for link in network.links)], np.int64)
    values = np.array([(at, each.cost, each.selectivity) for at, each in enumerate(network.operators)]).reshape(-1, 3)
    limits = np.column_stack((-1.0 - np.arange(len(ends)), wiring.limits, np.zeros(len(ends))))
    return {
        node: ManagedNode(
            nodes,
            node,
            np.flatnonzero(measures == node),
            program.drop_arcs[drops == node],
            np.concatenate((values[operators == node], limits[ends == node])),
        )
        for node in np.unique(np.concatenate((measures, drops, operators))).tolist()
    }


def known_network(network: Network, catalogues: Floats) -> Network:
    """A network with the costs, selectivities and capacities of received catalogues.

    Args:
        catalogues: Of all nodes, one below the other.
    """
    told = {int(number): values for number, *values in catalogues.tolist()}
    limits = {-1 - number: values[0] for number, values in told.items() if number < 0}
    return replace(
        network,
        operators=tuple(
            replace(operator, cost=told[at][0], selectivity=told[at][1])
            for at, operator in enumerate(network.operators)
        ),
        nodes=tuple(replace(node, capacity=limits.get(at, node.capacity)) for at, node in enumerate(network.nodes)),
        links=tuple(
            replace(link, bytes_per_s=limits.get(at, link.bytes_per_s))
            for at, link in enumerate(network.links, len(network.nodes))
        ),
    )


def dropping_node(wiring: Wiring, arc: int) -> str:
    """The name of the node that drops on an arc.

    It is the node of the source where that has several consumers, and of an input that has a node; else the node that
    reads.
    """
    network = wiring.network
    source = network.sources[wiring.source[arc]]
    reads = network.sources[wiring.target[arc]] if wiring.target[arc] >= 0 else source
    leaving = wiring.arcs_of(int(wiring.source[arc]))
    splits = isinstance(source, Operator) and leaving.stop - leaving.start > 1
    own = source.node if splits or not isinstance(source, Operator) else None
    return own or network.node_of(reads)


def _id_of(ids: Indices, part: int) -> int:
    """The plan id of a part; without a part, nothing is dropped."""
    return int(ids[part]) if part < len(ids) else UNSHED


_FITS = 1 + 1e-10
"""Relative load up to which a node follows its plan."""


class Coordinated(Exchanging[Member]):
    """A coordinator with a central planner, and the nodes that follow it.

    Nodes send the coordinator their catalogue (cost and selectivity of each operator, capacities), and the rates of
    their inputs whenever these change. Once it has all catalogues, the coordinator plans; it uploads precomputed plans
    to the nodes, with their ids. Whenever the plan changes, it sends each node concerned the id and the scale of its
    inputs, or the shares themselves if the plan is in no table.

    Where messages take time, a node goes on with its last plan. It drops on arrival what would overload it or a link
    into it, so none is overloaded, as a node of d-fit does, unless nodes trust upstream. Before its first plan, and
    wherever the last one would overload it, it decides alone.

    Source: FIT, sections 4 and 7.

    Attributes:
        central: The planner, as last built.
    """

    def __init__(
        self,
        planner: Planner,
        program: Program,
        make: Callable[[Network, Workload | None], Planner],
        delivery: Delivery = AT_ONCE,
        ahead: bool = False,
        workload: Learnt | None = None,
    ) -> None:
        """A coordinator and its nodes.

        Args:
            planner: Of the program.
            make: Plans another state of the network, or for another workload.
            delivery: Without a delay, plans are those of the coordinator, and messages are counted.
            ahead: Whether catalogues and plans were exchanged before the start.
            workload: That of the planner, learnt from the rates reported; None: nothing is learnt.
        """
        super().__init__(delivery)
        if ahead:
            self.exchange.delay_s = 0.0
        self._make, self._seen = make, Seen(workload)
        self._coordinator = _Coordinator(COORDINATOR, self.exchange)
        self.central, self._behind = planner, False
        self._uploaded: Planner | None = None
        self._told: tuple[Floats, Floats, Indices] | None = None
        self._place(program)
        catalogues = np.concatenate([node.catalogue for node in self._nodes.values()])
        self._made_of: tuple[object, ...] = self._state(catalogues)
        self._parts = self._parts_of_nodes()
        if ahead or not self.late:
            self._deliver(np.inf)
        self.exchange.delay_s = delivery.delay_s or 0.0

    @property
    def stale(self) -> bool:
        """Whether reports or plans are still on their way."""
        return self._behind or super().stale

    @property
    def columns(self) -> int:
        """Number of plan ids per point."""
        return len(self.central.parts) if isinstance(self.central, TablePlanner) else 1

    @property
    def steady(self) -> int:
        """Points for which the planner surely stays, at least 1."""
        return self._seen.left

    def settle(self, until_s: float = np.inf) -> None:
        """Deliver messages until none is on its way, or until a time."""
        self._deliver(until_s)
        super().settle(until_s)

    def used(self, rates: Floats, keeps: Floats, ids: Indices) -> None:
        """Count the messages of a tick, where they take no time.

        Args:
            rates: Planned for, tuples/s, shape (inputs,).
            keeps: Of the plan, shape (arcs,).
            ids: Of the plan, shape (columns,).
        """
        if self.late:
            return
        before, self._told = self._told, (rates, keeps, ids)
        for number, node in self._nodes.items():
            if len(node.inputs) and (before is None or (before[0][node.inputs] != rates[node.inputs]).any()):
                self._count_row(Channel(number, COORDINATOR, Topic.RATES), len(node.inputs), before is None)
            part = self._parts[number]
            found = _id_of(ids, part)
            if len(node.arcs) and not (
                before and _id_of(before[2], part) == found and (before[1][node.arcs] == keeps[node.arcs]).all()
            ):
                whole = found <= NO_PLAN or not (isinstance(self.central, TablePlanner) and self.central.parts)
                shares = len(node.arcs) if whole else int(node.scaled.sum())
                self._count_row(Channel(COORDINATOR, number, Topic.PLAN), 2 + shares, before is None)
        self._observe(rates)

    def _count_row(self, channel: Channel, columns: int, first: bool) -> None:
        size = 8 * columns + HEADER_BYTES + (0 if first else ERASED_BYTES)
        self.exchange.count(channel, Traffic(1, 1, 0 if first else 1, size))

    def _place(self, program: Program) -> None:
        self.program = program
        self._nodes = managed_nodes(self)
        busy = busy_nodes(program.wiring) if self.late else ()
        self._servers = [Server(Part.from_program(program, node)) for node in busy]
        self._deploy({COORDINATOR: self._coordinator, **self._nodes})

    def _follow(self, member: Member, before: Member | None) -> None:
        if not isinstance(member, ManagedNode):
            self._coordinator.news, self._uploaded = True, None
            return
        if isinstance(before, ManagedNode) and np.array_equal(member.arcs, before.arcs):
            member.shares, member.plan_id = before.shares, before.plan_id
        member.report()

    def _deliver(self, until_s: float) -> None:
        """Deliver messages up to a time; the coordinator decides once all of an instant have arrived."""
        self._decide()
        while (at := self.exchange.next_s()) <= until_s and at < np.inf:
            self.exchange.run(at)
            self._decide()

    def _decide(self, again: bool = False) -> None:
        """Plan for the rates reported, if anything has arrived, or again: the planner has learnt.

        Plans need all catalogues; the tables of a new planner are uploaded first.
        """
        here = self._coordinator
        if not (here.news or again):
            return
        here.news = False
        known = [sheet.rows for node in self._nodes if (sheet := here.heard(node, Topic.CATALOGUE)) is not None]
        if len(known) < len(self._nodes):
            return
        catalogues = np.concatenate(known)
        state = self._state(catalogues)
        if state != self._made_of:
            network = known_network(self.program.wiring.network, catalogues)
            self.central, self._made_of = self._make(network, self._seen.workload), state
            self._parts = self._parts_of_nodes()
        if self.central is not self._uploaded:
            self._uploaded, self._tables = self.central, dict(self._tables_of_nodes())
            self._numbers = {node: _number_of(table) for node, table in self._tables.items()}
            for number, table in self._tables.items():
                here.send(number, Topic.PLANS, table)
        rates = self._rates()
        if rates is None:
            return
        plans = self.central.plan(rates[None])
        for number, node in self._nodes.items():
            if len(node.arcs):
                found = _id_of(plans.ids[0], self._parts[number])
                row = self._order(number, plans.keeps[0, node.arcs], found)
                here.send(number, Topic.PLAN, Sheet(node.arcs, row[None]))

    def _order(self, number: int, keeps: Floats, found: int) -> Floats:
        """Which plan a node should follow.

        Returns:
            Number of its table, id, scale of its inputs; where the plan is in no table, 0, id and all shares.
        """
        if number not in self._tables or found <= NO_PLAN:
            return np.concatenate(([0.0, found], keeps))
        base = self._tables[number].rows[found - 1] if found > 0 else np.ones(len(keeps))
        scale = np.divide(keeps, base, out=np.zeros_like(keeps), where=base > 0)[self._nodes[number].scaled]
        return np.concatenate(([float(self._numbers[number]), found], scale))

    def _tables_of_nodes(self) -> Iterator[tuple[int, Sheet]]:
        """The shares of each node's arcs with each plan of its table; nothing where plans are made on demand."""
        planner = self.central
        if isinstance(planner, TablePlanner) and planner.parts:
            for number, node in self._nodes.items():
                if len(node.arcs):
                    table, _ = planner.parts[self._parts[number]]
                    shares = planner.program.keeps(table.low, table.flows)
                    shares[:, planner.program.drop_arcs[planner.program.free]] = 1.0
                    yield number, Sheet(node.arcs, np.ascontiguousarray(shares[:, node.arcs]))

    def _parts_of_nodes(self) -> dict[int, int]:
        """The part of the planner's tables for each node's arcs; 0 without tables."""
        planner, parts = self.central, dict.fromkeys(self._nodes, 0)
        if isinstance(planner, TablePlanner):
            for number, node in self._nodes.items():
                columns = np.searchsorted(planner.program.drop_arcs, node.arcs)
                plans = [bool((table.flows[:, columns] > 0).any()) for table, _ in planner.parts]
                parts[number] = plans.index(True) if True in plans else 0
        return parts

    def _rates(self) -> Floats | None:
        """The rates of all inputs as reported; None before all have arrived."""
        rates = np.full(self.program.inputs, np.nan)
        for number, node in self._nodes.items():
            sheet = self._coordinator.heard(number, Topic.RATES, node.inputs)
            if sheet is not None:
                rates[node.inputs] = sheet.rows[0]
        return None if np.isnan(rates).any() else rates

    def _state(self, catalogues: Floats) -> tuple[object, ...]:
        """All that a planner depends on, for comparison."""
        return (*(operator.node for operator in self.program.wiring.network.operators), catalogues.tobytes())

    def _observe(self, rates: Floats) -> None:
        """Let the coordinator learn from the rates of a tick."""
        if self._seen.add(rates):
            self._made_of = ()
            self._decide(again=True)
            self._deliver(self.exchange.now)

    def _plan(self, rates: Floats) -> Plans:
        """Plan as the coordinator would now; where messages take time, as nodes do, by what has reached them."""
        if not self.late:
            return self.central.plan(rates)
        for node in self._nodes.values():
            if len(node.inputs):
                node.send(COORDINATOR, Topic.RATES, Sheet(node.inputs, rates[:, node.inputs]))
        self._deliver(self.exchange.now)
        known = self._rates()
        if known is not None:
            self._observe(known)
        self._behind = not self.exchange.up_to_date()
        wiring = self.program.wiring
        keeps = np.ones((1, len(wiring.arcs)))
        ids = np.full((1, len(self._nodes)), ALONE, np.int64)
        for at, node in enumerate(self._nodes.values()):
            if node.shares is not None:
                keeps[0, node.arcs], ids[0, at] = node.shares, node.plan_id
        if not self.delivery.trust_upstream:
            ids[0, np.isin([*self._nodes], self._guard(rates, keeps))] = ALONE
        return Plans(keeps, wiring.scores(wiring.flows(rates, keeps)), ids)

    def _guard(self, rates: Floats, keeps: Floats) -> list[int]:
        """Let nodes drop what would overload them or links into them; returns these nodes."""
        wiring, program = self.program.wiring, self.program
        per_tuple = wiring.use / program.limits[: program.resources, None]
        guarded = []
        for server in self._servers:
            part, flows = server.part, wiring.flows(rates, keeps)
            entering = flows[:, part.entering]
            links = (entering @ part.links.T).max(initial=0.0)
            if max(float(per_tuple[part.node] @ flows[0]), links) <= _FITS:
                continue
            kept = part.program.keeps(entering, shed_alone(server, entering)[0])
            keeps[:, part.arcs] = np.where(np.isin(part.arcs, part.entering), keeps[:, part.arcs] * kept, kept)
            guarded.append(part.node)
        fullest = (per_tuple @ wiring.flows(rates, keeps)[0]).max(initial=0.0)
        if fullest > _FITS:  # in a cycle of nodes
            keeps[:, wiring.source < wiring.inputs] /= fullest
        return guarded
