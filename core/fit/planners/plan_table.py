"""Tables of precomputed plans: rates covered, and proved loss."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.basis import BasisPool
from adapt.core.fit.planners.direct_planners import BEST, NO_PLAN, UNSHED, Plans
from adapt.core.fit.planners.highs import WarmSolver
from adapt.core.fit.planners.program import ROUNDING, Program, Scaled
from adapt.core.table import Column, Kind, Table


@dataclass(frozen=True, slots=True, eq=False)
class PlanTable:
    """Plans by id, from 1.

    A plan covers overloaded points whose rates are at least `low` and, if it belongs to a region, below `high`. Its
    flows are those at rates `low`: the inputs of other points are scaled down to it.
    """

    low: Floats  # rates, tuples/s, shape (plans, inputs)
    high: Floats  # rates, inf where a plan has no upper limit; shape (plans, inputs)
    scores: Floats  # weighted tuples/s, shape (plans,)
    errors: Floats  # maximum share of the best score that a point of the region loses; nan if unknown. Shape (plans,)
    flows: Floats  # kept on each drop arc, tuples/s, shape (plans, variables)

    def __len__(self) -> int:
        return len(self.scores)

    def table(self, program: Program) -> Table:
        """The plans with id, conditions, score and shares kept at `low`."""
        inputs = [entering.name for entering in program.wiring.network.inputs]
        arcs = [program.wiring.arcs[arc].name for arc in program.drop_arcs]
        keeps = program.keeps(self.low, self.flows)[:, program.drop_arcs]
        columns = [
            Column("plan", Kind.COUNT, about="id"),
            *(Column(f"{name} from", Kind.NUMBER, "tuples/s") for name in inputs),
            *(Column(f"{name} to", Kind.NUMBER, "tuples/s", "empty: no upper limit") for name in inputs),
            Column("score", Kind.NUMBER, "tuples/s", "weighted output rate"),
            Column("error", Kind.SHARE, about="most that is lost of the best score; empty: unknown"),
            *(Column(f"keep {name}", Kind.SHARE) for name in arcs),
        ]
        rows = (
            (
                number + 1,
                *map(float, self.low[number]),
                *(None if np.isinf(rate) else float(rate) for rate in self.high[number]),
                float(self.scores[number]),
                None if np.isnan(self.errors[number]) else float(self.errors[number]),
                *map(float, keeps[number]),
            )
            for number in range(len(self))
        )
        return Table.from_rows("drop plans", columns, rows)


class Finder(Protocol):
    """An index over the rates of a table."""

    def find(self, rates: Floats) -> Indices:
        """The plan number for each point, from 0, else -1; shape (points,)."""
        ...

    def inside(self, rates: Floats) -> Floats:
        """Rates that need no drops, below points without a plan.

        Shape (points, inputs).
        """
        ...


@dataclass(frozen=True, slots=True)
class Proof:
    """The proved loss of all plans of a planner."""

    # share of the best score that a plan loses at most; with solver-w, on average. None if nothing is known
    epsilon: float | None
    unproved: float = 0.0  # share of the overloaded rates where the table could lose more than was asked for
    # the loss by rates, if the best plan takes the place of the table's at these rates; else None
    bounds: "CellBounds | None" = None
    # combinations of rows that merging tables would try without pruning; None without merging
    combinations: float | None = None
    beyond: bool = False  # whether plans were used for overloaded rates that they do not cover, where nothing is proved

    def over(self, beyond: bool) -> "Proof":
        """The proof for a replay, perhaps of rates beyond those covered."""
        return replace(self, epsilon=None, beyond=True) if beyond and self.bounds is None else self


class TablePlanner:
    """Looks up plans for overloaded points.

    Points without a plan keep the rates below them that are known to fit, and of the rest the same share of every
    input, as much as fits.

    Attributes:
        parts: Tables with their indexes; each plans some of the drop arcs.
        epsilon: Accuracy of the tables: the share of the best score that plans of regions may lose, at most or on
            average, or the relative spacing of rates.
        proof: What is known of the loss.
        guaranteed: Whether the tables come from a guaranteed grid.
    """

    def __init__(
        self,
        program: Program,
        parts: tuple[tuple[PlanTable, Finder], ...],
        epsilon: float,
        proof: "Proof | None" = None,
        guaranteed: bool = False,
    ) -> None:
        self.program, self.parts, self.epsilon, self.guaranteed = program, parts, epsilon, guaranteed
        self.proof = proof or Proof(epsilon)
        self._pool = BasisPool(program)
        self._whole = np.flatnonzero(program.free)

    @property
    def size(self) -> int:
        """Number of plans."""
        return sum(len(table) for table, _ in self.parts)

    def plan(self, rates: Floats) -> Plans:
        """Scale overloaded inputs down to the plan found; drop nothing elsewhere."""
        program = self.program
        flows = program.unshed(rates)
        ids = np.full((len(rates), len(self.parts)), UNSHED, np.int64)
        overloaded = np.flatnonzero(~program.feasible(rates))
        wanted = np.ascontiguousarray(rates[overloaded])
        planned, ids[overloaded] = self._found(wanted)
        planned[:, self._whole] = flows[np.ix_(overloaded, self._whole)]
        without = (ids[overloaded] == NO_PLAN).any(axis=1)
        planned[without] = self._raised(planned[without], flows[overloaded[without]])
        if self.proof.bounds is not None:
            weak = np.flatnonzero(self.proof.bounds.at(wanted) > (self.proof.epsilon or 0.0))
            planned[weak], _ = self._pool.plan(wanted[weak])
            ids[overloaded[weak]] = BEST
        flows[overloaded] = planned
        return Plans(program.keeps(rates, flows), flows @ program.weights, ids)

    def _found(self, rates: Floats) -> tuple[Floats, Indices]:
        """Flows and plan ids by the tables; shapes (points, variables) and (points, parts)."""
        flows = np.zeros((len(rates), len(self.program.drop_arcs)))
        ids = np.full((len(rates), len(self.parts)), NO_PLAN, np.int64)
        for part, (table, finder) in enumerate(self.parts):
            found = finder.find(rates)
            fits = found >= 0
            ids[fits, part] = found[fits] + 1
            flows[fits] += table.flows[found[fits]]
            flows[~fits] += self.program.unshed(finder.inside(rates[~fits]))
        return flows, ids

    def _raised(self, flows: Floats, unshed: Floats) -> Floats:
        """Flows with the same share of all that they drop, as much as fits; shape (points, variables)."""
        rows, limits = self.program.rows[: self.program.resources], self.program.limits[: self.program.resources]
        room, more = limits - flows @ rows.T, (unshed - flows) @ rows.T
        share = np.divide(room, more, out=np.ones_like(more), where=more > room).min(axis=1, initial=1.0)
        return np.asarray(flows + np.maximum(share, 0.0)[:, None] * (unshed - flows))


class MixedPlanner(TablePlanner):
    """Mixes the best plan from rows of several tables.

    A row of each table fits on its own, but rows of several tables may overload what they share. A linear program finds
    the shares of rows that score best and fit together: of each table, one row, or two in the right proportion. As what
    fits is convex, mixed flows fit too. One row per table that fits is one of these mixtures, so nothing is lost
    against a table of all combinations. The plan id of a table is that of the row of the largest share.
    """

    @cached_property
    def _mixing(self) -> tuple[WarmSolver, Floats, Indices]:
        """The solver, the loads of all rows, and where the rows of each table but the last end."""
        tables = [table for table, _ in self.parts]
        loads, ends = _loads(self.program, tables), np.cumsum([len(table) for table in tables])
        scores = np.concatenate([table.scores for table in tables])
        table_of = np.searchsorted(ends, np.arange(len(scores)), "right")
        chosen = (table_of == np.arange(len(tables))[:, None]).astype(np.float64)
        rows = np.concatenate((chosen, loads[:, _shared(tables, loads)].T))
        unit = float(scores.max(initial=0.0)) or 1.0
        scaled = Scaled(np.ones(len(scores)), unit, rows, np.ones(len(rows)), scores / unit)
        return WarmSolver(scaled), loads, ends[:-1]

    def _found(self, rates: Floats) -> tuple[Floats, Indices]:
        flows = np.zeros((len(rates), len(self.program.drop_arcs)))
        ids = np.full((len(rates), len(self.parts)), NO_PLAN, np.int64)
        solver, loads, ends = self._mixing
        for at, point in enumerate(rates):
            below = np.concatenate([(table.low <= point).all(axis=1) for table, _ in self.parts])
            shares = solver.values(below.astype(np.float64))
            shares /= max(1.0, float((shares @ loads).max(initial=0.0)))
            for part, share in enumerate(np.split(shares, ends)):
                if share.any():
                    ids[at, part] = int(share.argmax()) + 1
                    flows[at] += share / max(1.0, float(share.sum())) @ self.parts[part][0].flows
        return flows, ids


def share_nodes(program: Program, tables: Sequence[PlanTable]) -> bool:
    """Whether rows of several tables may overload a node or link together."""
    return bool(len(_shared(tables, _loads(program, tables))))


def _loads(program: Program, tables: Sequence[PlanTable]) -> Floats:
    """Utilization of each node and link by each row, shape (rows of all tables, resources)."""
    resources = slice(program.resources)
    flows = np.concatenate([np.empty((0, len(program.drop_arcs))), *(table.flows for table in tables)])
    return flows @ program.rows[resources].T / program.limits[resources]


def _shared(tables: Sequence[PlanTable], loads: Floats) -> Indices:
    """Nodes and links that rows of several tables may overload together."""
    ends = np.cumsum([len(table) for table in tables])[:-1]
    most = np.array([part.max(axis=0, initial=0.0) for part in np.split(loads, ends)])
    return np.flatnonzero((np.count_nonzero(most > 0, axis=0) > 1) & (most.sum(axis=0) > 1 + ROUNDING))


MAX_CELLS = 200_000
"""Maximum number of cells; with more, cells are made larger, and less is proved."""


@dataclass(frozen=True, slots=True, eq=False)
class CellBounds:
    """The proved loss of a plan table, cell by cell.

    Both the best score and that of the best row at or below a point rise with the rates. So a point loses at most the
    best score at the top corner of its cell less the row's score at the bottom corner. If lines run through the rates
    of all rows, this is also what some point of the cell loses.
    """

    lines: tuple[Floats, ...]  # bottom of the cells along each input, from 0, tuples/s
    most: Floats  # top of the last cells, shape (inputs,)
    errors: Floats  # share of the best score, 0 where everything fits; shape (cells along input 0, along input 1, ..)
    overloaded: NDArray[np.bool_]  # whether some rates of a cell need drops; same shape

    @classmethod
    def everywhere(cls, most: Floats, epsilon: float) -> "CellBounds":
        """A loss proved for all rates up to the highest."""
        shape = (1,) * len(most)
        return cls((np.zeros(1),) * len(most), most, np.full(shape, epsilon), np.ones(shape, np.bool_))

    @classmethod
    def from_tables(cls, program: Program, tables: Sequence[PlanTable], most: Floats) -> "CellBounds":
        """Check all cells up to the highest rates.

        Args:
            most: These rates, tuples/s, shape (inputs,).
        """
        lines = _lines(tables, most)
        shape = tuple(map(len, lines))
        bottom = _corners(lines)
        top = _corners([np.append(line[1:], end) for line, end in zip(lines, most, strict=True)])
        overloaded = np.flatnonzero(~program.feasible(top))
        free = np.where(program.free, program.weights, 0.0)
        _, scores = BasisPool(program).plan(top[overloaded])
        best = scores - program.unshed(top[overloaded]) @ free
        reached = sum((_reached(table, lines) for table in tables), np.zeros(shape)).reshape(-1)[overloaded]
        score = best + program.unshed(bottom[overloaded]) @ free
        errors = np.zeros(len(top))
        errors[overloaded] = np.where(score > 0, (best - reached) / np.where(score > 0, score, 1.0), 0.0)
        needs_drops = np.zeros(len(top), np.bool_)
        needs_drops[overloaded] = True
        return cls(lines, most, np.maximum(errors, 0.0).reshape(shape), needs_drops.reshape(shape))

    def at(self, rates: Floats) -> Floats:
        """The bounds at some rates, inf above the highest.

        Args:
            rates: Tuples/s, shape (points, inputs).
        """
        cells = [np.searchsorted(line, rates[:, axis], "right") - 1 for axis, line in enumerate(self.lines)]
        return np.where((rates <= self.most * (1 + ROUNDING)).all(axis=1), self.errors[tuple(cells)], np.inf)

    def share_above(self, epsilon: float) -> float:
        """Share of the overloaded rates that may lose more than this."""
        volume = np.ones(self.errors.shape)
        for axis, (line, end) in enumerate(zip(self.lines, self.most, strict=True)):
            width = np.diff(np.append(line, end)).reshape([-1 if other == axis else 1 for other in range(volume.ndim)])
            volume = volume * width
        whole = float(volume[self.overloaded].sum())
        return float(volume[self.errors > epsilon].sum()) / whole if whole else 0.0


def _lines(tables: Sequence[PlanTable], most: Floats) -> tuple[Floats, ...]:
    lines = []
    for axis, end in enumerate(most):
        rates = np.unique(np.concatenate([[0.0], *(table.low[:, axis] for table in tables)]))
        lines.append(rates[(rates < end) | (rates == 0)])
    while prod(map(len, lines)) > MAX_CELLS:
        longest = max(range(len(lines)), key=lambda axis: len(lines[axis]))
        lines[longest] = lines[longest][::2]
    return tuple(lines)


def _corners(lines: Sequence[Floats]) -> Floats:
    """Every combination of one rate of each input; shape (cells, inputs)."""
    return np.stack([axis.reshape(-1) for axis in np.meshgrid(*lines, indexing="ij")], axis=1)


def _reached(table: PlanTable, lines: Sequence[Floats]) -> Floats:
    """Score of the best row at or below the bottom of each cell, 0 without one."""
    scores = np.zeros([len(line) for line in lines])
    at = [np.searchsorted(line, table.low[:, axis], "left") for axis, line in enumerate(lines)]
    inside = np.all([place < len(line) for place, line in zip(at, lines, strict=True)], axis=0)
    np.maximum.at(scores, tuple(place[inside] for place in at), table.scores[inside])
    for axis in range(len(lines)):
        np.maximum.accumulate(scores, axis=axis, out=scores)
    return scores
