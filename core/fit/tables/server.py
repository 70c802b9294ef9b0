"""One node of C-FIT or D-FIT: its operators and its table."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.compiled import compiled
from adapt.core.fit.network.names import Grid
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.planners.highs import WarmSolver
from adapt.core.fit.planners.program import Program, Scaled
from adapt.core.fit.tables.composition import FITS, composed, covered, mapped_back
from adapt.core.fit.tables.local_plans import DropOrder, Part, busy_nodes
from adapt.core.fit.tables.rows import Bounds, FitRows, GridLines, Spacing, TooManyRows, merged


def feasible_grid(
    grid: GridLines,
    loads: Floats,
    limit: float,
    max_rows: int,
    corners: Floats | None = None,
    margin: bool = False,
) -> Floats:
    """Grid points that fit, outside the feasibility triangle; shape (points, dimensions).

    Args:
        corners: The highest rate of each arc alone that needs no drops anywhere, shape (dimensions,); None: no rate is
            known to need none.
        margin: Whether rates within a cell of the triangle's edge are kept; without it, some points have no plan.

    Source: FIT, section 6.2.
    """
    counts = np.array([len(rates) for rates in grid.rates], np.int64)
    lines = np.zeros((len(counts), counts.max(initial=1)))
    for axis, rates in enumerate(grid.rates):
        lines[axis, : counts[axis]] = rates
    edge, below = np.zeros(len(counts)), -1.0
    if corners is not None:  # cells that fit need no row; without a margin, the edge itself has rows
        edge = 1 / corners
        below = 1 + 1e-12 - float(grid.widths @ edge) if margin else 1 - 1e-12
    allowed = limit * (1 + 1e-12)
    number = _walk(lines, counts, loads, allowed, edge, below, max_rows, np.empty((0, len(counts))))
    if number > max_rows:
        raise TooManyRows
    points = np.empty((number, len(counts)))
    _walk(lines, counts, loads, allowed, edge, below, max_rows, points)
    return points


@compiled
def _walk(
    lines: Floats, counts: Indices, loads: Floats, limit: float, edge: Floats, below: float, most: int, out: Floats
) -> int:
    """Count grid points that fit outside the triangle, up to `most` + 1; write them if there is room."""
    axes = len(counts)
    if axes == 0:
        return 0
    at = np.zeros(axes, np.int64)
    load, height = np.zeros(axes + 1), np.zeros(axes + 1)
    found, axis = 0, 0
    while axis >= 0:
        fits = at[axis] < counts[axis]
        if fits:
            rate = lines[axis, at[axis]]
            load[axis + 1] = load[axis] + loads[axis] * rate
            height[axis + 1] = height[axis] + edge[axis] * rate
            fits = load[axis + 1] <= limit
        if not fits:
            axis -= 1
            if axis >= 0:
                at[axis] += 1
            continue
        if axis < axes - 1:
            axis += 1
            at[axis] = 0
            continue
        if height[axes] > below:
            if len(out) > 0:
                for other in range(axes):
                    out[found, other] = lines[other, at[other]]
            found += 1
            if found > most:
                return found
        at[axis] += 1
    return found


class Server:
    """A node with its operators, without knowledge of other nodes.

    Attributes:
        part: Its operators.
        leaf: Whether it sends to outputs only.
        alone: How it drops before it has received anything: a tuple sent to another node is worth one.
    """

    def __init__(self, part: Part) -> None:
        self.part, inner = part, part.program
        self.entering, self.leaving = part.entering, part.leaving
        self.leaf = bool((part.readers < 0).all())
        units = inner.wiring.unshed(np.eye(inner.inputs))
        whole = {int(arc): at for at, arc in enumerate(part.arcs)}
        self._place = np.array([whole[int(arc)] for arc in self.leaving], np.int64)
        self._through = units[:, self._place]
        """Tuples/s that leave per tuple/s that enters, without drops; shape (entering, leaving)."""
        self._load = units[:, inner.drop_arcs] @ inner.rows[0] / inner.limits[0]
        """Utilization of the node per tuple/s that enters; shape (entering,)."""
        self._order = DropOrder.from_program(inner, roots=False) if self.leaf else None
        network = inner.wiring.network
        outputs = zip(network.outputs, part.readers, strict=True)
        unknown = tuple(replace(output, weight=1.0) if reader >= 0 else output for output, reader in outputs)
        self.alone = DropOrder.from_program(Program.from_network(replace(network, outputs=unknown)))

    @property
    def merges(self) -> bool:
        """Whether it runs a union or join."""
        return any(len(operator.inputs) > 1 for operator in self.part.program.wiring.network.operators)

    def gridded(self) -> Indices:
        """Arcs with rates on a grid: leaf inputs, other nodes' outputs."""
        if self.leaf:
            return self.entering
        return self.leaving[self.part.readers < 0]

    def passed_on(self, bounds: Bounds) -> Bounds:
        """Bounds on the leaving arcs, given those on the entering arcs."""
        inner = self.part.program
        scaled = Scaled.from_program(inner)
        solver, upper = WarmSolver(scaled), inner.upper(self._most(bounds)) / scaled.unit
        most, corners = np.empty(len(self.leaving)), np.full(len(self.leaving), np.inf)
        alone = self._alone(bounds)
        for at, place in enumerate(self._place):
            weights = inner.flow[place] * scaled.unit
            solver.aim(weights / (weights.max(initial=0.0) or 1.0))
            most[at] = weights @ solver.values(upper)
            feeding = np.flatnonzero(self._through[:, at] > 0)
            if len(feeding) == 1:
                corners[at] = alone[feeding[0]] * self._through[feeding[0], at]
        return Bounds(self.leaving, most, corners)

    def table(self, bounds: Bounds, behind: Sequence[FitRows], spacing: Spacing) -> FitRows:
        """The node's table.

        Args:
            bounds: Of the entering arcs.
            behind: Tables of other nodes, whose dimensions include all arcs to them.
        """
        if self.leaf:
            return self._within_links(self.leaf_rows(bounds, spacing))
        return self._within_links(self._joined([*behind, *self._outputs(bounds, spacing)], spacing))

    def factors(self, bounds: Bounds, behind: Sequence[FitRows], spacing: Spacing) -> list[FitRows]:
        """Tables by entering arcs that share no tuples.

        Rows of different tables may overload the node together.
        """
        if self.leaf:
            return [self.table(bounds, behind, spacing)]
        groups = self._apart([*behind, *self._outputs(bounds, spacing)])
        if len(groups) == 1:
            return [self._within_links(self._joined(groups[0][1], spacing))]
        made = [self._within_links(self._joined(tables, spacing, arcs)) for arcs, tables in groups]
        return [replace(rows, loads={**rows.loads, **self._link_loads(rows)}) for rows in made]

    def conditions(self, behind: Sequence[tuple[Indices, Floats]], dimensions: Indices) -> Floats:
        """Conditions for no drops downstream: all rows @ rates <= 1.

        Args:
            behind: Arcs and conditions of other nodes, shape (conditions, arcs).
            dimensions: Arcs of the table, entering ones first; shape (dimensions,).

        Returns:
            Shape (conditions, dimensions).
        """
        entering = len(self.entering)
        own = np.zeros((1 + len(self.part.links), len(dimensions)))
        own[0, :entering] = self._load
        own[1:, :entering] = self.part.links
        found = [own]
        for arcs, rows in behind:
            mapped = np.zeros((len(rows), len(dimensions)))
            for at, arc in enumerate(arcs):
                place = np.flatnonzero(self.leaving == arc)
                if len(place):
                    mapped[:, :entering] += np.outer(rows[:, at], self._through[:, place[0]])
                else:
                    mapped[:, np.flatnonzero(dimensions == arc)[0]] += rows[:, at]
            found.append(mapped)
        return np.concatenate(found)

    def leaf_rows(self, bounds: Bounds, spacing: Spacing) -> FitRows:
        """The table of a leaf, with ascending rates.

        An arc's highest rate is that of the arc alone, with all drops applied, if that much can arrive.

        Source: FIT, section 6.2.
        """
        order, inner = self._order, self.part.program
        assert order is not None
        with np.errstate(divide="ignore"):
            alone = np.where(order.loads[-1] > 0, order.limit / order.loads[-1], np.inf)
        worth = inner.unshed(np.eye(inner.inputs)) @ inner.weights  # of an entering tuple without drops
        lines = spacing.lines(np.minimum(alone, self._most(bounds)), worth)
        corners, margin = self._alone(bounds) if self.part.straight else None, spacing.grid is not Grid.PAPER
        rates = feasible_grid(lines, order.loads[-1], order.limit, spacing.max_rows, corners, margin)
        variables, _ = order.plan(rates)
        return FitRows(self.entering, rates, variables @ inner.weights, self.part.drops, variables[:, self.part.splits])

    def _alone(self, bounds: Bounds) -> Floats:
        """The highest rate of each entering arc alone that needs no drops so far, links included; shape (entering,)."""
        load = np.maximum(self._load, self.part.links.max(axis=0, initial=0.0))
        with np.errstate(divide="ignore"):
            return np.minimum(bounds.corners, np.where(load > 0, 1 / load, np.inf))

    def _joined(self, behind: Sequence[FitRows], spacing: Spacing, entering: Indices | None = None) -> FitRows:
        """One table of several over leaving arcs."""
        if len(behind) > 1 and not self.merges:
            together = composed(self.part, behind, spacing.similar, spacing.max_rows, entering is not None)
            return mapped_back(self.part, together, spacing.epsilon, spacing.max_rows, entering)
        together = merged(behind, spacing.max_rows)
        rows = mapped_back(self.part, together, spacing.epsilon, spacing.max_rows, entering)
        if len(behind) == 1 and len(rows.dimensions) == len(together.dimensions):
            return rows  # one to one
        return rows.only(covered(rows.needs, rows.scores, spacing.similar))

    def _apart(self, tables: Sequence[FitRows]) -> list[tuple[Indices, list[FitRows]]]:
        """Tables by the entering arcs that feed them, which no others share."""
        groups: list[tuple[set[int], list[FitRows]]] = []
        for table in tables:
            feeding = set(self.entering[self._through[:, np.isin(self.leaving, table.dimensions)].any(axis=1)].tolist())
            near = [group for group in groups if group[0] & feeding]
            groups = [group for group in groups if not group[0] & feeding]
            arcs = feeding.union(*(group[0] for group in near))
            groups.append((arcs, [*(each for group in near for each in group[1]), table]))
        return [(np.array(sorted(arcs), np.int64), group) for arcs, group in groups]

    def _outputs(self, bounds: Bounds, spacing: Spacing) -> list[FitRows]:
        """Tables of the outputs of a node that is not a leaf."""
        outputs = self.gridded()
        if not len(outputs):
            return []
        left = self.passed_on(bounds).on(outputs)
        return [self._output(int(arc), left.on(np.array([arc])), spacing) for arc in outputs]

    def _output(self, arc: int, bounds: Bounds, spacing: Spacing) -> FitRows:
        """A table of its own for an output."""
        outputs = self.part.program.wiring.network.outputs
        worth = np.array([outputs[int(np.flatnonzero(self.leaving == arc)[0])].weight])
        lines = spacing.lines(bounds.most, worth)
        rates = feasible_grid(lines, np.zeros(1), 1.0, spacing.max_rows)
        return FitRows.without_drops(np.array([arc]), rates, rates[:, 0] * worth[0])

    def _most(self, bounds: Bounds) -> Floats:
        """The highest rates that can enter, with links considered; shape (entering,)."""
        links = self.part.links.max(axis=0, initial=0.0)
        with np.errstate(divide="ignore"):
            return np.minimum(bounds.most, np.where(links > 0, 1 / links, np.inf))

    def _within_links(self, rows: FitRows) -> FitRows:
        """The rows that overload no incoming link."""
        fits = np.ones(len(rows), np.bool_)
        for load in self._link_loads(rows).values():
            fits &= load <= FITS
        return rows if fits.all() else rows.only(fits)

    def _link_loads(self, rows: FitRows) -> dict[int, Floats]:
        """Utilization of incoming links in use, numbered below 0; shape (rows,) each."""
        entering = np.isin(rows.dimensions, self.entering)
        links = self.part.links[:, np.searchsorted(self.entering, rows.dimensions[entering])]
        return {-1 - link: rows.rates[:, entering] @ links[link] for link in np.flatnonzero(links.any(axis=1)).tolist()}


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
