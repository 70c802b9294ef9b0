"""One node of C-FIT or D-FIT: its operators and its table."""

from collections.abc import Sequence

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.names import Grid
from adapt.core.fit.network.wiring import Indices, Wiring
from adapt.core.fit.program.highs import WarmSolver
from adapt.core.fit.program.program import Program, Scaled
from adapt.core.fit.tables.bounds import Bounds
from adapt.core.fit.tables.drop_order import DropOrder
from adapt.core.fit.tables.leaf import Triangle, feasible_grid, highest_rates, leaf_rows
from adapt.core.fit.tables.local_plans import Part
from adapt.core.fit.tables.propagation import mapped_back
from adapt.core.fit.tables.rows import FitRows, merged, without_similar
from adapt.core.fit.tables.spacing import Spacing

_SIMILAR = 1e-9
"""Relative difference up to which rates of rows count as equal."""


class Server:
    """A node with its operators, without knowledge of other nodes.

    Attributes:
        part: Its operators.
        leaving: Arcs to other nodes or outputs; shape (leaving,).
        leaf: Whether it sends to outputs only.
        alone: How it drops before it has received anything: a tuple sent to another node is worth one.
    """

    def __init__(self, program: Program, node: int) -> None:
        self.program, self.node = program, node
        wiring = program.wiring
        self.part = Part.from_wiring(wiring, node, float(program.limits[node]), wiring.worth)
        self._operators = _operators_on(wiring, node)
        mine = np.isin(wiring.source, self._operators)
        self.leaving = np.flatnonzero(mine & ~np.isin(wiring.target, self._operators))
        self.leaf = bool((wiring.target[self.leaving] < 0).all())
        inner = self.part.program
        units = inner.wiring.unshed(np.eye(inner.inputs))
        whole = {int(arc): at for at, arc in enumerate(self.part.arcs)}
        self._place = np.array([whole[int(arc)] for arc in self.leaving], np.int64)
        self._through = units[:, self._place]
        """Tuples/s that leave per tuple/s that enters, without drops; shape (entering, leaving)."""
        self._load = units[:, inner.drop_arcs] @ inner.rows[0] / inner.limits[0]
        """Utilization of the node per tuple/s that enters; shape (entering,)."""
        self._order = DropOrder.from_program(inner, roots=False) if self.leaf else None
        unknown = np.where(wiring.target >= 0, 1.0, wiring.worth)
        self.alone = DropOrder.from_program(
            Part.from_wiring(wiring, node, float(program.limits[node]), unknown).program
        )
        self.straight = self.leaf and _all_runs_straight_into(program, self.part.entering, self._operators)

    @property
    def entering(self) -> Indices:
        """Arcs that enter it, ascending; shape (entering,)."""
        return self.part.entering

    @property
    def sent_by_others(self) -> Indices:
        """Entering arcs that come from other nodes; shape (sent,)."""
        return self.entering[self.program.wiring.source[self.entering] >= self.program.inputs]

    @property
    def worth(self) -> Floats:
        """Of a leaf: value of an entering tuple without drops, shape (entering,)."""
        inner = self.part.program
        return inner.unshed(np.eye(inner.inputs)) @ inner.weights

    @property
    def merges(self) -> bool:
        """Whether it runs a union or join."""
        return any(len(operator.inputs) > 1 for operator in self.part.program.wiring.network.operators)

    def facts(self) -> tuple[object, ...]:
        """Everything that determines its table, except messages; for comparison."""
        wiring = self.program.wiring
        network = self.part.program.wiring.network
        arrays = (self.entering, self.leaving, wiring.worth[self.leaving], self.links)
        return (network, self.straight, *(array.tobytes() for array in arrays))

    def split_variables(self) -> tuple[Indices, Indices]:
        """Variables that no rate bounds, in its part and the whole."""
        inner = self.part.program
        splits = np.flatnonzero(inner.input_of < 0)
        return splits, np.searchsorted(self.program.drop_arcs, self.part.arcs[inner.drop_arcs[splits]])

    def gridded(self) -> Indices:
        """Arcs with rates on a grid: leaf inputs, other nodes' outputs."""
        if self.leaf:
            return self.entering
        return self.leaving[self.program.wiring.target[self.leaving] < 0]

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

        Raises:
            TooManyRows: the table exceeds its limit.
        """
        made = self._leaf_table(bounds, spacing) if self.leaf else self._parent_table(bounds, behind, spacing)
        return self._within_links(made)

    def conditions(self, behind: Sequence[tuple[Indices, Floats]], dimensions: Indices) -> Floats:
        """Conditions for no drops downstream: all rows @ rates <= 1.

        Args:
            behind: Arcs and conditions of other nodes, shape (conditions, arcs).
            dimensions: Arcs of the table, entering ones first; shape (dimensions,).

        Returns:
            Shape (conditions, dimensions).
        """
        entering = len(self.entering)
        own = np.zeros((1 + len(self.links), len(dimensions)))
        own[0, :entering] = self._load
        own[1:, :entering] = self.links
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

    def _leaf_table(self, bounds: Bounds, spacing: Spacing) -> FitRows:
        assert self._order is not None
        most = highest_rates(self._order, self._most(bounds))
        steps = spacing.steps(most, self.worth)
        triangle = self._triangle(bounds, spacing) if self.straight else None
        return leaf_rows(self.program, self.part, self._order, most, steps, triangle, spacing.max_rows)

    def _triangle(self, bounds: Bounds, spacing: Spacing) -> Triangle:
        return Triangle(self._alone(bounds), margin=spacing.grid is not Grid.PAPER)

    def _alone(self, bounds: Bounds) -> Floats:
        """The highest rate of each entering arc alone that needs no drops so far, links included; shape (entering,)."""
        load = np.maximum(self._load, self.links.max(axis=0, initial=0.0))
        with np.errstate(divide="ignore"):
            return np.minimum(bounds.corners, np.where(load > 0, 1 / load, np.inf))

    def _parent_table(self, bounds: Bounds, behind: Sequence[FitRows], spacing: Spacing) -> FitRows:
        outputs = self.gridded()
        if len(outputs):
            left = self.passed_on(bounds).on(outputs)
            behind = [*behind, *(self._output(int(arc), left.on(np.array([arc])), spacing) for arc in outputs)]
        together = merged(behind, spacing.max_rows)
        rows, loads = mapped_back(self.program, self.node, self._operators, together, spacing.epsilon, spacing.max_rows)
        if len(behind) == 1 and len(rows.dimensions) == len(together.dimensions):
            return rows  # one to one
        return without_similar(rows, loads, _SIMILAR)

    def _output(self, arc: int, bounds: Bounds, spacing: Spacing) -> FitRows:
        """A table of its own for an output of a node that is not a leaf."""
        worth = self.program.wiring.worth[[arc]]
        steps = spacing.steps(bounds.most, worth)
        rates = feasible_grid(bounds.most, steps, np.zeros(1), 1.0, None, spacing.max_rows)
        flows = np.zeros((len(rates), len(self.program.drop_arcs)))
        return FitRows(np.array([arc]), rates, rates[:, 0] * worth[0], flows)

    def _most(self, bounds: Bounds) -> Floats:
        """The highest rates that can enter, with links considered; shape (entering,)."""
        links = self.links.max(axis=0, initial=0.0)
        with np.errstate(divide="ignore"):
            return np.minimum(bounds.most, np.where(links > 0, 1 / links, np.inf))

    @property
    def links(self) -> Floats:
        """Utilization of incoming links per tuple/s that enters; shape (links, entering)."""
        wiring, nodes = self.program.wiring, len(self.program.wiring.network.nodes)
        limits = self.program.limits[nodes : self.program.resources]
        return np.asarray(wiring.use[nodes:, self.entering] / limits[:, None])

    def _within_links(self, rows: FitRows) -> FitRows:
        """The rows that overload no incoming link."""
        fits = np.asarray((rows.rates[:, : len(self.entering)] @ self.links.T <= 1 + 1e-12).all(axis=1))
        return rows if fits.all() else rows.only(fits)


def _all_runs_straight_into(program: Program, entering: Indices, operators: Indices) -> bool:
    """Whether every input reaches a leaf by one arc, without splits or merges before it."""
    wiring = program.wiring
    before = ~np.isin(wiring.source, operators)
    fan_out = np.bincount(wiring.source[before], minlength=len(wiring.network.sources))
    inside = wiring.target[before & ~np.isin(np.arange(len(wiring.arcs)), entering)]
    fan_in = np.bincount(inside[inside >= 0], minlength=len(wiring.network.sources))
    if fan_out.max() > 1 or fan_in.max(initial=0) > 1 or (wiring.target[before] < 0).any():
        return False
    path = wiring.unshed(np.eye(program.inputs))[:, entering]
    return len(entering) == program.inputs and bool((np.count_nonzero(path, axis=0) == 1).all())


def _operators_on(wiring: Wiring, node: int) -> Indices:
    """Numbers of the sources that a node runs, each after what it reads."""
    name = wiring.network.nodes[node].name
    return np.array(
        [wiring.inputs + at for at, operator in enumerate(wiring.network.operators) if operator.node == name], np.int64
    )
