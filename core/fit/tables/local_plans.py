"""One node of a network in isolation, and local drop plans."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.network import Input, Network, Operator, Output
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.planners.planner import MADE, UNSHED, Plans
from adapt.core.fit.program.program import Program
from adapt.core.fit.tables.drop_order import DropOrder


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """The network of one node.

    Attributes:
        program: Has an input per arc that enters the node and an output per arc that leaves it.
        entering: The arc of the whole network for each of its inputs, shape (inputs,).
        arcs: The arc of the whole network for each of its arcs, shape (arcs of the part,).
    """

    node: int
    program: Program
    entering: Indices
    arcs: Indices

    @classmethod
    def from_wiring(cls, wiring: Wiring, node: int, limit: float, values: Floats) -> "Part":
        """The part of a node.

        Args:
            wiring: The whole network.
            node: The number of a node with operators.
            limit: Its CPU seconds per second.
            values: Value of an arriving tuple, shape (arcs,).
        """
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
            nodes=(replace(wiring.network.nodes[node], capacity=limit),),
            inputs=tuple(Input(f"arc {at}") for at in entering),
            operators=tuple(operators),
            outputs=tuple(Output(f"arc {at}", wiring.arcs[at].source, float(values[at])) for at in leaving),
        )
        program = Program.from_network(network)
        whole = {(arc.target, arc.port): at for at, arc in enumerate(wiring.arcs)}
        arcs = [
            int(arc.target.removeprefix("arc ")) if arc.port < 0 else whole[arc.target, arc.port]
            for arc in program.wiring.arcs
        ]
        return cls(node, program, np.array(entering, np.int64), np.array(arcs, np.int64))


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
        parts = [
            Part.from_wiring(program.wiring, node, float(program.limits[node]), values)
            for node in busy_nodes(program.wiring)
        ]
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


def _inside(target: str, port: int, mine: set[str]) -> bool:
    return port >= 0 and target in mine
