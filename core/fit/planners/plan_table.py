"""Tables of precomputed plans, with the rates that each plan covers."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.planner import BEST, NO_PLAN, UNSHED, Plans
from adapt.core.fit.program.basis_pool import BasisPool
from adapt.core.fit.program.program import Program
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


@dataclass(frozen=True, slots=True)
class Proof:
    """The proved loss of all plans of a planner."""

    # share of the best score that a plan loses at most; with solver-w, on average. None if nothing is known
    epsilon: float | None
    unproved: float = 0.0  # share of the overloaded rates where the table could lose more than was asked for
    # the loss by rates, if the best plan takes the place of the table's at these rates; else None
    bounds: "Bounds | None" = None
    # combinations of rows that merging tables would try without pruning; None without merging
    combinations: float | None = None


class Bounds(Protocol):
    """The proved loss of a table, by rates."""

    def at(self, rates: Floats) -> Floats:
        """Share of the best score lost at most, shape (points,).

        It is inf where nothing is proved.
        """
        ...


class TablePlanner:
    """Looks up plans for overloaded points; points without a plan drop everything.

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
        return flows, ids
