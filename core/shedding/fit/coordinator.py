"""C-FIT: all tables made and merged at one place, which then picks plans."""

from dataclasses import dataclass

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.resources.functions import Floats
from adapt.core.shedding.closing import ClosingOrder
from adapt.core.shedding.fit.leaf import Cut, feasible_grid, highest_rates, leaf_rows
from adapt.core.shedding.fit.point_tree import PointTree
from adapt.core.shedding.fit.propagation import mapped_back
from adapt.core.shedding.fit.rows import FitRows, TooManyRows, merged, without_similar
from adapt.core.shedding.highs import WarmSolver
from adapt.core.shedding.local import Part, busy_nodes, circle_of_nodes, worth_of_arrival
from adapt.core.shedding.names import Grid
from adapt.core.shedding.plan_table import PlanTable, TablePlanner
from adapt.core.shedding.program import Program, Scaled
from adapt.core.shedding.wiring import Indices, Wiring

_COARSER = 1.25
"""By which epsilon grows until a table is small enough."""

_SIMILAR = 1e-9
"""Rates of rows that differ by this part of the largest are the same."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The tables of a network, one for each set of nodes that no other shares tuples or nodes with.

    Attributes:
        program: Of the network.
        epsilon: That they were made with: the one asked for, or the least larger one tried that kept them small.
        tables: Over arcs of inputs only.
    """

    program: Program
    epsilon: float
    tables: tuple[FitRows, ...]

    def planner(self, prune: bool = True) -> TablePlanner:
        """Selects the best row at or below the rates, and scales the inputs down to it.

        Args:
            prune: Whether to leave out rows that another row at or below them matches.
        """
        program, wiring = self.program, self.program.wiring
        parts = []
        for rows in self.tables:
            low = np.zeros((len(rows), program.inputs))
            for at, arc in enumerate(rows.dimensions):
                entering = wiring.source[arc]
                low[:, entering] = np.maximum(low[:, entering], rows.rates[:, at])
            flows = rows.flows.copy()
            flows[:, np.searchsorted(program.drop_arcs, rows.dimensions)] = rows.rates
            tree = PointTree.of(low, rows.scores, prune)
            table = PlanTable(
                low=low,
                high=np.full_like(low, np.inf),
                scores=rows.scores,
                errors=np.full(len(rows), np.nan),
                flows=flows,
            )
            parts.append((table, tree))
        return TablePlanner(program, tuple(parts))


def fit(program: Program, most: Floats, epsilon: float, grid: Grid = Grid.SAFE, most_rows: int = 1_000_000) -> Fit:
    """Make the tables from the leaves up.

    A leaf has rows for rates on a grid. Any other node takes the rows of those after it, with rows on a grid for
    outputs of its own, and maps them back to what enters it. Nodes may have several parents. The feasibility triangle
    is left out only where it is known to need no row: along straight chains to one leaf.

    Args:
        program: Of a network without nodes in a circle.
        most: The highest rates, tuples/s, shape (inputs,).
        epsilon: Share of the best score that a plan may lose; kept by the guaranteed grid only.
        grid: How rates are spaced and which are left out.
        most_rows: A table that would have more is made with a larger epsilon.

    Raises:
        UsageError: the network is of another kind, or no epsilon below 1 makes the tables small enough.

    Source: FIT, section 6.
    """
    _check(program, grid)
    tried = epsilon
    while tried < 1:
        try:
            return Fit(program, tried, _Tables(program, most, tried, grid, most_rows).all())
        except TooManyRows:
            tried *= _COARSER
    raise UsageError(f"no table of {most_rows} rows holds this network at any epsilon; allow more rows, or use exact")


def _check(program: Program, grid: Grid) -> None:
    circle = circle_of_nodes(program.wiring)
    if circle:
        raise UsageError(f"c-fit needs nodes that send one way only; {' -> '.join(circle)} is a circle; use exact")
    if grid is Grid.GUARANTEED:
        wiring = program.wiring
        for node in busy_nodes(wiring):
            mine = _operators_on(wiring, node)
            merges = any((wiring.target == operator).sum() > 1 for operator in mine)
            if merges and (np.isin(wiring.source, mine) & (wiring.target >= 0) & ~np.isin(wiring.target, mine)).any():
                name = wiring.network.nodes[node].name
                raise UsageError(f"the guaranteed grid allows no union or join on {name!r}, which has nodes after it")


class _Tables:
    """The tables at one epsilon."""

    def __init__(self, program: Program, most: Floats, epsilon: float, grid: Grid, most_rows: int) -> None:
        self._program, self._wiring = program, program.wiring
        self._most, self._epsilon, self._grid, self._most_rows = most, epsilon, grid, most_rows
        self._limits = program.limits[: program.resources]
        self._worth = worth_of_arrival(self._wiring)
        self._nodes = busy_nodes(self._wiring)
        self._gridded = [arc for node in self._nodes for arc in self._gridded_arcs(node)]

    def all(self) -> tuple[FitRows, ...]:
        """Made node by node, those first that give to no other."""
        tables: list[FitRows] = []
        for node in self._nodes[::-1]:
            mine = _operators_on(self._wiring, node)
            behind = [table for table in tables if np.isin(self._wiring.source[table.dimensions], mine).any()]
            others = [table for table in tables if not np.isin(self._wiring.source[table.dimensions], mine).any()]
            made = self._leaf(node) if self._is_leaf(node) else self._parent(node, mine, behind)
            tables = [*others, self._within_links(made)]
        return tuple(tables)

    def _within_links(self, rows: FitRows) -> FitRows:
        """The rows that overload no link that ends in the arcs of the table."""
        links = slice(len(self._wiring.network.nodes), None)
        uses = rows.rates @ self._wiring.use[links][:, rows.dimensions].T
        fits = np.asarray((uses <= self._limits[links] * (1 + 1e-12)).all(axis=1))
        return rows if fits.all() else rows.only(fits)

    def _leaf(self, node: int) -> FitRows:
        part = self._part(node)
        order = ClosingOrder.of(part.program, roots=False)
        most = highest_rates(order, self._reach(part.entering, without=node))
        steps = self._steps(part.entering, most)
        return leaf_rows(self._program, part, order, most, steps, self._cut(part), self._most_rows)

    def _parent(self, node: int, mine: Indices, behind: list[FitRows]) -> FitRows:
        outputs = [self._output(arc) for arc in self._gridded_arcs(node)]
        together = merged([*behind, *outputs], self._most_rows)
        rows = mapped_back(self._program, node, mine, together, self._epsilon, self._most_rows)
        if len(behind) + len(outputs) == 1 and len(rows.dimensions) == len(together.dimensions):
            return rows  # one to one
        return without_similar(rows, _SIMILAR)

    def _output(self, arc: int) -> FitRows:
        """A table of its own for an output on a node that is no leaf."""
        dimension = np.array([arc])
        most = self._reach(dimension)
        steps = self._steps(dimension, most)
        rates = feasible_grid(most, steps, np.zeros(1), 1.0, None, self._most_rows)
        flows = np.zeros((len(rates), len(self._program.drop_arcs)))
        return FitRows(dimension, rates, rates[:, 0] * self._worth[arc], np.zeros(len(rates)), flows)

    def _part(self, node: int) -> Part:
        return Part.of(self._wiring, node, float(self._limits[node]), self._worth)

    def _is_leaf(self, node: int) -> bool:
        mine = _operators_on(self._wiring, node)
        leaving = np.isin(self._wiring.source, mine) & ~np.isin(self._wiring.target, mine)
        return bool((self._wiring.target[leaving] < 0).all())

    def _gridded_arcs(self, node: int) -> list[int]:
        """Arcs whose rates a node puts on a grid: what enters a leaf, outputs of others."""
        mine = np.isin(self._wiring.source, _operators_on(self._wiring, node))
        if self._is_leaf(node):
            into = np.isin(self._wiring.target, _operators_on(self._wiring, node))
            return [int(arc) for arc in np.flatnonzero(into & ~mine)]
        return [int(arc) for arc in np.flatnonzero(mine & (self._wiring.target < 0))]

    def _reach(self, arcs: Indices, without: int | None = None) -> Floats:
        """The most that can flow on each arc if all else is dropped, one node's limit left out; shape (arcs,)."""
        program, reach = self._program, np.empty(len(arcs))
        limits = self._limits.copy()
        if without is not None:
            limits[without] = limits[without] * 1e9
        relaxed = program.limited(limits)
        scaled = Scaled.of(relaxed)
        solver, upper = WarmSolver(scaled), program.upper(self._most) / scaled.unit
        for at, arc in enumerate(arcs):
            weights = program.flow[arc] * scaled.unit
            solver.aim(weights / (weights.max(initial=0.0) or 1.0))
            reach[at] = weights @ solver.values(upper)
        return reach

    def _steps(self, arcs: Indices, most: Floats) -> Floats:
        """Between rates on arcs, 0 where no tuple is worth anything; shape (arcs,)."""
        worth = self._worth[arcs]
        if self._grid is not Grid.GUARANTEED:
            return np.where(worth > 0, self._epsilon * most, 0.0)
        counted = sum(bool(self._worth[arc] > 0) for arc in self._gridded)
        with np.errstate(divide="ignore"):
            return np.where(worth > 0, self._epsilon * self._least_score() / (max(counted, 1) * worth), 0.0)

    def _least_score(self) -> float:
        """What the best plan gives at least where not all fits.

        Raises:
            UsageError: it may be nothing, so that no spacing guarantees anything.
        """
        corners = _corners(self._program)
        worth = self._program.wiring.scores(self._wiring.unshed(np.eye(self._program.inputs)))
        can_overload = np.isfinite(corners)
        for entering in np.flatnonzero(can_overload & (worth == 0)):
            name = self._wiring.network.inputs[entering].name
            raise UsageError(f"input {name!r} loads nodes and is worth nothing, so that no grid guarantees an error")
        return float((worth[can_overload] * corners[can_overload]).min(initial=np.inf)) if can_overload.any() else 0.0

    def _cut(self, part: Part) -> Cut | None:
        """The triangle in the rates of a leaf's arcs, if everything runs straight into it."""
        wiring = self._wiring
        inner = np.isin(wiring.source, _operators_on(wiring, part.node))
        before = ~inner
        fan_out = np.bincount(wiring.source[before], minlength=len(wiring.network.sources))
        inside = wiring.target[before & ~np.isin(np.arange(len(wiring.arcs)), part.entering)]
        fan_in = np.bincount(inside[inside >= 0], minlength=len(wiring.network.sources))
        if fan_out.max() > 1 or fan_in.max(initial=0) > 1 or (wiring.target[before] < 0).any():
            return None
        path = wiring.unshed(np.eye(self._program.inputs))[:, part.entering]
        if len(part.entering) != self._program.inputs or (np.count_nonzero(path, axis=0) != 1).any():
            return None
        return Cut(_mapped(_corners(self._program), path), margin=self._grid is not Grid.PAPER)


def _mapped(corners: Floats, path: Floats) -> Floats:
    """Highest rates of inputs as rates of a leaf's arcs; path has shape (inputs, arcs), one input an arc."""
    entering = path.argmax(axis=0)
    return np.asarray(corners[entering] * path[entering, np.arange(path.shape[1])])


def _corners(program: Program) -> Floats:
    """The highest rate of each input alone that fits without drops, inf if any does; shape (inputs,)."""
    loads = program.unshed(np.eye(program.inputs)) @ program.rows[: program.resources].T
    with np.errstate(divide="ignore"):
        alone = np.where(loads > 0, program.limits[: program.resources] / np.where(loads > 0, loads, 1.0), np.inf)
    return np.asarray(alone.min(axis=1, initial=np.inf))


def _operators_on(wiring: Wiring, node: int) -> Indices:
    """Numbers of the sources that a node runs, each after what it reads."""
    name = wiring.network.nodes[node].name
    return np.array(
        [wiring.inputs + at for at, operator in enumerate(wiring.network.operators) if operator.node == name],
        np.int64,
    )
