"""Precomputed drop plans: the tables of planners and their scope."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import BadInput
from adapt.core.fit.distributed.coordinator import proved
from adapt.core.fit.distributed.distributed import DFit, kept_nodes, shown_nodes, stored_nodes
from adapt.core.fit.network.names import PRECOMPUTED, DropPlanner, Grid, RateSteps
from adapt.core.fit.network.network import Network
from adapt.core.fit.planners.direct_planners import Planner
from adapt.core.fit.planners.fragments import Fragment, FragmentPlanner
from adapt.core.fit.planners.plan_table import Finder, PlanTable, TablePlanner
from adapt.core.fit.planners.solver import RegionTree
from adapt.core.fit.program.program import Program
from adapt.core.fit.registry import PlannerOptions, Precomputed, d_fit, planner_of
from adapt.core.fit.tables.rows import PointTree
from adapt.core.table import Column, Kind, Table

_OF_A_REPLAY = {"stream", "rate", "scale"}
"""Fields of inputs that describe the stream, not the network."""

_MADE = (Column("epsilon", Kind.NUMBER), Column("guaranteed", Kind.COUNT))


@dataclass(frozen=True, slots=True, eq=False)
class DropPlans:
    """Tables of drop plans for one network."""

    network: Network  # the network they are for
    headroom: float  # share of every capacity that they leave free
    epsilon: float  # share of the best score that they may lose
    grid: Grid  # of feasible input tables
    rate_steps: RateSteps  # distances between their rates
    max_rates: Floats  # the highest rates that they cover, tuples/s, shape (inputs,)
    planners: Mapping[DropPlanner, FragmentPlanner]  # planner with its tables, by name

    @classmethod
    def made(cls, network: Network, names: Sequence[DropPlanner], options: PlannerOptions) -> "DropPlans":
        """Build the tables of all named planners that have any."""
        planners = {name: planner_of(name, network, options) for name in names if name in PRECOMPUTED}
        for apart in planners.values():
            for nodes in apart.planners:
                if isinstance(nodes, DFit):
                    nodes.settle()
        return cls(network, *_scope(options), options.box, planners)

    def check(self, network: Network, names: Sequence[DropPlanner], options: PlannerOptions) -> None:
        """Require the plans that would be built now, except for rates."""
        found = next(differences(self.network, network), None)
        if found is not None:
            raise BadInput(f"belongs to another network: {found}")
        for what, now in zip(("headroom", "epsilon", "grid", "rate_steps"), _scope(options), strict=True):
            then = getattr(self, what)
            if then != now:
                raise BadInput(f"was made with {what.replace('_', ' ')} {then}, not {now}")
        for name in names:
            if name in PRECOMPUTED and name not in self.planners:
                raise BadInput(f"has no plans of {name}, only of {', '.join(self.planners)}")
            if name in self.planners and self.planners[name].merge != options.merges(name):
                taken = "each by itself" if options.merges(name) else "together"
                raise BadInput(
                    f"its plans of {name} take inputs that do not differ {taken}, unlike this replay (with observed or"
                    " corrected costs, each is taken by itself); make the plans again"
                )

    def beyond(self, rates: Floats) -> list[str]:
        """A warning for each input with rates above those covered.

        Args:
            rates: Tuples/s, shape (ticks, inputs).
        """
        highest = rates.max(axis=0, initial=0.0)
        return [
            f"input {entering.name!r} reaches {most:,.6g} tuples/s, but the plans cover rates up to {planned:,.6g};"
            " above that they may lose more than epsilon"
            for entering, most, planned in zip(self.network.inputs, highest, self.max_rates, strict=True)
            if most > planned * (1 + 1e-9)
        ]

    def shown(self) -> tuple[Table, ...]:
        """Every table for display: ids, conditions, scores, shares kept."""
        return tuple(
            table
            for name, apart in self.planners.items()
            for planner in apart.planners
            for table in (shown_nodes(planner) if isinstance(planner, DFit) else _shown_plans(name, planner))
        )

    def tables(self) -> dict[str, Table]:
        """Everything as tables by name, from which `from_tables` restores it exactly."""
        tables: dict[str, Table] = {}
        for name, apart in self.planners.items():
            for at, planner in enumerate(apart.planners):
                place = f"{name}-{at}-"
                stored = stored_nodes(planner) if isinstance(planner, DFit) else _stored_plans(planner)
                assert isinstance(planner, Precomputed)
                promised = isinstance(planner, TablePlanner) and planner.guaranteed
                stored["made"] = Table.from_rows("Made", _MADE, ((planner.epsilon, int(promised)),))
                tables |= {f"{place}{part}": table for part, table in stored.items()}
        return tables


def from_tables(
    network: Network, options: PlannerOptions, planned: Mapping[DropPlanner, bool], tables: Mapping[str, Table]
) -> DropPlans:
    """Restore what `DropPlans.tables` gave.

    Args:
        planned: The planners, and whether each plans inputs that do not differ as one.
        options: Headroom, epsilon, grid and highest rates of the tables; and how nodes of d-fit exchange messages from
            now on.
    """
    planners = {
        name: FragmentPlanner(network, _reader(name, network, options, tables), merge=merge)
        for name, merge in planned.items()
    }
    return DropPlans(network, *_scope(options), options.box, planners)


def _scope(options: PlannerOptions) -> tuple[float, float, Grid, RateSteps]:
    """Headroom, epsilon, grid and rate steps of tables."""
    return options.settings.headroom, options.settings.epsilon, options.tables.grid, options.tables.rate_steps


def differences(there: Network, here: Network) -> Iterator[str]:
    """Differences between two networks, element by element, except for their streams."""
    for kind in ("nodes", "inputs", "operators", "outputs", "links"):
        one, other = ({each.name: each for each in getattr(network, kind)} for network in (there, here))
        for name in sorted(one.keys() ^ other.keys()):
            yield f"{kind[:-1]} {name!r} is only in {'its' if name in one else 'the given'} network"
        for name in [name for name in one if name in other]:
            for field in fields(one[name]):
                then, now = getattr(one[name], field.name), getattr(other[name], field.name)
                if then != now and field.name not in _OF_A_REPLAY:
                    yield f"{kind[:-1]} {name!r} has {field.name} {_text(then)} there and {_text(now)} here"
        if list(one) != list(other):
            yield f"its {kind} are in another order"


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _shown_plans(name: DropPlanner, planner: Planner) -> Iterator[Table]:
    assert isinstance(planner, TablePlanner)
    for table, _ in planner.parts:
        yield replace(table.table(planner.program), title=f"Drop plans of {name}")


def _stored_plans(planner: Planner) -> dict[str, Table]:
    assert isinstance(planner, TablePlanner)
    tables = {}
    for part, (table, finder) in enumerate(planner.parts):
        tables[f"{part}"] = _stored(table, planner.program)
        if isinstance(finder, RegionTree):
            tables[f"{part}-regions"] = _regions(finder)
    return tables


def _stored(table: PlanTable, program: Program) -> Table:
    inputs = [entering.name for entering in program.wiring.network.inputs]
    arcs = [program.wiring.arcs[arc].name for arc in program.drop_arcs]
    columns = [
        *(Column(f"{name} from", Kind.NUMBER, "tuples/s") for name in inputs),
        *(Column(f"{name} to", Kind.NUMBER, "tuples/s") for name in inputs),
        Column("score", Kind.NUMBER, "tuples/s"),
        Column("error", Kind.NUMBER),
        *(Column(f"flow {name}", Kind.NUMBER, "tuples/s") for name in arcs),
    ]
    cells = np.column_stack((table.low, table.high, table.scores, table.errors, table.flows))
    return Table.from_rows("Drop plans", columns, cells.tolist())


def _regions(tree: RegionTree) -> Table:
    columns = (Column("child", Kind.COUNT), Column("plan", Kind.COUNT))
    return Table.from_rows("Regions", columns, zip(tree.child.tolist(), tree.plan.tolist(), strict=True))


def _reader(
    name: DropPlanner, network: Network, options: PlannerOptions, tables: Mapping[str, Table]
) -> Callable[[Fragment], Planner]:
    """Restores the planner of each fragment; to be called in their order."""
    numbers = iter(range(len(network.inputs)))

    def read(fragment: Fragment) -> Planner:
        place = f"{name}-{next(numbers)}-"
        program = Program.from_network(fragment.network, options.settings.headroom)
        box = options.for_fragment(fragment).box
        epsilon, promised = (float(cell or 0.0) for cell in tables[f"{place}made"].rows[0])
        if name is DropPlanner.D_FIT:
            mine = {at.removeprefix(place): table for at, table in tables.items() if at.startswith(place)}
            return d_fit(program, options.for_fragment(fragment), kept_nodes(program, epsilon, mine))
        parts: list[tuple[PlanTable, Finder]] = []
        while f"{place}{len(parts)}" in tables:
            stored = tables[f"{place}{len(parts)}"]
            table = _read(stored, program)
            regions = tables.get(f"{place}{len(parts)}-regions")
            if regions is None:
                parts.append((table, PointTree.from_table(table.low, table.scores, prune=True)))
            else:
                child, plan = (np.array(regions.values(column), np.int64) for column in ("child", "plan"))
                parts.append((table, RegionTree(box, np.flatnonzero(box > 0), child, plan)))
        if name is DropPlanner.C_FIT:
            repairs = options.tables.grid is Grid.GUARANTEED
            asked = options.settings.epsilon
            return proved(program, tuple(parts), epsilon, box, asked, repairs=repairs, guaranteed=bool(promised))
        return TablePlanner(program, tuple(parts), epsilon)

    return read


def _read(stored: Table, program: Program) -> PlanTable:
    cells = np.array(stored.rows, np.float64).reshape(len(stored.rows), len(stored.columns))
    inputs = program.inputs
    if cells.shape[1] != 2 * inputs + 2 + len(program.drop_arcs):
        raise ValueError(f"table {stored.title!r} has {cells.shape[1]} columns")
    low, high, scores, errors, flows = np.split(cells, [inputs, 2 * inputs, 2 * inputs + 1, 2 * inputs + 2], axis=1)
    return PlanTable(low.copy(), high.copy(), scores[:, 0].copy(), errors[:, 0].copy(), flows.copy())
