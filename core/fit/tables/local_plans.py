"""One node of a network in isolation, and local drop plans."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.network import Input, Network, Operator, Output
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.planners.direct_planners import MADE, UNSHED, Plans
from adapt.core.fit.planners.program import Program

_ROUNDING = 1e-12
"""Share of an arc's load below which what is left of it counts as none."""


@dataclass(frozen=True, slots=True, eq=False)
class DropOrder:
    """The order in which one resource's drop arcs close as load rises.

    The order is the same for all rates: with one resource, the value of an arc at a price of load is linear in its
    flow, so it is kept until the price reaches its value per load, with arcs downstream closed in the same way. Closing
    arcs in that order, the last one partly, is the best plan, even where branches meet again.

    Source: FIT, section 6.2.2.
    """

    arcs: Indices  # variables by ascending value per load, without those that cause no load; shape (steps,)
    # each variable per tuple/s of each input, after 0, 1, 2, ... steps; shape (steps + 1, variables, inputs)
    flows: Floats
    # load of the resource per tuple/s of each input after each step, descending; shape (steps + 1, inputs)
    loads: Floats
    limit: float  # capacity of the resource

    @classmethod
    def from_program(cls, program: Program, roots: bool = True) -> "DropOrder":
        """The order of a program with a single resource.

        Args:
            roots: Whether arcs of inputs close too; if not, they keep what is offered, and arcs downstream of one that
                would close earlier do not close either.
        """
        branches = _Branches.of(program)
        arcs = np.array(_closing_order(program, branches, program.rows[0]), np.int64)
        if not roots:
            arcs = arcs[program.input_of[arcs] < 0]
        flows = _flows(program, branches, arcs)
        loads = np.einsum("v,svd->sd", program.rows[0], flows)
        return cls(arcs, flows, loads, float(program.limits[0]))

    def plan(self, rates: Floats) -> tuple[Floats, NDArray[np.bool_]]:
        """The flows that fit, and whether any do.

        Without roots, input rates may be too high for all steps.

        Args:
            rates: Tuples/s, shape (points, inputs).

        Returns:
            Flows of shape (points, variables), those after the last step where none fit; and whether they fit, shape
                (points,).
        """
        loads = rates @ self.loads.T
        fits = loads <= self.limit * (1 + 1e-12)
        if fits[:, 0].all():
            return _kept_flows(rates, self.flows[0]), fits[:, 0]
        step = np.where(fits.any(axis=1), fits.argmax(axis=1), len(self.arcs))
        flows = np.empty((len(rates), self.flows.shape[1]))
        for at in np.unique(step):
            points = np.flatnonzero(step == at)
            flows[points] = rates[points] @ self.flows[at].T
            if at > 0:
                before, after = loads[points, at - 1], loads[points, at]
                share = np.clip((self.limit - after) / (before - after), 0.0, 1.0)[:, None]
                flows[points] += share * (rates[points] @ (self.flows[at - 1] - self.flows[at]).T)
        return flows, np.asarray(fits.any(axis=1))


def _kept_flows(rates: Floats, flows: Floats) -> Floats:
    """The product rates @ flows.T, by indexing where every variable is an input."""
    picked = flows.argmax(axis=1)
    if np.array_equal(flows, np.eye(flows.shape[1])[picked]):
        return np.asarray(rates[:, picked])
    return rates @ flows.T


@dataclass(frozen=True, slots=True, eq=False)
class _Branches:
    """Arcs that feed others: by arc, each other one and what a unit adds to its offer."""

    feeders: list[list[tuple[int, float]]]
    fed: list[list[tuple[int, float]]]

    @classmethod
    def of(cls, program: Program) -> "_Branches":
        splits = np.flatnonzero(program.input_of < 0)
        shares = -program.rows[program.resources :]
        shares[np.arange(len(splits)), splits] = 0.0
        feeders: list[list[tuple[int, float]]] = [[] for _ in program.drop_arcs]
        fed: list[list[tuple[int, float]]] = [[] for _ in program.drop_arcs]
        for row, feeder in np.argwhere(shares > 0).tolist():
            feeders[splits[row]].append((feeder, float(shares[row, feeder])))
            fed[feeder].append((int(splits[row]), float(shares[row, feeder])))
        return cls(feeders, fed)


def _closing_order(program: Program, branches: _Branches, loads: Floats) -> list[int]:
    """Variables by ascending value per load; arcs fed only by a closed root are omitted.

    Closing an arc changes the ratios of those upstream alone, and only raises them: what it takes from them is worth
    less for its load than they are. So a ratio in the heap is at most the current one.
    """
    worth, load = program.weights.tolist(), loads.tolist()
    for arc in reversed(range(len(load))):  # arcs come after those that feed them
        for below, share in branches.fed[arc]:
            worth[arc] += share * worth[below]
            load[arc] += share * load[below]
    rounding = [_ROUNDING * each for each in load]
    flowing = _Flowing(program, branches)
    heap = [(worth[arc] / load[arc], arc) for arc in range(len(load)) if flowing.open[arc] and load[arc] > 0]
    heapify(heap)
    order = []
    while heap:
        ratio, arc = heappop(heap)
        if not flowing.open[arc] or load[arc] <= rounding[arc]:
            continue
        if worth[arc] / load[arc] > ratio:
            heappush(heap, (worth[arc] / load[arc], arc))
            continue
        order.append(arc)
        flowing.close(arc)
        taken = {arc: (worth[arc], load[arc])}
        while taken:
            below = max(taken)
            less_worth, less_load = taken.pop(below)
            for feeder, share in branches.feeders[below]:
                if flowing.open[feeder]:
                    before = taken.get(feeder, (0.0, 0.0))
                    taken[feeder] = before[0] + share * less_worth, before[1] + share * less_load
                    worth[feeder] -= share * less_worth
                    load[feeder] -= share * less_load
    return order


class _Flowing:
    """Which arcs are open and fed by one that is, or by an input."""

    def __init__(self, program: Program, branches: _Branches) -> None:
        """All arcs are open."""
        self._branches = branches
        self._feeders = [int(at >= 0) for at in program.input_of]
        self.open = [False] * len(self._feeders)
        for arc in range(len(self.open)):
            self._feeders[arc] += sum(self.open[feeder] for feeder, _ in branches.feeders[arc])
            self.open[arc] = self._feeders[arc] > 0

    def close(self, arc: int) -> None:
        """Close an arc, and those that nothing else feeds."""
        self.open[arc] = False
        for below, _ in self._branches.fed[arc]:
            self._feeders[below] -= 1
            if self._feeders[below] == 0 and self.open[below]:
                self.close(below)


def _flows(program: Program, branches: _Branches, arcs: Indices) -> Floats:
    """Each variable per tuple/s of each input, with none of the arcs closed, the first, the first two, and so on."""
    flows = np.zeros((len(arcs) + 1, len(program.drop_arcs), program.inputs))
    roots = np.flatnonzero(program.input_of >= 0)
    flows[0, roots, program.input_of[roots]] = 1.0
    for arc in range(flows.shape[1]):
        for below, share in branches.fed[arc]:
            flows[0, below] += share * flows[0, arc]
    is_open = [True] * flows.shape[1]
    for step, closed in enumerate(arcs.tolist()):
        now = flows[step + 1]
        now[:] = flows[step]
        now[closed], is_open[closed] = 0.0, False
        changed = {below for below, _ in branches.fed[closed]}
        while changed:
            arc = min(changed)
            changed.remove(arc)
            if is_open[arc]:
                now[arc] = 0.0
                for feeder, share in branches.feeders[arc]:
                    now[arc] += share * now[feeder]
                changed.update(below for below, _ in branches.fed[arc])
    return flows


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The network of one node.

    It holds all that the node knows of others before they send messages. Arcs have the same numbers at all nodes.
    """

    node: int
    program: Program  # has an input per arc that enters the node and an output per arc that leaves it
    entering: Indices  # the arc of each of its inputs, ascending, shape (inputs,)
    arcs: Indices  # the number of each of its arcs, shape (arcs of the part,)
    feeders: Indices  # the node that sends on each entering arc; -1: an input. Shape (entering,)
    leaving: Indices  # the arcs that leave it, ascending; shape (leaving,)
    readers: Indices  # the node that receives on each leaving arc; -1: an output. Shape (leaving,)
    links: Floats  # utilization of incoming links per tuple/s that enters; shape (links, entering)
    straight: bool  # whether every input of the network reaches it by one arc, without splits or merges before it

    @classmethod
    def from_program(cls, whole: Program, node: int, values: Floats | None = None) -> "Part":
        """The part of a node.

        Args:
            whole: The program of the whole network.
            node: The number of a node with operators.
            values: Value of an arriving tuple, shape (arcs,); None: only at outputs.
        """
        wiring, nodes = whole.wiring, len(whole.wiring.network.nodes)
        values = wiring.worth if values is None else values
        name = wiring.network.nodes[node].name
        mine = {operator.name for operator in wiring.network.operators if operator.node == name}
        entering = [
            at for at, arc in enumerate(wiring.arcs) if _inside(arc.target, arc.port, mine) and arc.source not in mine
        ]
        leaving = [
            at for at, arc in enumerate(wiring.arcs) if arc.source in mine and not _inside(arc.target, arc.port, mine)
        ]
        incoming = {(wiring.arcs[at].target, wiring.arcs[at].port): f"arc {at}" for at in entering}
        operators = [
            replace(
                operator,
                inputs=tuple(incoming.get((operator.name, port), read) for port, read in enumerate(operator.inputs)),
            )
            for operator in wiring.network.operators
            if operator.name in mine
        ]
        network = Network(
            nodes=(replace(wiring.network.nodes[node], capacity=float(whole.limits[node])),),
            inputs=tuple(Input(f"arc {at}") for at in entering),
            operators=tuple(operators),
            outputs=tuple(Output(f"arc {at}", wiring.arcs[at].source, float(values[at])) for at in leaving),
        )
        program = Program.from_network(network)
        number = {(arc.target, arc.port): at for at, arc in enumerate(wiring.arcs)}
        arcs = [
            int(arc.target.removeprefix("arc ")) if arc.port < 0 else number[arc.target, arc.port]
            for arc in program.wiring.arcs
        ]
        node_of = np.append(_nodes_of_sources(wiring), -1)  # the last: of outputs
        return cls(
            node,
            program,
            np.array(entering, np.int64),
            np.array(arcs, np.int64),
            node_of[wiring.source[entering]],
            np.array(leaving, np.int64),
            node_of[wiring.target[leaving]],
            np.asarray(wiring.use[nodes:, entering] / whole.limits[nodes : whole.resources, None]),
            _is_straight(whole, entering, np.isin(wiring.source, np.flatnonzero(node_of[:-1] == node))),
        )

    def facts(self) -> tuple[object, ...]:
        """Everything about it, for comparison."""
        arrays = (self.entering, self.feeders, self.leaving, self.readers, self.links)
        return (self.program.wiring.network, self.straight, *(array.tobytes() for array in arrays))

    @property
    def splits(self) -> Indices:
        """Its variables that no rate bounds, arcs ascending; shape (splits,)."""
        splits = np.flatnonzero(self.program.input_of < 0)
        return splits[np.argsort(self.arcs[self.program.drop_arcs[splits]])]

    @property
    def drops(self) -> Indices:
        """The arcs of these variables, ascending; shape (splits,)."""
        return self.arcs[self.program.drop_arcs[self.splits]]


class GreedyLocal:
    """Every node drops as if the others had unlimited capacity.

    A tuple that leaves a node is worth what it brings at the outputs without further drops. Nodes are planned in the
    order in which tuples reach them, each once in a cycle. What then overloads a link, or a node of a cycle, is dropped
    at all inputs alike.

    Source: FIT, section 1.1, plan 2 of Table 1.
    """

    def __init__(self, program: Program) -> None:
        self._wiring = program.wiring
        self._per_tuple = program.wiring.use / program.limits[: program.resources, None]
        values = worth_of_arrival(program.wiring)
        parts = [Part.from_program(program, node, values) for node in busy_nodes(program.wiring)]
        self._parts = [(part, DropOrder.from_program(part.program)) for part in parts]

    def plan(self, rates: Floats) -> Plans:
        """Plan node by node, each for the output of those upstream."""
        keeps = np.ones((len(rates), len(self._wiring.arcs)))
        for part, order in self._parts:
            arriving = self._wiring.flows(rates, keeps)[:, part.entering]
            flows, _ = order.plan(arriving)
            keeps[:, part.arcs] *= part.program.keeps(arriving, flows)
        fullest = (self._wiring.flows(rates, keeps) @ self._per_tuple.T).max(axis=1, initial=0.0)
        over = np.where(fullest > 1 + 1e-11, fullest, 1.0)
        keeps[:, self._wiring.source < self._wiring.inputs] /= over[:, None]
        scores = self._wiring.scores(self._wiring.flows(rates, keeps))
        return Plans(keeps, scores, np.where((keeps < 1).any(axis=1), MADE, UNSHED)[:, None])


def worth_of_arrival(wiring: Wiring) -> Floats:
    """Value of an arriving tuple without further drops, shape (arcs,)."""
    given = np.zeros(len(wiring.network.sources))
    worth = wiring.worth.copy()
    for arc in range(len(wiring.arcs) - 1, -1, -1):
        if wiring.target[arc] >= 0:
            worth[arc] = wiring.gain[arc] * given[wiring.target[arc]]
        given[wiring.source[arc]] += worth[arc]
    return worth


def busy_nodes(wiring: Wiring) -> list[int]:
    """Nodes with operators, upstream first as far as cycles allow."""
    ahead = dict(nodes_ahead(wiring))
    while True:
        try:
            return [node for node in TopologicalSorter(ahead).static_order() if node in ahead]
        except CycleError as error:  # in the order of their numbers
            circle = sorted(set(error.args[1]))
            ahead[circle[0]] = ahead[circle[0]] - set(circle)


def circle_of_nodes(wiring: Wiring) -> list[str]:
    """Names of nodes that form a cycle; empty without one."""
    try:
        TopologicalSorter(dict(nodes_ahead(wiring))).prepare()
    except CycleError as error:
        return [wiring.network.nodes[node].name for node in error.args[1]]
    return []


def nodes_ahead(wiring: Wiring) -> Iterator[tuple[int, set[int]]]:
    """For each node with operators, the nodes that feed it."""
    node_of = _nodes_of_sources(wiring)
    inside = wiring.target >= 0
    source, target = node_of[wiring.source[inside]], node_of[wiring.target[inside]]
    for node in np.unique(target):
        yield int(node), {int(other) for other in source[target == node] if other >= 0 and other != node}


def _nodes_of_sources(wiring: Wiring) -> Indices:
    """The node that runs each source; -1 for inputs."""
    number = {node.name: at for at, node in enumerate(wiring.network.nodes)}
    return np.array(
        [number[source.node] if isinstance(source, Operator) else -1 for source in wiring.network.sources], np.int64
    )


def _is_straight(program: Program, entering: list[int], of_node: NDArray[np.bool_]) -> bool:
    """Whether every input reaches a node by one arc, without splits or merges before it.

    Args:
        of_node: Which arcs its operators send on, shape (arcs,).
    """
    wiring = program.wiring
    before = ~of_node
    fan_out = np.bincount(wiring.source[before], minlength=len(wiring.network.sources))
    inside = wiring.target[before & ~np.isin(np.arange(len(wiring.arcs)), entering)]
    fan_in = np.bincount(inside[inside >= 0], minlength=len(wiring.network.sources))
    if fan_out.max(initial=0) > 1 or fan_in.max(initial=0) > 1 or (wiring.target[before] < 0).any():
        return False
    path = wiring.unshed(np.eye(program.inputs))[:, entering]
    return len(entering) == program.inputs and bool((np.count_nonzero(path, axis=0) == 1).all())


def _inside(target: str, port: int, mine: set[str]) -> bool:
    return port >= 0 and target in mine
