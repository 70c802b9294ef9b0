"""Precomputed plans kept while costs and selectivities change."""

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.planners.direct_planners import MADE, UNSHED, Plans
from adapt.core.fit.planners.plan_table import Proof, TablePlanner
from adapt.core.fit.program.program import Program


class KeptPlans(TablePlanner):
    """Plans of a table that was made with older statistics.

    Where everything fits by the newer statistics, nothing is dropped. Elsewhere the plan of the table is applied, and
    all inputs are scaled down by the same share until it fits. So nodes are not overloaded, but nothing is proved of
    the loss.
    """

    def __init__(self, program: Program, made: TablePlanner) -> None:
        """Keep the plans of a planner.

        Args:
            program: With the newer statistics.
            made: With the plans.
        """
        self._made: TablePlanner = made._made if isinstance(made, KeptPlans) else made
        super().__init__(program, made.parts, made.epsilon, Proof(None))

    def plan(self, rates: Floats) -> Plans:
        """The plans of the table, scaled down where they do not fit."""
        program, wiring = self.program, self.program.wiring
        keeps = np.ones((len(rates), len(wiring.arcs)))
        ids = np.full((len(rates), len(self.parts)), UNSHED, np.int64)
        over = np.flatnonzero(~program.feasible(rates))
        planned = self._made.plan(rates[over])
        loads = wiring.flows(rates[over], planned.keeps) @ wiring.use.T
        share = 1 / np.maximum((loads / program.limits[: program.resources]).max(axis=1, initial=0.0), 1.0)
        keeps[over] = planned.keeps
        keeps[np.ix_(over, np.flatnonzero(wiring.source < wiring.inputs))] *= share[:, None]
        ids[over] = np.where((share < 1)[:, None] & (planned.ids == UNSHED), MADE, planned.ids)
        return Plans(keeps, wiring.scores(wiring.flows(rates, keeps)), ids)
