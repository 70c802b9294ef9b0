"""Plans mixed from the rows of several tables whose plans share nodes."""

from collections.abc import Sequence

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.plan_table import Finder, PlanTable, Proof, TablePlanner
from adapt.core.fit.planners.planner import NO_PLAN
from adapt.core.fit.program.highs import WarmSolver
from adapt.core.fit.program.program import ROUNDING, Program, Scaled


class MixedPlanner(TablePlanner):
    """Mixes the best plan from rows of several tables.

    A row of each table fits on its own, but rows of several tables may overload what they share. A linear program finds
    the shares of rows that score best and fit together: of each table, one row, or two in the right proportion. As what
    fits is convex, mixed flows fit too. One row per table that fits is one of these mixtures, so nothing is lost
    against a table of all combinations. The plan id of a table is that of the row of the largest share.
    """

    def __init__(
        self,
        program: Program,
        parts: tuple[tuple[PlanTable, Finder], ...],
        epsilon: float,
        proof: Proof | None = None,
        guaranteed: bool = False,
    ) -> None:
        super().__init__(program, parts, epsilon, proof, guaranteed)
        tables = [table for table, _ in parts]
        self._loads = _loads(program, tables)
        scores = np.concatenate([table.scores for table in tables])
        self._ends = np.cumsum([len(table) for table in tables])[:-1]
        table_of = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
        chosen = (table_of == np.arange(len(tables))[:, None]).astype(np.float64)
        rows = np.concatenate((chosen, self._loads[:, _shared(tables, self._loads)].T))
        unit = float(scores.max(initial=0.0)) or 1.0
        self._solver = WarmSolver(Scaled(np.ones(len(scores)), unit, rows, np.ones(len(rows)), scores / unit))

    def _found(self, rates: Floats) -> tuple[Floats, Indices]:
        flows = np.zeros((len(rates), len(self.program.drop_arcs)))
        ids = np.full((len(rates), len(self.parts)), NO_PLAN, np.int64)
        for at, point in enumerate(rates):
            below = np.concatenate([(table.low <= point).all(axis=1) for table, _ in self.parts])
            shares = self._solver.values(below.astype(np.float64))
            shares /= max(1.0, float((shares @ self._loads).max(initial=0.0)))
            for part, share in enumerate(np.split(shares, self._ends)):
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
