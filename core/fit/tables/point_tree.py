"""A point quadtree that finds the best row below a point."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.fit.network.wiring import Indices


@dataclass(frozen=True, slots=True, eq=False)
class PointTree:
    """Rows by descending score, each dividing its parent's space into orthants.

    A row's children lie in the orthants around it; bit j is set for those that are not below it in input j. As rows are
    inserted by descending score, a row is better than all below it in the tree, so a search leaves a branch as soon as
    it has found something better. A point maps to the same row as with the paper's disjoint boxes.

    Source: FIT, section 6.4; Samet, The Quadtree and Related Hierarchical Data Structures (1984).
    """

    order: Indices  # the row at each node, shape (nodes,); dominated rows have no node
    points: Floats  # rates of each node's row, shape (nodes, inputs)
    first: Indices  # the first child of each node, else -1; shape (nodes,)
    following: Indices  # the next child of its parent, else -1; shape (nodes,)
    orthant: Indices  # the orthant of its parent that holds a node, shape (nodes,)

    @classmethod
    def from_table(cls, rates: Floats, scores: Floats, prune: bool) -> "PointTree":
        """The tree of a table.

        Args:
            rates: Shape (rows, inputs), at most 62 inputs.
            scores: Shape (rows,); ties are in the order of the rows.
            prune: Whether to omit rows with a row at or below them whose score is at least as high.
        """
        order = np.argsort(-scores, kind="stable")
        first, following = np.full(len(order), -1, np.int64), np.full(len(order), -1, np.int64)
        orthant = np.zeros(len(order), np.int64)
        kept = np.empty(len(order), np.int64)
        points = np.ascontiguousarray(rates[order])
        nodes = _build(points, prune, first, following, orthant, kept)
        kept = kept[:nodes]
        return cls(order[kept], points[:nodes].copy(), first[:nodes], following[:nodes], orthant[:nodes])

    def find(self, rates: Floats) -> Indices:
        """The best row at or below each point, else -1; shape (points,)."""
        found = np.empty(len(rates), np.int64)
        _search(self.points, self.first, self.following, self.orthant, rates, found)
        return np.where(found >= 0, self.order[found] if len(self.order) else -1, -1)


@inlined
def _best(
    points: Floats, first: Indices, following: Indices, orthant: Indices, rates: Floats, nodes: int, stack: Indices
) -> int:
    """The first node at or below a point, else `nodes`."""
    best = nodes
    if nodes == 0:
        return best
    stack[0] = 0
    depth = 1
    while depth > 0:
        depth -= 1
        node = stack[depth]
        if node >= best:
            continue
        above = 0
        for axis in range(len(rates)):
            if points[node, axis] > rates[axis]:
                above |= 1 << axis
        if above == 0:
            best = node
            continue
        child = first[node]
        while child >= 0:
            if orthant[child] & above == 0 and child < best:
                stack[depth] = child
                depth += 1
            child = following[child]
    return best


@compiled
def _build(points: Floats, prune: bool, first: Indices, following: Indices, orthant: Indices, kept: Indices) -> int:
    """Insert points in order, moved to the front as dominated ones are omitted; returns the node count."""
    nodes = 0
    stack = np.empty(len(points) + 1, np.int64)
    for row in range(len(points)):
        if prune and _best(points, first, following, orthant, points[row], nodes, stack) < nodes:
            continue
        for axis in range(points.shape[1]):
            points[nodes, axis] = points[row, axis]
        kept[nodes] = row
        parent = 0
        while nodes > 0:
            where = 0
            for axis in range(points.shape[1]):
                if points[nodes, axis] >= points[parent, axis]:
                    where |= 1 << axis
            child = first[parent]
            while child >= 0 and orthant[child] != where:
                child = following[child]
            if child < 0:
                orthant[nodes] = where
                following[nodes] = first[parent]
                first[parent] = nodes
                break
            parent = child
        nodes += 1
    return nodes


@compiled
def _search(
    points: Floats, first: Indices, following: Indices, orthant: Indices, rates: Floats, found: Indices
) -> None:
    nodes = len(points)
    stack = np.empty(nodes + 1, np.int64)
    for point in range(len(rates)):
        best = _best(points, first, following, orthant, rates[point], nodes, stack)
        found[point] = best if best < nodes else -1
