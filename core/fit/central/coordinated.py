"""A coordinator and its nodes, connected by messages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.distributed.exchange import Correspondent, Exchanging, Places, Traffic
from adapt.core.fit.distributed.messages import ERASED_BYTES, HEADER_BYTES, Channel, Message, Sheet, Topic
from adapt.core.fit.distributed.peer import NodeTable, shed
from adapt.core.fit.network.network import Network, Operator
from adapt.core.fit.network.settings import AT_ONCE, Delivery
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.planners.direct_planners import ALONE, NO_PLAN, UNSHED, Planner, Plans
from adapt.core.fit.planners.plan_table import TablePlanner
from adapt.core.fit.planners.solver import Learnt, Seen, Workload
from adapt.core.fit.program.program import Program
from adapt.core.fit.tables.local_plans import Part, busy_nodes
from adapt.core.fit.tables.server import Server

Each = TypeVar("Each")
Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Duties:
    """What one node does for a coordinator."""

    node: int
    inputs: Indices  # the inputs whose rates it measures, ascending
    arcs: Indices  # the arcs on which it can drop, ascending; shape (arcs,)
    scaled: Mask  # which of these come from inputs, and are scaled down to a plan; shape (arcs,)
    catalogue: Floats  # a row per operator: number, cost, selectivity; and per resource: -1 - number, capacity, 0

    @property
    def reported(self) -> Sheet:
        """Its catalogue as the rows of a message."""
        return Sheet(np.empty(0, np.int64), self.catalogue)


def duties_of(program: Program) -> tuple[Duties, ...]:
    """The duties of all nodes of a network that have any.

    A node drops on the arcs that leave its splits. On an arc of an input, the node of the input drops if it has one,
    else the node that reads it.
    """
    wiring, network = program.wiring, program.wiring.network
    number = {node.name: at for at, node in enumerate(network.nodes)}
    measures = np.array([number[network.node_of(entering)] for entering in network.inputs], np.int64)
    arcs = program.drop_arcs
    drops = np.array([number[dropping_node(wiring, arc)] for arc in arcs], np.int64)
    operators = np.array([number[operator.node] for operator in network.operators], np.int64)
    ends = np.array([*range(len(number)), *(number[link.target] for link in network.links)], np.int64)
    busy = np.unique(np.concatenate((measures, drops, operators)))
    return tuple(
        Duties(
            int(node),
            np.flatnonzero(measures == node),
            arcs[drops == node],
            wiring.source[arcs[drops == node]] < wiring.inputs,
            np.array(
                [
                    *((at, each.cost, each.selectivity) for at, each in _at(network.operators, operators == node)),
                    *((-1.0 - at, limit, 0.0) for at, limit in _at(wiring.limits.tolist(), ends == node)),
                ]
            ),
        )
        for node in busy
    )


def known_network(network: Network, catalogues: Floats) -> Network:
    """A network with the costs, selectivities and capacities of received catalogues.

    Args:
        catalogues: Of all nodes, one below the other.
    """
    told = {int(number): (first, second) for number, first, second in catalogues.tolist()}
    nodes = len(network.nodes)
    operators = tuple(
        replace(operator, cost=told[at][0], selectivity=told[at][1]) for at, operator in enumerate(network.operators)
    )
    limits = [told.get(-1 - at, (None, 0.0))[0] for at in range(nodes + len(network.links))]
    return replace(
        network,
        operators=operators,
        nodes=tuple(
            node if limit is None else replace(node, capacity=limit)
            for node, limit in zip(network.nodes, limits[:nodes], strict=True)
        ),
        links=tuple(
            link if limit is None else replace(link, bytes_per_s=limit)
            for link, limit in zip(network.links, limits[nodes:], strict=True)
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


def _at(values: Sequence[Each], chosen: Mask) -> Iterable[tuple[int, Each]]:
    """The chosen values with their numbers."""
    return ((at, values[at]) for at in np.flatnonzero(chosen).tolist())


COORDINATOR = -1
"""The number of the coordinator; those of nodes start at 0."""

_NOTHING = np.empty(0, np.int64)


def _places(node: int) -> Places:
    return Places(node, _NOTHING, _NOTHING, {}, {})


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The shares of a node's arcs with each plan of a table."""

    number: int  # differs between tables; above 0, and 0 without a table
    sheet: Sheet  # a row per plan, shape (plans, arcs)

    @classmethod
    def of(cls, sheet: Sheet) -> "Table":
        """The table that arrived."""
        return cls(1 + crc32(np.ascontiguousarray(sheet.rows).tobytes()), sheet)

    @classmethod
    def empty(cls) -> "Table":
        """No table."""
        return cls(0, Sheet(_NOTHING, np.empty((0, 0))))

    @classmethod
    def for_nodes(cls, planner: Planner, duties: Iterable[Duties]) -> "dict[int, Table]":
        """The tables of all nodes that drop.

        They are empty where plans are made on demand.
        """
        made = {}
        for duty in duties:
            if len(duty.arcs) and isinstance(planner, TablePlanner) and planner.parts:
                table, _ = planner.parts[part_of(planner, duty.arcs)]
                shares = planner.program.keeps(table.low, table.flows)
                shares[:, planner.program.drop_arcs[planner.program.free]] = 1.0
                made[duty.node] = cls.of(Sheet(duty.arcs, np.ascontiguousarray(shares[:, duty.arcs])))
            elif len(duty.arcs):
                made[duty.node] = cls.empty()
        return made

    def message(self, duty: Duties, keeps: Floats, found: int) -> Floats:
        """Which plan a node should follow.

        Returns:
            Number of its table, id, scale of its inputs; where the plan is in no table, 0, id and all shares.
        """
        if self.number == 0 or found <= NO_PLAN:
            return np.concatenate(([0.0, found], keeps))
        base = self.sheet.rows[found - 1] if found > 0 else np.ones(len(keeps))
        scale = np.divide(keeps, base, out=np.zeros_like(keeps), where=base > 0)[duty.scaled]
        return np.concatenate(([float(self.number), found], scale))


class ManagedNode(Correspondent):
    """A node that reports to a coordinator and follows its plans.

    Attributes:
        shares: Share kept on each of its arcs; None before any plan has arrived.
        plan_id: Of the plan that it follows.
    """

    def __init__(self, duties: Duties) -> None:
        """A node without a plan."""
        super().__init__(_places(duties.node))
        self.duties, self.plan_id = duties, ALONE
        self.shares: Floats | None = None
        self._table = Table.empty()

    def start(self) -> list[Message]:
        """Report its catalogue."""
        self._mail.send(Channel(self.duties.node, COORDINATOR, Topic.CATALOGUE), self.duties.reported)
        return super().start()

    def deploy(self, duties: Duties) -> list[Message]:
        """Change its operators, costs or capacity; it reports what differs."""
        if not np.array_equal(duties.arcs, self.duties.arcs):
            self.shares, self.plan_id = None, ALONE
        self.duties = duties
        return self.start()

    def measure(self, rates: Floats) -> list[Message]:
        """Report the rates of its inputs, if they changed; shape (inputs,)."""
        if len(rates):
            self._mail.send(Channel(self.duties.node, COORDINATOR, Topic.RATES), Sheet(self.duties.inputs, rates[None]))
        return self._mail.take_away()

    def _react(self) -> None:
        """Follow the plan received, unless its table has not arrived yet."""
        plan, table = (
            self._mail.received.get(Channel(COORDINATOR, self.duties.node, topic))
            for topic in (Topic.PLAN, Topic.PLANS)
        )
        if plan is None or not np.array_equal(plan.arcs, self.duties.arcs):
            return
        number, found, *told = plan.rows[0].tolist()
        shares = np.ones(len(plan.arcs))
        if number == 0:
            shares[:] = told
        else:
            if table is not None and self._table.sheet is not table:
                self._table = Table.of(table)
            if self._table.number != number:
                return
            if found > 0:
                shares = self._table.sheet.rows[int(found) - 1].copy()
            shares[self.duties.scaled] *= told
        self.shares, self.plan_id = shares, int(found)


class Coordinator(Correspondent):
    """Plans for all nodes by what they have reported.

    It builds its planner once all catalogues have arrived, uploads the shares of precomputed plans, and sends each node
    the plan for the rates reported.
    """

    def __init__(self, duties: Mapping[int, Duties], planner_for: Callable[[Floats], Planner]) -> None:
        """A coordinator that knows nothing.

        Args:
            planner_for: Makes a planner of all catalogues, one below the other.
        """
        super().__init__(_places(COORDINATOR))
        self._duties, self._planner_for, self._news = duties, planner_for, False
        self.planner: Planner | None = None
        self._tables: dict[int, Table] = {}

    def deploy(self, duties: Mapping[int, Duties]) -> None:
        """Change the nodes that follow it."""
        self._duties, self._news, self.planner = duties, True, None
        there = {Channel(node, COORDINATOR, topic) for node in duties for topic in (Topic.CATALOGUE, Topic.RATES)}
        back = {Channel(COORDINATOR, node, topic) for node in duties for topic in (Topic.PLANS, Topic.PLAN)}
        self._mail.keep(there | back)

    def take(self, message: Message) -> list[Message]:
        """Receive a message; what follows from it waits for `decide`."""
        self._mail.take(message)
        self._news = True
        return []

    def decide(self, again: bool = False) -> list[Message]:
        """Plan for the rates reported, if anything has arrived.

        Args:
            again: Whether to plan anyway: the planner has learnt.
        """
        if not (self._news or again):
            return []
        self._news = False
        catalogues = [self._mail.received.get(Channel(node, COORDINATOR, Topic.CATALOGUE)) for node in self._duties]
        known = [sheet.rows for sheet in catalogues if sheet is not None]
        if len(known) < len(self._duties):
            return []
        planner = self._planner_for(np.concatenate(known))
        if planner is not self.planner:
            self.planner, self._tables = planner, Table.for_nodes(planner, self._duties.values())
            for node, table in self._tables.items():
                if table.number:
                    self._mail.send(Channel(COORDINATOR, node, Topic.PLANS), table.sheet)
        rates = self.rates()
        if rates is not None:
            self._tell(planner.plan(rates[None]))
        return self._mail.take_away()

    def rates(self) -> Floats | None:
        """The rates of all inputs; None before all have arrived."""
        rates = np.full(sum(len(duty.inputs) for duty in self._duties.values()), np.nan)
        for node, duty in self._duties.items():
            sheet = self._mail.received.get(Channel(node, COORDINATOR, Topic.RATES))
            if sheet is not None and np.array_equal(sheet.arcs, duty.inputs):
                rates[duty.inputs] = sheet.rows[0]
        return None if np.isnan(rates).any() else rates

    def _tell(self, plans: Plans) -> None:
        assert self.planner is not None
        for node, table in self._tables.items():
            duty = self._duties[node]
            found = id_of(plans.ids[0], part_of(self.planner, duty.arcs))
            row = table.message(duty, plans.keeps[0, duty.arcs], found)
            self._mail.send(Channel(COORDINATOR, node, Topic.PLAN), Sheet(duty.arcs, row[None]))

    def _react(self) -> None:
        """Nothing: it decides once all that arrives together is there."""


def id_of(ids: Indices, part: int) -> int:
    """The plan id of a part; without a part, nothing is dropped."""
    return int(ids[part]) if part < len(ids) else UNSHED


def part_of(planner: Planner, arcs: Indices) -> int:
    """The part of a planner's tables for a node's arcs.

    It is 0 without tables.
    """
    if not isinstance(planner, TablePlanner):
        return 0
    columns = np.searchsorted(planner.program.drop_arcs, arcs)
    plans = [bool((table.flows[:, columns] > 0).any()) for table, _ in planner.parts]
    return plans.index(True) if True in plans else 0


_FITS = 1 + 1e-10
"""Relative load up to which a node follows its plan."""


class Coordinated(Exchanging[Correspondent]):
    """A coordinator with a central planner, and the nodes that follow it.

    Nodes send the coordinator their catalogue (cost and selectivity of each operator, capacities), and the rates of
    their inputs whenever these change. Once it has all catalogues, the coordinator plans; it uploads precomputed plans
    to the nodes, with their ids. Whenever the plan changes, it sends each node concerned the id and the scale of its
    inputs, or the shares themselves if the plan is in no table.

    Where messages take time, a node goes on with its last plan. It drops on arrival what would overload it or a link
    into it, so none is overloaded, as a node of d-fit does, unless nodes trust upstream. Before its first plan, and
    wherever the last one would overload it, it decides alone.

    Source: FIT, sections 4 and 7.
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
            self._exchange.use(0.0)
        self._late, self._make = delivery.delay_s is not None, make
        self._seen, self._behind = Seen(workload), False
        self._place(program)
        self._made, self._made_of = planner, self._state(self._catalogues)
        self._parts = self._parts_of_nodes()
        self._told: tuple[Floats, Floats, Indices] | None = None
        self._peers[COORDINATOR] = self._coordinator = Coordinator(self._duties, self._planner_for)
        for node, duty in self._duties.items():
            self._start(node, ManagedNode(duty))
        if ahead or not self._late:
            self._deliver(np.inf)
        self._exchange.use(delivery.delay_s or 0.0)

    @property
    def central(self) -> Planner:
        """The planner, as last built."""
        return self._made

    @property
    def stale(self) -> bool:
        """Whether reports or plans are still on their way."""
        return self._behind or not self._exchange.up_to_date()

    @property
    def columns(self) -> int:
        """Number of plan ids per point."""
        return len(self._made.parts) if isinstance(self._made, TablePlanner) else 1

    def settle(self, until_s: float = np.inf) -> None:
        """Deliver messages until none is on its way, or until a time."""
        self._deliver(until_s)
        if until_s < np.inf:
            self._exchange.wait(until_s)

    def change(self, program: Program) -> None:
        """Apply new costs, selectivities, capacities or placements; nodes report them."""
        if program.wiring.arcs != self.program.wiring.arcs:
            raise UsageError("plans follow new costs, capacities and placements; a change of operators needs new ones")
        self._place(program)
        members = {COORDINATOR, *self._duties}
        self._exchange.close({way for way in self.traffic() if not {way.sender, way.receiver} <= members})
        self._coordinator.deploy(self._duties)
        for node in self._peers.keys() - members:
            del self._peers[node]
        for node, duty in self._duties.items():
            if node in self._peers:
                self._exchange.carry(self._node(node).deploy(duty))
            else:
                self._start(node, ManagedNode(duty))

    def plan(self, rates: Floats) -> Plans:
        """Plan as the coordinator would now.

        Where messages take time, as nodes do, by what has arrived.
        """
        if not self._late:
            return self._made.plan(rates)
        ticks = [self._followed(each) for each in rates]
        return Plans(*(np.concatenate([getattr(tick, name) for tick in ticks]) for name in _OF_PLANS))

    @property
    def steady(self) -> int:
        """Points for which the planner surely stays, at least 1."""
        return self._seen.left

    def used(self, rates: Floats, keeps: Floats, ids: Indices) -> None:
        """Count the messages of a tick, where they take no time.

        Args:
            rates: Planned for, tuples/s, shape (inputs,).
            keeps: Of the plan, shape (arcs,).
            ids: Of the plan, shape (columns,).
        """
        if self._late:
            return
        before, self._told = self._told, (rates, keeps, ids)
        for node, duty in self._duties.items():
            if len(duty.inputs) and (before is None or (before[0][duty.inputs] != rates[duty.inputs]).any()):
                self._count_row(Channel(node, COORDINATOR, Topic.RATES), len(duty.inputs), before is None)
            part = self._parts[node]
            found = id_of(ids, part)
            if len(duty.arcs) and not (
                before and id_of(before[2], part) == found and (before[1][duty.arcs] == keeps[duty.arcs]).all()
            ):
                whole = found <= NO_PLAN or not (isinstance(self._made, TablePlanner) and self._made.parts)
                shares = len(duty.arcs) if whole else int(duty.scaled.sum())
                self._count_row(Channel(COORDINATOR, node, Topic.PLAN), 2 + shares, before is None)
        self._observe(rates)

    @property
    def _catalogues(self) -> Floats:
        return np.concatenate([duty.catalogue for duty in self._duties.values()])

    def _node(self, node: int) -> ManagedNode:
        managed = self._peers[node]
        assert isinstance(managed, ManagedNode)
        return managed

    def _state(self, catalogues: Floats) -> tuple[object, ...]:
        """All that a planner depends on, for comparison."""
        return (*(operator.node for operator in self.program.wiring.network.operators), catalogues.tobytes())

    def _planner_for(self, catalogues: Floats) -> Planner:
        state = self._state(catalogues)
        if state != self._made_of:
            network = known_network(self.program.wiring.network, catalogues)
            self._made, self._made_of = self._make(network, self._seen.workload), state
            self._parts = self._parts_of_nodes()
        return self._made

    def _parts_of_nodes(self) -> dict[int, int]:
        return {node: part_of(self._made, duty.arcs) for node, duty in self._duties.items()}

    def _observe(self, rates: Floats) -> None:
        """Let the coordinator learn from the rates of a tick."""
        if self._seen.add(rates):
            self._made_of = ()
            self._exchange.carry(self._coordinator.decide(again=True))
            self._deliver(self._exchange.now)

    def _count_row(self, channel: Channel, columns: int, first: bool) -> None:
        size = 8 * columns + HEADER_BYTES + (0 if first else ERASED_BYTES)
        self._exchange.count(channel, Traffic(1, 1, 0 if first else 1, size))

    def _deliver(self, until_s: float) -> None:
        """Deliver messages up to a time; the coordinator decides once all of an instant have arrived."""
        while True:
            self._exchange.carry(self._coordinator.decide())
            at = self._exchange.next_s()
            if at > until_s or at == np.inf:
                return
            self._exchange.run(at)

    def _followed(self, rates: Floats) -> Plans:
        """What nodes do in a tick, each by the messages that have reached it; rates have shape (inputs,)."""
        for node, duty in self._duties.items():
            self._exchange.carry(self._node(node).measure(rates[duty.inputs]))
        self._deliver(self._exchange.now)
        known = self._coordinator.rates()
        if known is not None:
            self._observe(known)
        self._behind = not self._exchange.up_to_date()
        wiring = self.program.wiring
        keeps = np.ones((1, len(wiring.arcs)))
        ids = np.full((1, len(self._duties)), ALONE, np.int64)
        for at, (node, duty) in enumerate(self._duties.items()):
            if (shares := self._node(node).shares) is not None:
                keeps[0, duty.arcs], ids[0, at] = shares, self._node(node).plan_id
        if not self._delivery.trust_upstream:
            ids[0, np.isin([*self._duties], self._guard(rates[None], keeps))] = ALONE
        return Plans(keeps, wiring.scores(wiring.flows(rates[None], keeps)), ids)

    def _guard(self, rates: Floats, keeps: Floats) -> list[int]:
        """Let nodes drop what would overload them or links into them; returns these nodes."""
        wiring, program = self.program.wiring, self.program
        per_tuple = wiring.use / program.limits[: program.resources, None]
        guarded = []
        for node, server in self._servers.items():
            flows = wiring.flows(rates, keeps)
            entering = flows[:, server.entering]
            links = (entering @ server.links.T).max(initial=0.0)
            if max(float(per_tuple[node] @ flows[0]), links) <= _FITS:
                continue
            arcs = server.part.arcs
            kept, _ = shed(server, NodeTable(), False, entering, np.empty((1, 0)))
            before = np.isin(arcs, server.entering)
            keeps[:, arcs] = np.where(before, keeps[:, arcs] * kept, kept)
            guarded.append(node)
        fullest = (per_tuple @ wiring.flows(rates, keeps)[0]).max(initial=0.0)
        if fullest > _FITS:  # in a cycle of nodes
            keeps[:, wiring.source < wiring.inputs] /= fullest
        return guarded

    def _place(self, program: Program) -> None:
        """Derive what each node is deployed of a network."""
        self.program = program
        self._duties = {duty.node: duty for duty in duties_of(program)}
        busy = busy_nodes(program.wiring) if self._late else ()
        self._servers = {node: Server(Part.from_program(program, node)) for node in busy}


_OF_PLANS = ("keeps", "scores", "ids")
