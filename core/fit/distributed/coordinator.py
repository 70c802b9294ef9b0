"""C-FIT: a coordinator builds and merges all tables and looks up plans."""

from dataclasses import dataclass, replace
from math import prod

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.network.names import Grid, RateSteps
from adapt.core.fit.network.settings import TableSettings
from adapt.core.fit.planners.plan_table import (
    CellBounds,
    Finder,
    MixedPlanner,
    PlanTable,
    Proof,
    TablePlanner,
    share_nodes,
)
from adapt.core.fit.planners.program import Program
from adapt.core.fit.tables.local_plans import Part, busy_nodes, circle_of_nodes, worth_of_arrival
from adapt.core.fit.tables.rows import Bounds, FitRows, PointTree, Spacing, TooManyRows, bounds_of_inputs
from adapt.core.fit.tables.server import Server, Topology
from adapt.core.units.settings import SettingError

COARSER = 1.25
"""Factor by which epsilon grows until a table is small enough."""

SIMILAR = 0.25
"""Share of a guaranteed epsilon that rows may lose to be represented by others; the rest goes to the grid."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The tables of a network, one per independent set of nodes."""

    program: Program
    epsilon: float  # grid step of the tables: the one asked for, or the first larger one that keeps them small enough
    tables: tuple[FitRows, ...]  # over the arcs of inputs
    guaranteed: bool = False  # whether plans of the tables lose no more than epsilon
    # of the rows of children, as a node would merge them without pruning; None without children
    combinations: float | None = None

    def planner(self, prune: bool = True) -> TablePlanner:
        """A planner of these tables, with nothing proved of them."""
        return TablePlanner(self.program, self.parts(prune), self.epsilon, Proof(None))

    def parts(self, prune: bool = True) -> tuple[tuple[PlanTable, PointTree], ...]:
        """The tables over all inputs, with their indexes.

        Args:
            prune: Whether to omit rows that are dominated by another row.
        """
        program, wiring = self.program, self.program.wiring
        parts = []
        for rows in self.tables:
            low = np.zeros((len(rows), program.inputs))
            for at, arc in enumerate(rows.dimensions):
                entering = wiring.source[arc]
                low[:, entering] = np.maximum(low[:, entering], rows.rates[:, at])
            flows = np.zeros((len(rows), len(program.drop_arcs)))
            flows[:, np.searchsorted(program.drop_arcs, rows.drops)] = rows.flows
            flows[:, np.searchsorted(program.drop_arcs, rows.dimensions)] = rows.rates
            tree = PointTree.from_table(low, rows.scores, prune)
            table = PlanTable(
                low=low,
                high=np.full_like(low, np.inf),
                scores=rows.scores,
                errors=np.full(len(rows), np.nan),
                flows=flows,
            )
            parts.append((table, tree))
        return tuple(parts)


def proved(
    program: Program,
    parts: tuple[tuple[PlanTable, Finder], ...],
    step: float,
    most: Floats,
    epsilon: float,
    *,
    repairs: bool = False,
    guaranteed: bool = False,
) -> TablePlanner:
    """A table planner with its loss checked in every cell.

    Tables of a guaranteed grid lose no more than their epsilon. If there are several, no cells are checked, and plans
    are mixed from those that share nodes.

    Args:
        step: Grid step of the tables, or the epsilon of a guaranteed grid.
        most: The highest rates, tuples/s, shape (inputs,).
        epsilon: Share of the best score that plans may lose.
        repairs: Whether the best plan takes the place of the table's in cells that may lose more.
        guaranteed: Whether the tables are those of a guaranteed grid.
    """
    tables = [table for table, _ in parts]
    if guaranteed and len(tables) > 1:
        made = MixedPlanner if share_nodes(program, tables) else TablePlanner
        return made(
            program, parts, step, Proof(step, 0.0, CellBounds.everywhere(most, step) if repairs else None), guaranteed
        )
    bounds = CellBounds.from_tables(program, tables, most)
    if guaranteed:
        bounds = replace(bounds, errors=np.minimum(bounds.errors, step))
    errors = bounds.errors[bounds.errors <= epsilon] if repairs else bounds.errors
    proof = Proof(float(errors.max(initial=0.0)), bounds.share_above(epsilon), bounds if repairs else None)
    return TablePlanner(program, parts, step, proof, guaranteed)


@dataclass(frozen=True, slots=True)
class Fitting:
    """How the tables of C-FIT are made."""

    grid: Grid = Grid.SAFE  # spacing of rates, and which rates are omitted
    max_rows: int = 1_000_000  # a larger table is built with a larger epsilon
    steps: RateSteps = RateSteps.FIXED  # distances between rates
    # whether inputs that share no tuples get tables of their own, for plans to be mixed from; else a table has a row
    # for each combination
    apart: bool = False
    up_to: float = 1.0  # epsilon beyond which tables are not built


def fit(program: Program, most: Floats, epsilon: float, fitting: Fitting | None = None) -> Fit:
    """Build the tables from the leaves to the inputs.

    A leaf has rows for rates on a grid. Any other node maps the rows of its children back to its own inputs, together
    with rows on a grid for its own outputs. Nodes may have several parents. The feasibility triangle is omitted only
    where it is known to need no row: along straight chains to one leaf.

    Args:
        program: Of a network whose nodes form no cycle.
        most: The highest rates, tuples/s, shape (inputs,).
        epsilon: Share of the best score that a plan may lose; a guarantee with the guaranteed grid only.

    Source: FIT, section 6.
    """
    check_nodes(program, "c-fit")
    how, tried = fitting or Fitting(), epsilon
    while tried < 1 and tried <= how.up_to:
        try:
            tables, combinations = _tables(program, most, tried, how)
            return Fit(program, tried, tables, how.grid is Grid.GUARANTEED, combinations)
        except TooManyRows:
            tried *= COARSER
    raise too_large(how.max_rows)


def too_large(max_rows: int) -> UsageError:
    """The error where no epsilon makes tables small enough."""
    return SettingError(
        TableSettings,
        f"no epsilon fits this network into {max_rows:,} rows per table; raise {{max_plans}} or use exact",
    )


def check_nodes(program: Program, planner: str) -> None:
    """Require nodes without a cycle: tables start at the leaves."""
    circle = circle_of_nodes(program.wiring)
    if circle:
        raise UsageError(f"{planner} needs a network whose nodes form no cycle (got {' -> '.join(circle)}); use exact")


def _check_merges(servers: list[Server]) -> None:
    for server in servers:
        if server.merges and not server.leaf:
            name = server.part.program.wiring.network.nodes[0].name
            raise UsageError(
                f"the guaranteed grid needs unions and joins on leaf nodes; node {name!r} sends to other nodes"
            )


def _tables(program: Program, most: Floats, epsilon: float, how: Fitting) -> tuple[tuple[FitRows, ...], float | None]:
    """Build the tables: bounds from the inputs down, then tables from the leaves up; and count combinations."""
    parts = {node: Part.from_program(program, node) for node in busy_nodes(program.wiring)}
    servers = {node: Server(part) for node, part in parts.items()}
    topology = Topology.from_parts(parts, program.wiring)
    spacing = Spacing(epsilon, how.grid, None, how.max_rows, how.steps)
    if how.grid is Grid.GUARANTEED:
        _check_merges(list(servers.values()))
        spacing = _guaranteed(program, servers, topology, spacing)
    bounds = bounds_of_inputs(program, most)
    for node in topology.nodes:
        if not servers[node].leaf:
            bounds = Bounds.joined((bounds, servers[node].passed_on(bounds.on(servers[node].entering))))
    made: dict[int, list[FitRows]] = {}
    combinations = []
    for node in reversed(topology.nodes):
        behind = [table for other in topology.senders(node) for table in made.pop(other)]
        if len(behind) > 1:
            combinations.append(prod(float(len(table)) for table in behind))
        server, entering = servers[node], bounds.on(servers[node].entering)
        made[node] = (
            server.factors(entering, behind, spacing) if how.apart else [server.table(entering, behind, spacing)]
        )
    tables = tuple(table for node in made.values() for table in node)
    if how.apart and sum(map(len, tables)) > how.max_rows:
        raise TooManyRows
    return tables, max(combinations, default=None)


def _guaranteed(program: Program, servers: dict[int, Server], topology: Topology, spacing: Spacing) -> Spacing:
    """The spacing that loses epsilon at most, divided among all causes of loss."""
    merging = dict.fromkeys(topology.nodes, 0)
    for node in topology.nodes:  # upstream first
        merging[node] = int(_merges_tables(servers[node], topology)) + merging.get(topology.receiver.get(node, -1), 0)
    depth = max(merging.values(), default=0)
    similar = SIMILAR * spacing.epsilon / depth if depth else 0.0
    left = spacing.epsilon - similar * depth
    least = left / 3 if spacing.steps is RateSteps.RELATIVE else left
    ratio = left - least if spacing.steps is RateSteps.RELATIVE else left
    return replace(spacing, epsilon=ratio, quantum=_quantum(program, servers, least), similar=similar)


def _merges_tables(server: Server, topology: Topology) -> bool:
    """Whether a node may leave out rows that others represent."""
    children = topology.senders(server.part.node)
    return not server.leaf and (
        len(children) + len(server.gridded()) != 1 or len(server.entering) != len(server.leaving)
    )


def _quantum(program: Program, servers: dict[int, Server], epsilon: float) -> float:
    """Score between grid lines of the guaranteed grid."""
    corners = _corners(program)
    worth = program.wiring.scores(program.wiring.unshed(np.eye(program.inputs)))
    can_overload = np.isfinite(corners)
    for entering in np.flatnonzero(can_overload & (worth == 0)):
        name = program.wiring.network.inputs[entering].name
        raise UsageError(f"the guaranteed grid needs every input to reach a weighted output; input {name!r} does not")
    if not can_overload.any():
        return 0.0
    arrival = worth_of_arrival(program.wiring)
    counted = sum(int((arrival[server.gridded()] > 0).sum()) for server in servers.values())
    return epsilon * float((worth[can_overload] * corners[can_overload]).min()) / max(counted, 1)


def _corners(program: Program) -> Floats:
    """Highest rate of each input alone that fits without drops, else inf; shape (inputs,)."""
    loads = program.unshed(np.eye(program.inputs)) @ program.rows[: program.resources].T
    with np.errstate(divide="ignore"):
        alone = np.where(loads > 0, program.limits[: program.resources] / np.where(loads > 0, loads, 1.0), np.inf)
    return np.asarray(alone.min(axis=1, initial=np.inf))
