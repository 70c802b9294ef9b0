"""Every planner by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.distributed.coordinator import fit
from adapt.core.fit.distributed.distributed import DFit
from adapt.core.fit.distributed.distributed_cuts import DFitCuts
from adapt.core.fit.distributed.exchange import Transport
from adapt.core.fit.distributed.node_table import KeptTables
from adapt.core.fit.network.names import DropPlanner, Grid
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.settings import check_ratio
from adapt.core.fit.planners.direct_planners import Exact, LinearProgram, Nothing, Proportional
from adapt.core.fit.planners.fragments import Fragment, FragmentPlanner
from adapt.core.fit.planners.plan_table import TablePlanner
from adapt.core.fit.planners.planner import Planner
from adapt.core.fit.planners.solver import MAX_PLANS, Regions
from adapt.core.fit.planners.workload import Workload
from adapt.core.fit.program.program import Program
from adapt.core.fit.tables.local_plans import GreedyLocal
from adapt.core.fit.tables.spacing import Spacing

Precomputed: TypeAlias = TablePlanner | DFit
"""Planners whose plans stand in tables."""

Distributed: TypeAlias = DFit | DFitCuts
"""Planners whose nodes tell each other, and follow other costs, selectivities, capacities and places of operators."""


@dataclass(frozen=True, slots=True, eq=False)
class PlannerOptions:
    """What planners may ask for.

    Attributes:
        headroom: Part of every node and link that plans leave free, in [0, 1).
        epsilon: What plans of a table may lose of the best score; of solver-w, what they may lose on average.
        max_rates: The highest rates that a table is made for, tuples/s, shape (inputs,); others need none.
        workload: How likely rates are; solver-w needs it.
        max_plans: A table has no more of them; what it then loses may be above epsilon.
        grid: Which rates stand in the tables of c-fit and d-fit.
        distance: What the scores in tables that nodes of d-fit tell each other may be off, so that less is told.
        transport: What messages between nodes of d-fit and d-fit-cuts meet; None, they take no time and all arrive, so
            that a planner is made with everything told.
        trust_upstream: Whether these nodes let in whatever others send, be it what they should have dropped.
        seed: Of delays and losses.
    """

    headroom: float = 0.0
    epsilon: float = 0.05
    max_rates: Floats | None = None
    workload: Workload | None = None
    max_plans: int = MAX_PLANS
    grid: Grid = Grid.SAFE
    distance: float = 0.0
    transport: Transport | None = None
    trust_upstream: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        check_ratio("--epsilon", self.epsilon, above_0=True)
        check_ratio("--headroom", self.headroom)
        check_ratio("--distance", self.distance)
        if self.max_plans < 1:
            raise UsageError(f"--max-plans must be at least 1 (got {self.max_plans})")

    def for_fragment(self, fragment: Fragment) -> "PlannerOptions":
        """The same for a fragment."""
        return replace(
            self,
            max_rates=None if self.max_rates is None else self.max_rates[fragment.inputs],
            workload=None if self.workload is None else self.workload.for_inputs(fragment.inputs),
        )

    @property
    def box(self) -> Floats:
        """The highest rates.

        Raises:
            UsageError: they are not given.
        """
        if self.max_rates is None:
            raise UsageError("precomputed plans need the highest rate of each input; give max_rates or use exact")
        return self.max_rates


def _solver(program: Program, options: PlannerOptions, workload: Workload | None = None) -> TablePlanner:
    regions = Regions(program, options.box, workload)
    regions.divide(options.epsilon, options.max_plans)
    return regions.planner()


def _solver_w(program: Program, options: PlannerOptions) -> TablePlanner:
    if options.workload is None:
        raise UsageError("solver-w needs a distribution of input rates; give it a workload or use solver")
    return _solver(program, options, options.workload)


def d_fit(program: Program, options: PlannerOptions, kept: KeptTables | None = None) -> DFit:
    """Nodes with everything told, or still to be told where messages take time.

    Args:
        kept: What they made and told before.

    Raises:
        UsageError: d-fit cannot take this network.
        KeyError: what was kept is of another network.
    """
    spacing = Spacing(options.epsilon, options.grid, max_rows=options.max_plans)
    way = (options.distance, options.transport, options.seed, options.trust_upstream)
    nodes = DFit(program, options.box, spacing, *way, kept)
    if options.transport is None:
        nodes.settle()
    return nodes


def _d_fit_cuts(program: Program, options: PlannerOptions) -> DFitCuts:
    groups = DFitCuts(
        program, options.transport, options.seed, asks=options.transport is None, trust_upstream=options.trust_upstream
    )
    if options.transport is None:
        groups.settle()
    return groups


PLANNERS: Mapping[DropPlanner, Callable[[Program, PlannerOptions], Planner]] = MappingProxyType(
    {
        DropPlanner.NONE: lambda program, _: Nothing(program),
        DropPlanner.PROPORTIONAL: lambda program, _: Proportional(program),
        DropPlanner.GREEDY_LOCAL: lambda program, _: GreedyLocal(program),
        DropPlanner.LP: lambda program, _: LinearProgram(program),
        DropPlanner.SOLVER: _solver,
        DropPlanner.SOLVER_W: _solver_w,
        DropPlanner.C_FIT: lambda program, options: fit(
            program, options.box, options.epsilon, options.grid, options.max_plans
        ).planner(),
        DropPlanner.D_FIT: d_fit,
        DropPlanner.D_FIT_CUTS: _d_fit_cuts,
        DropPlanner.EXACT: lambda program, _: Exact(program),
    }
)
"""How each is made for the program of a fragment."""


def planner_of(
    name: DropPlanner, network: Network, options: PlannerOptions | None = None, before: FragmentPlanner | None = None
) -> FragmentPlanner:
    """A planner of a network, each fragment planned apart.

    Args:
        before: A planner of the same name and options whose place it takes; where nodes tell each other what they
            know, they go on and tell only what changed, at once or as the transport lets them.

    Raises:
        UsageError: the planner needs an option that is not given, or cannot take this network.
    """
    chosen = options or PlannerOptions()
    following = [planner for planner in (before.planners if before else ()) if isinstance(planner, Distributed)]

    def make(fragment: Fragment) -> Planner:
        program = Program.from_network(fragment.network, chosen.headroom)
        for planner in following:
            if planner.program.wiring.arcs == program.wiring.arcs:
                planner.change(program)
                if chosen.transport is None:
                    planner.settle()
                return planner
        return PLANNERS[name](program, chosen.for_fragment(fragment))

    return FragmentPlanner(network, make)
