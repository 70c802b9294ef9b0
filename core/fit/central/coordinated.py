"""A central planner whose knowledge and plans travel in messages."""

from collections.abc import Callable

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.central.duties import duties_of, known_network
from adapt.core.fit.central.sites import COORDINATOR, Coordinator, ManagedNode, id_of, part_of
from adapt.core.fit.distributed.correspondent import Correspondent
from adapt.core.fit.distributed.exchange import Exchanging, Traffic
from adapt.core.fit.distributed.mailbox import Channel
from adapt.core.fit.distributed.messages import ERASED_BYTES, HEADER_BYTES, Topic
from adapt.core.fit.distributed.node_table import NodeTable, shed
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.plan_table import TablePlanner
from adapt.core.fit.planners.planner import ALONE, NO_PLAN, Planner, Plans
from adapt.core.fit.planners.workload import Learnt, Seen, Workload
from adapt.core.fit.program.program import Program
from adapt.core.fit.tables.local_plans import Part, busy_nodes
from adapt.core.fit.tables.server import Server

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
        delay_s: float | None = None,
        ahead: bool = False,
        trust_upstream: bool = False,
        workload: Learnt | None = None,
    ) -> None:
        """A coordinator and its nodes.

        Args:
            planner: Of the program.
            make: Plans another state of the network, or for another workload.
            delay_s: Delay of messages, at least 0; None: plans are those of the coordinator, and messages are counted.
            ahead: Whether catalogues and plans were exchanged before the start.
            trust_upstream: Whether nodes accept whatever arrives.
            workload: That of the planner, learnt from the rates reported; None: nothing is learnt.
        """
        super().__init__(delay_s)
        if ahead:
            self._exchange.use(0.0)
        self._late, self._make, self._trust_upstream = delay_s is not None, make, trust_upstream
        self._seen, self._behind = Seen(workload), False
        self._place(program)
        self._made, self._made_of = planner, self._state(self._catalogues)
        self._parts = self._parts_of_nodes()
        self._told: tuple[Floats, Floats, Indices] | None = None
        self._peers[COORDINATOR] = self._coordinator = Coordinator(self._duties, self._planner_for)
        for node, duty in self._duties.items():
            self._start(node, ManagedNode(duty))
        if ahead or delay_s is None:
            self._deliver(np.inf)
        self._exchange.use(delay_s or 0.0)

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
                whole = found < NO_PLAN or not (isinstance(self._made, TablePlanner) and self._made.parts)
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
        if not self._trust_upstream:
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
