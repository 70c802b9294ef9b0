"""A query network as arrays over its arcs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled
from adapt.core.fit.network.network import Network

Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Arc:
    """A connection from a source to one of its consumers."""

    source: str  # an input or operator
    target: str  # an operator, or an output if `port` is -1
    port: int  # number of the operator's input

    @property
    def name(self) -> str:
        """Unique in a network."""
        return f"{self.source} -> {self.target}" + (f".{self.port}" if self.port > 0 else "")


@dataclass(frozen=True, slots=True, eq=False)
class Wiring:
    """A network's arcs, in topological order of their sources.

    First the arcs of input 0, then of input 1, and so on; then those of each operator. An arc uses the CPU of its
    target's node, and the links it crosses.
    """

    network: Network
    arcs: tuple[Arc, ...]  # its arcs, E of them
    source: Indices  # of each arc, its number among `network.sources`, inputs first; shape (arcs,)
    target: Indices  # of each arc, the operator's number among `network.sources`; -1 at an output. Shape (arcs,)
    gain: Floats  # tuples that the target emits per arriving tuple; 0 at an output. Shape (arcs,)
    worth: Floats  # weight of an arriving tuple, 0 except at outputs; shape (arcs,)
    resources: tuple[str, ...]  # names of nodes, then of links
    use: Floats  # CPU seconds or bytes of each resource per tuple on each arc; shape (resources, arcs)
    limits: Floats  # capacity of each resource per second; shape (resources,)

    @classmethod
    def from_network(cls, network: Network) -> "Wiring":
        """The wiring of a network."""
        sources = network.sources
        number = {source.name: at for at, source in enumerate(sources)}
        arcs = sorted(_arcs(network), key=lambda arc: number[arc.source])
        operators = {operator.name: operator for operator in network.operators}
        weights = {output.name: output.weight for output in network.outputs}
        inner = [operators[arc.target] if arc.port >= 0 else None for arc in arcs]
        nodes = {node.name: at for at, node in enumerate(network.nodes)}
        use = np.zeros((len(nodes) + len(network.links), len(arcs)))
        for at, (arc, operator) in enumerate(zip(arcs, inner, strict=True)):
            if operator is None:
                continue
            use[nodes[operator.node], at] = operator.cost
            source = sources[number[arc.source]]
            for row, link in enumerate(network.links, len(nodes)):
                if (network.node_of(source), operator.node) == (link.source, link.target):
                    use[row, at] = source.out_bytes or 0.0
        return cls(
            network=network,
            arcs=tuple(arcs),
            source=np.array([number[arc.source] for arc in arcs], dtype=np.int64),
            target=np.array([number[operator.name] if operator else -1 for operator in inner], dtype=np.int64),
            gain=np.array(
                [operator.gain(arc.port) if operator else 0.0 for arc, operator in zip(arcs, inner, strict=True)]
            ),
            worth=np.array([weights[arc.target] if arc.port < 0 else 0.0 for arc in arcs]),
            resources=(*nodes, *(f"link {link.name}" for link in network.links)),
            use=use,
            limits=np.array([*(n.capacity for n in network.nodes), *(link.bytes_per_s for link in network.links)]),
        )

    @property
    def inputs(self) -> int:
        """Number of inputs, D."""
        return len(self.network.inputs)

    def arcs_of(self, source: int) -> slice:
        """The arcs that leave a source."""
        return slice(*np.searchsorted(self.source, [source, source + 1]))

    def flows(self, rates: Floats, keeps: Floats) -> Floats:
        """Tuples/s kept on each arc.

        Args:
            rates: Offered by each input, shape (points, inputs).
            keeps: Share kept of what is offered on each arc, in [0, 1]; shape (points, arcs) or (1, arcs).

        Returns:
            Shape (points, arcs).
        """
        kept = np.empty((len(rates), len(self.arcs)))
        _flow(
            np.ascontiguousarray(rates, np.float64),
            np.ascontiguousarray(keeps, np.float64),
            self.source,
            self.target,
            self.gain,
            np.empty(len(self.network.sources)),
            kept,
        )
        return kept

    def unshed(self, rates: Floats) -> Floats:
        """Flow on each arc without drops, shape (points, arcs)."""
        return self.flows(rates, np.ones((1, len(self.arcs))))

    def given(self, rates: Floats, flows: Floats) -> Floats:
        """Output of each source at these flows, shape (points, sources)."""
        inner = np.zeros((len(self.arcs), len(self.network.sources)))
        inside = self.target >= 0
        inner[inside, self.target[inside]] = self.gain[inside]
        sources = flows @ inner
        sources[:, : self.inputs] = rates
        return sources

    def uses(self, flows: Floats) -> Floats:
        """Utilization of each resource at these flows; shape (points, resources)."""
        return flows @ (self.use / self.limits[:, None]).T

    def scores(self, flows: Floats) -> Floats:
        """Weighted tuples/s at the outputs; shape (points,)."""
        return flows @ self.worth


def _arcs(network: Network) -> Iterable[Arc]:
    for operator in network.operators:
        for port, source in enumerate(operator.inputs):
            yield Arc(source, operator.name, port)
    for output in network.outputs:
        yield Arc(output.source, output.name, -1)


@compiled
def _flow(
    rates: Floats, keeps: Floats, source: Indices, target: Indices, gain: Floats, given: Floats, kept: Floats
) -> None:
    """What is kept on each arc of each point; `given` is scratch space for sources' output."""
    for point in range(len(rates)):
        given[:] = 0.0
        for entering in range(rates.shape[1]):
            given[entering] = rates[point, entering]
        share = point if len(keeps) > 1 else 0
        for arc in range(len(source)):
            kept[point, arc] = given[source[arc]] * keeps[share, arc]
            if target[arc] >= 0:
                given[target[arc]] += gain[arc] * kept[point, arc]


_BEYOND = 50.0
"""Utilization without drops from which on a unit must be wrong."""


def doubts(wiring: Wiring, rates: Floats) -> Iterator[str]:
    """What in a network can hardly be right.

    Args:
        rates: Tuples/s of each input, shape (times, inputs).
    """
    if not wiring.worth.any():
        yield "every output has weight 0, so no tuple has a value; give an output a weight above 0"
    flows = wiring.unshed(rates)
    for at, most in enumerate(wiring.uses(flows).max(axis=0, initial=0.0)):
        if most < _BEYOND:
            continue
        name, nodes = wiring.resources[at], len(wiring.network.nodes)
        arc = int(np.argmax((wiring.use[at] * flows).max(axis=0)))
        largest = f"{wiring.arcs[arc].target!r} needs {wiring.use[at, arc]:g}"
        units = (
            f"cost is in CPU seconds per tuple ({largest}), capacity in CPU seconds per second"
            if at < nodes
            else f"out_bytes is in bytes per tuple ({largest}), bandwidth in bytes per second"
        )
        yield f"{name} would need {most:,.0f} times its capacity; check units: {units}"
