"""Which node sends its table to which, and over which arcs."""

from dataclasses import dataclass

import numpy as np

from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.tables.local_plans import Part, busy_nodes


@dataclass(frozen=True, slots=True, eq=False)
class Topology:
    """The tree along which nodes send their tables."""

    nodes: tuple[int, ...]  # nodes with operators, upstream first
    # the node that receives each node's table: the last of those that feed it or what is downstream of it. Absent
    # without one
    receiver: dict[int, int]
    dimensions: dict[int, Indices]  # the arcs of each node's table, entering ones first

    @classmethod
    def from_parts(cls, parts: dict[int, Part], wiring: Wiring) -> "Topology":
        """The topology of a network whose nodes form no cycle."""
        nodes = tuple(busy_nodes(wiring))
        receiver: dict[int, int] = {}
        dimensions: dict[int, Indices] = {}
        for node in reversed(nodes):
            leaving = parts[node].leaving
            behind = [other for other in dimensions if other not in receiver]
            behind = [other for other in behind if np.isin(dimensions[other], leaving).any()]
            receiver |= dict.fromkeys(behind, node)
            passing = [dimensions[other][~np.isin(dimensions[other], leaving)] for other in behind]
            dimensions[node] = np.concatenate((parts[node].entering, *passing))
        return cls(nodes, receiver, dimensions)

    def senders(self, node: int) -> list[int]:
        """The nodes whose tables a node receives, in building order."""
        return [other for other in reversed(self.nodes) if self.receiver.get(other) == node]
