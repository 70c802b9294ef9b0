"""All drop planners by name."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TypeAlias

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.distributed.coordinated import Coordinated
from adapt.core.fit.distributed.coordinator import Fit, Fitting, fit, proved
from adapt.core.fit.distributed.cuts import DFitCuts
from adapt.core.fit.distributed.distributed import DFit, KeptTables
from adapt.core.fit.network.names import PRECOMPUTED, DropPlanner, Grid
from adapt.core.fit.network.network import Network
from adapt.core.fit.network.settings import AT_ONCE, Delivery, SheddingSettings, TableSettings
from adapt.core.fit.planners.direct_planners import Exact, LinearProgram, Nothing, Planner, Proportional
from adapt.core.fit.planners.fragments import Fragment, FragmentPlanner
from adapt.core.fit.planners.plan_table import Proof, TablePlanner
from adapt.core.fit.planners.program import Program
from adapt.core.fit.planners.solver import Exponential, Learnt, Regions, Workload
from adapt.core.fit.tables.local_plans import GreedyLocal
from adapt.core.fit.tables.rows import Spacing

Precomputed: TypeAlias = TablePlanner | DFit
"""Planners with precomputed tables."""

GUARANTEED_ROWS = 20_000
"""Maximum rows of a table on the guaranteed grid; beyond, the safe grid takes its place."""

Distributed: TypeAlias = DFit | DFitCuts | Coordinated
"""Planners whose nodes exchange messages, and which follow changes of costs, capacities and placements."""

COORDINATED = frozenset(
    {
        *(DropPlanner.PROPORTIONAL, DropPlanner.LP, DropPlanner.EXACT),
        *(DropPlanner.SOLVER, DropPlanner.SOLVER_W, DropPlanner.C_FIT),
    }
)
"""Planners that need a coordinator, which knows everything."""


@dataclass(frozen=True, slots=True, eq=False)
class PlannerOptions:
    """Options of all planners."""

    settings: SheddingSettings = field(default_factory=lambda: SheddingSettings(headroom=0.0))
    # the highest rates that tables cover, tuples/s, shape (inputs,); other planners ignore it
    max_rates: Floats | None = None
    workload: Workload | None = None  # distribution of rates; solver-w needs it
    tables: TableSettings = field(default_factory=TableSettings)
    delivery: Delivery = AT_ONCE
    merge: bool = True  # whether precomputed plans treat alike inputs as one; not where values change

    def for_fragment(self, fragment: Fragment) -> "PlannerOptions":
        """The options for a fragment."""
        return replace(
            self,
            max_rates=None if self.max_rates is None else fragment.rates(self.max_rates),
            workload=None if self.workload is None else self.workload.of(fragment.rates),
        )

    def merges(self, name: DropPlanner) -> bool:
        """Whether a planner treats alike inputs as one.

        Sums of exponential rates are not exponential.
        """
        return self.merge and name in PRECOMPUTED and not isinstance(self.workload, Exponential)

    @property
    def box(self) -> Floats:
        """The highest rates."""
        if self.max_rates is None:
            raise UsageError("precomputed plans need the highest rate of each input; give max_rates or use exact")
        return self.max_rates


def _solver(program: Program, options: PlannerOptions, workload: Workload | None = None) -> TablePlanner:
    regions = Regions(program, options.box, workload)
    regions.divide(options.settings.epsilon, options.tables.max_plans)
    return regions.planner()


def _solver_w(program: Program, options: PlannerOptions) -> TablePlanner:
    if options.workload is None:
        raise UsageError("solver-w needs a distribution of input rates; give it a workload or use solver")
    return _solver(program, options, options.workload)


def _c_fit(program: Program, options: PlannerOptions) -> TablePlanner:
    made, repairs = _fitted(program, options), options.tables.grid is Grid.GUARANTEED
    epsilon = options.settings.epsilon
    parts = made.parts()
    planner = proved(program, parts, made.epsilon, options.box, epsilon, repairs=repairs, guaranteed=made.guaranteed)
    planner.proof = replace(planner.proof, combinations=made.combinations)
    return planner


def _fitted(program: Program, options: PlannerOptions) -> Fit:
    """Guaranteed tables if they are small enough, else others."""
    of, most, epsilon = options.tables, options.box, options.settings.epsilon
    repairs = of.grid is Grid.GUARANTEED
    rows, steps = min(of.max_plans, GUARANTEED_ROWS), of.rate_steps
    for apart in (False, True) if repairs else ():
        with suppress(UsageError):
            return fit(program, most, epsilon, Fitting(Grid.GUARANTEED, rows, steps, apart, up_to=epsilon))
    grid = Grid.SAFE if repairs else of.grid
    return fit(program, most, epsilon, Fitting(grid, of.max_plans, steps))


def d_fit(program: Program, options: PlannerOptions, kept: KeptTables | None = None) -> DFit:
    """D-FIT nodes, settled unless messages take time.

    Args:
        kept: Tables and traffic of an earlier run.
    """
    of = options.tables
    grid = Grid.SAFE if of.grid is Grid.GUARANTEED else of.grid
    spacing = Spacing(options.settings.epsilon, grid, None, of.max_plans, of.rate_steps, sent_bytes=of.table_bytes)
    nodes = DFit(program, options.box, spacing, options.delivery, of.distance, kept)
    if options.delivery.delay_s is None:
        nodes.settle()
    return nodes


def _d_fit_cuts(program: Program, options: PlannerOptions) -> DFitCuts:
    groups = DFitCuts(program, options.delivery)
    if options.delivery.delay_s is None:
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
        DropPlanner.C_FIT: _c_fit,
        DropPlanner.D_FIT: d_fit,
        DropPlanner.D_FIT_CUTS: _d_fit_cuts,
        DropPlanner.EXACT: lambda program, _: Exact(program),
    }
)
"""Builds each planner for the program of a fragment."""


def tables_of(planner: FragmentPlanner) -> list[Precomputed]:
    """The planners of fragments that have tables."""
    every = (each.central if isinstance(each, Coordinated) else each for each in planner.planners)
    return [each for each in every if isinstance(each, Precomputed)]


def proof_of(planner: FragmentPlanner) -> Proof:
    """What precomputed plans of the worst fragment are proved to lose."""
    return max(
        (each.proof for each in tables_of(planner)),
        default=Proof(None),
        key=lambda proof: (1.0 if proof.epsilon is None else proof.epsilon, proof.unproved),
    )


def planner_of(
    name: DropPlanner, network: Network, options: PlannerOptions | None = None, before: FragmentPlanner | None = None
) -> FragmentPlanner:
    """A planner of a network, one per fragment.

    Args:
        before: A planner of the same name and options to replace. Distributed planners continue from it and send only
            what changed, at once or with the delay of messages.
    """
    chosen = options or PlannerOptions()
    following = [planner for planner in (before.planners if before else ()) if isinstance(planner, Distributed)]

    def make(fragment: Fragment) -> Planner:
        program = Program.from_network(fragment.network, chosen.settings.headroom)
        for planner in following:
            if planner.program.wiring.arcs == program.wiring.arcs:
                planner.change(program)
                if chosen.delivery.delay_s is None:
                    planner.settle()
                return planner
        return PLANNERS[name](program, chosen.for_fragment(fragment))

    return FragmentPlanner(network, make, merge=chosen.merges(name))


def coordinated(
    name: DropPlanner,
    network: Network,
    options: PlannerOptions,
    planner: FragmentPlanner,
    *,
    ahead: bool,
) -> FragmentPlanner:
    """A planner with a coordinator in place of every central planner.

    Args:
        planner: Of this name.
        ahead: Whether nodes got its plans before the start.
    """
    if name not in COORDINATED:
        return planner
    made = iter(planner.planners)

    def make(fragment: Fragment) -> Planner:
        chosen, first = options.for_fragment(fragment), next(made)

        def again(network: Network, workload: Workload | None) -> Planner:
            now = chosen if workload is None else replace(chosen, workload=workload)
            return PLANNERS[name](Program.from_network(network, options.settings.headroom), now)

        return Coordinated(
            first,
            Program.from_network(fragment.network, options.settings.headroom),
            again,
            options.delivery,
            ahead,
            chosen.workload if name is DropPlanner.SOLVER_W and isinstance(chosen.workload, Learnt) else None,
        )

    return FragmentPlanner(network, make, merge=planner.merge)
