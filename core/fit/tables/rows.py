"""Rows of feasible input tables: rates, bounds, spacing, merging."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled, inlined
from adapt.core.fit.network.names import Grid, RateSteps
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.program import Program


class TooManyRows(Exception):
    """A table exceeds its limit; a larger epsilon makes it smaller."""


@dataclass(frozen=True, slots=True, eq=False)
class FitRows:
    """Rates that fit some nodes together, each with its plan."""

    dimensions: Indices  # the arcs whose rates the table holds, shape (dimensions,)
    rates: Floats  # Tuples/s, shape (rows, dimensions)
    scores: Floats  # of everything downstream of these arcs, shape (rows,)
    drops: Indices  # the drop arcs downstream whose shares are known, without the entering ones; shape (drops,)
    flows: Floats  # kept on these, tuples/s, shape (rows, drops)
    # utilization of nodes, and of links as numbers below 0, that rows of other tables use too; shape (rows,) each
    loads: dict[int, Floats] = field(default_factory=dict)

    @classmethod
    def without_drops(cls, dimensions: Indices, rates: Floats, scores: Floats) -> "FitRows":
        """Rows of which no shares are known."""
        return cls(dimensions, rates, scores, np.empty(0, np.int64), np.empty((len(rates), 0)))

    def __len__(self) -> int:
        return len(self.scores)

    def only(self, chosen: Indices | NDArray[np.bool_]) -> "FitRows":
        """Some of the rows."""
        loads = {shared: load[chosen] for shared, load in self.loads.items()}
        return FitRows(self.dimensions, self.rates[chosen], self.scores[chosen], self.drops, self.flows[chosen], loads)

    @property
    def needs(self) -> Floats:
        """Rates, then loads: what rows need; shape (rows, needs)."""
        return np.column_stack((self.rates, *self.loads.values()))


def merged(tables: Sequence[FitRows], most: int) -> FitRows:
    """Every combination of rows of several tables; scores add up.

    Source: FIT, section 6.3, on several children.
    """
    sizes = [len(table) for table in tables]
    if prod(sizes) > most:
        raise TooManyRows
    if len(tables) == 1:
        return tables[0]
    picked = np.indices(sizes).reshape(len(sizes), -1)
    return beside([table.only(rows) for table, rows in zip(tables, picked, strict=True)])


def beside(tables: Sequence[FitRows]) -> FitRows:
    """Tables side by side, row by row; scores add up."""
    return FitRows(
        np.concatenate([table.dimensions for table in tables]),
        np.concatenate([table.rates for table in tables], axis=1),
        np.sum([table.scores for table in tables], axis=0),
        np.concatenate([table.drops for table in tables]),
        np.concatenate([table.flows for table in tables], axis=1),
        {
            shared: np.sum([table.loads[shared] for table in tables if shared in table.loads], axis=0)
            for shared in sorted(set().union(*(table.loads for table in tables)))
        },
    )


_ROUNDING = 1e-9
"""Share of a step below which two grid lines count as one."""


@dataclass(frozen=True, slots=True, eq=False)
class GridLines:
    """The rates of each arc that a table is made of."""

    rates: tuple[Floats, ...]  # by arc, ascending from 0, tuples/s; shape (lines,) each
    widths: Floats  # the largest distance between lines of each arc, shape (arcs,)

    @classmethod
    def fixed(cls, most: Floats, steps: Floats, max_rows: int = 1_000_000) -> "GridLines":
        """Lines at equal distances, counted down from the highest rates.

        Args:
            most: The highest rates, tuples/s, shape (arcs,).
            steps: Distances, shape (arcs,). 0: only rate 0.
        """
        rates = []
        for highest, step in zip(most.tolist(), steps.tolist(), strict=True):
            count = int(np.ceil(highest / step - _ROUNDING)) if step > 0 else 0
            if count > max_rows:
                raise TooManyRows
            rates.append(np.append(0.0, (highest - step * np.arange(count))[::-1]))
        return cls(tuple(rates), steps)

    @classmethod
    def relative(cls, most: Floats, ratio: float, least: Floats, max_rows: int = 1_000_000) -> "GridLines":
        """Lines at equal ratios, from the highest rates down.

        Args:
            most: The highest rates, tuples/s, shape (arcs,).
            ratio: Distance between two lines / the upper one, in (0, 1).
            least: Rates below which no lines are needed, at least 0; shape (arcs,). inf: only rate 0.
        """
        rates = []
        for highest, low in zip(most.tolist(), least.tolist(), strict=True):
            with np.errstate(divide="ignore"):
                count = 1 + np.ceil(np.log(low / highest) / np.log1p(-ratio) - _ROUNDING) if highest > 0 else 0.0
            if low > highest:
                count = 0.0
            if count > max_rows:
                raise TooManyRows
            rates.append(np.append(0.0, highest * (1 - ratio) ** np.arange(int(count))[::-1]))
        widths = np.array([np.diff(lines).max(initial=0.0) for lines in rates])
        return cls(tuple(rates), widths)


@dataclass(frozen=True, slots=True, eq=False)
class Spacing:
    """How tables are spaced, and how large they may be."""

    epsilon: float  # distance between grid lines, as a share of an arc's highest rate, or of the upper line
    grid: Grid = Grid.SAFE  # whether rates in the feasibility triangle are omitted, and with which margin
    # of the guaranteed grid: score between grid lines, or below the lowest one; None: `epsilon` applies
    quantum: float | None = None
    max_rows: int = 1_000_000  # maximum rows of a table
    steps: RateSteps = RateSteps.FIXED  # whether lines are at equal distances or at equal ratios
    # share of its score that a row may lose to be represented by another, at each node that merges tables
    similar: float = 0.0
    sent_bytes: int | None = None  # largest table that a node of d-fit sends another; None: unlimited

    def lines(self, most: Floats, worth: Floats) -> GridLines:
        """The rates on each arc; only 0 without value.

        Args:
            most: The highest rates, tuples/s, shape (arcs,).
            worth: Value of a tuple, shape (arcs,).

        Source: FIT, sections 6.2 and 8.2.5.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            width = self.epsilon * most if self.quantum is None else self.quantum / worth
        if self.steps is RateSteps.RELATIVE:
            return GridLines.relative(most, self.epsilon, np.where(worth > 0, width, np.inf), self.max_rows)
        return GridLines.fixed(most, np.where(worth > 0, width, 0.0), self.max_rows)


@dataclass(frozen=True, slots=True, eq=False)
class Bounds:
    """Upper bounds of arriving rates, as known upstream."""

    arcs: Indices  # shape (arcs,)
    most: Floats  # the highest rate if all else is dropped, tuples/s, shape (arcs,)
    # the highest rate at which the arc's feeder alone fits without drops; inf without a limit, or with several
    # feeders. Shape (arcs,)
    corners: Floats

    @classmethod
    def joined(cls, parts: "Sequence[Bounds]") -> "Bounds":
        """All bounds together, arcs ascending."""
        arcs = np.concatenate([part.arcs for part in parts])
        order = np.argsort(arcs)
        most = np.concatenate([part.most for part in parts])
        corners = np.concatenate([part.corners for part in parts])
        return cls(arcs[order], most[order], corners[order])

    def on(self, arcs: Indices) -> "Bounds":
        """The bounds of some of the arcs."""
        at = np.searchsorted(self.arcs, arcs)
        return Bounds(arcs, self.most[at], self.corners[at])


def bounds_of_inputs(program: Program, most: Floats) -> Bounds:
    """The bounds on the arcs of inputs.

    Args:
        most: The highest rates, tuples/s, shape (inputs,).
    """
    wiring = program.wiring
    arcs = np.flatnonzero(wiring.source < wiring.inputs)
    return Bounds(arcs, most[wiring.source[arcs]], np.full(len(arcs), np.inf))


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

    def inside(self, rates: Floats) -> Floats:
        """Nothing: no rate is known to fit where no row does."""
        return np.zeros_like(rates)


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
