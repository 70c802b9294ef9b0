"""What each node measures, reports and drops for a coordinator."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.messages import Sheet
from adapt.core.fit.network.network import Network, Operator
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.program.program import Program

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
