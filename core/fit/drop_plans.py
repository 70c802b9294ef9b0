"""Precomputed drop plans: the tables of planners and their scope."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import BadInput
from adapt.core.fit.distributed.coordinator import proved
from adapt.core.fit.distributed.distributed import DFit, KeptTables, NodeTable
from adapt.core.fit.distributed.messages import Channel, Topic, Traffic
from adapt.core.fit.network.names import PRECOMPUTED, DropPlanner, Grid, RateSteps
from adapt.core.fit.network.network import Network
from adapt.core.fit.planners.direct_planners import Planner
from adapt.core.fit.planners.fragments import Fragment, FragmentPlanner
from adapt.core.fit.planners.plan_table import Finder, PlanTable, TablePlanner
from adapt.core.fit.planners.program import Program
from adapt.core.fit.planners.solver import RegionTree
from adapt.core.fit.registry import PlannerOptions, Precomputed, d_fit, planner_of
from adapt.core.fit.tables.local_plans import Part, busy_nodes
from adapt.core.fit.tables.rows import FitRows, PointTree
from adapt.core.fit.tables.server import Topology
from adapt.core.table import Cell, Column, Kind, Table

_OF_A_REPLAY = {"stream", "rate", "scale"}
"""Fields of inputs that describe the stream, not the network."""

_MADE = (Column("epsilon", Kind.NUMBER), Column("guaranteed", Kind.COUNT))
_REGIONS = (Column("child", Kind.COUNT), Column("plan", Kind.COUNT))
_SENT = (
    Column("messages", Kind.COUNT),
    Column("rows", Kind.COUNT),
    Column("erased", Kind.COUNT, "rows", "withdrawn"),
    Column("size", Kind.BYTES, "bytes"),
)


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
            for table in (_shown_nodes(planner) if isinstance(planner, DFit) else _shown_plans(name, planner))
        )

    def tables(self) -> dict[str, Table]:
        """Everything as tables by name, from which `from_tables` restores it exactly."""
        tables: dict[str, Table] = {}
        for name, apart in self.planners.items():
            for at, planner in enumerate(apart.planners):
                stored = dict(_stored_nodes(planner) if isinstance(planner, DFit) else _stored_plans(planner))
                assert isinstance(planner, Precomputed)
                promised = isinstance(planner, TablePlanner) and planner.guaranteed
                stored["made"] = Table.from_rows("Made", _MADE, ((planner.epsilon, int(promised)),))
                tables |= {f"{name}-{at}-{part}": table for part, table in stored.items()}
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


def _stored_plans(planner: Planner) -> Iterator[tuple[str, Table]]:
    assert isinstance(planner, TablePlanner)
    wiring = planner.program.wiring
    inputs = [entering.name for entering in wiring.network.inputs]
    columns = [
        *(Column(f"{name} {end}", Kind.NUMBER, "tuples/s") for end in ("from", "to") for name in inputs),
        Column("score", Kind.NUMBER, "tuples/s"),
        Column("error", Kind.NUMBER),
        *(Column(f"flow {wiring.arcs[arc].name}", Kind.NUMBER, "tuples/s") for arc in planner.program.drop_arcs),
    ]
    for part, (table, finder) in enumerate(planner.parts):
        cells = np.column_stack((table.low, table.high, table.scores, table.errors, table.flows))
        yield f"{part}", Table.from_rows("Drop plans", columns, cells.tolist())
        if isinstance(finder, RegionTree):
            children = zip(finder.child.tolist(), finder.plan.tolist(), strict=True)
            yield f"{part}-regions", Table.from_rows("Regions", _REGIONS, children)


def _reader(
    name: DropPlanner, network: Network, options: PlannerOptions, tables: Mapping[str, Table]
) -> Callable[[Fragment], Planner]:
    """Restores the planner of each fragment; to be called in their order."""
    numbers = iter(range(len(network.inputs)))

    def read(fragment: Fragment) -> Planner:
        place = f"{name}-{next(numbers)}-"
        mine = {at.removeprefix(place): table for at, table in tables.items() if at.startswith(place)}
        program = Program.from_network(fragment.network, options.settings.headroom)
        chosen = options.for_fragment(fragment)
        box, inputs = chosen.box, program.inputs
        epsilon, promised = (float(cell or 0.0) for cell in mine["made"].rows[0])
        if name is DropPlanner.D_FIT:
            return d_fit(program, chosen, _kept_nodes(program, epsilon, mine))
        parts: list[tuple[PlanTable, Finder]] = []
        while f"{len(parts)}" in mine:
            wide = (inputs, inputs, 1, 1, len(program.drop_arcs))
            low, high, scores, errors, flows = _split(mine[f"{len(parts)}"], wide)
            table = PlanTable(low, high, scores[:, 0], errors[:, 0], flows)
            regions = mine.get(f"{len(parts)}-regions")
            if regions is None:
                parts.append((table, PointTree.from_table(table.low, table.scores, prune=True)))
            else:
                child, plan = (np.array(regions.values(column.name), np.int64) for column in _REGIONS)
                parts.append((table, RegionTree(box, np.flatnonzero(box > 0), child, plan)))
        if name is DropPlanner.C_FIT:
            repairs = options.tables.grid is Grid.GUARANTEED
            asked = options.settings.epsilon
            return proved(program, tuple(parts), epsilon, box, asked, repairs=repairs, guaranteed=bool(promised))
        return TablePlanner(program, tuple(parts), epsilon)

    return read


def _split(stored: Table, widths: Sequence[int]) -> list[Floats]:
    """The numbers of a table by groups of columns, shape (rows, width) each."""
    cells = _cells(stored)
    if cells.shape[1] != sum(widths):
        raise ValueError(f"table {stored.title!r} has {cells.shape[1]} columns")
    return [part.copy() for part in np.split(cells, np.cumsum(widths)[:-1], axis=1)]


def _cells(stored: Table) -> Floats:
    return np.array(stored.rows, np.float64).reshape(len(stored.rows), len(stored.columns))


def _shown_nodes(nodes: DFit) -> Iterator[Table]:
    """Each node's table with ids, conditions, scores and shares; then the messages."""
    wiring, kept = nodes.program.wiring, nodes.kept()
    names = [node.name for node in wiring.network.nodes]
    for node, state in kept.tables.items():
        peer, rows = nodes.members[node], state.table
        part, arriving = peer.part, rows.rates[:, : len(peer.part.entering)]
        keeps = part.program.keeps(arriving, peer.planned(rows, arriving, np.arange(len(rows))))
        columns = [
            Column("plan", Kind.COUNT, about="id"),
            *(Column(f"{wiring.arcs[arc].name} from", Kind.NUMBER, "tuples/s") for arc in rows.dimensions),
            Column("score", Kind.NUMBER, "tuples/s", "weighted output rate downstream"),
            *(Column(f"keep {wiring.arcs[arc].name}", Kind.SHARE) for arc in rows.drops),
        ]
        shares = keeps[:, part.program.drop_arcs[part.splits]]
        cells = np.column_stack((rows.rates, rows.scores, shares)).tolist()
        lines = ((number, *line) for number, line in enumerate(cells, 1))
        yield Table.from_rows(f"Drop plans of d-fit, node {names[node]}", columns, lines)
    columns = [Column("sender"), Column("receiver"), Column("about"), *_SENT]
    said = ((names[way.sender], names[way.receiver], *row) for way, row in _messages(kept))
    yield Table.from_rows("Messages between d-fit nodes", columns, said)


def _stored_nodes(nodes: DFit) -> Iterator[tuple[str, Table]]:
    """Tables and traffic of all nodes, from which `_kept_nodes` restores them exactly."""
    kept, arcs = nodes.kept(), nodes.program.wiring.arcs
    columns = (Column("sender", Kind.COUNT), Column("receiver", Kind.COUNT), Column("topic"), *_SENT)
    said = ((way.sender, way.receiver, *row) for way, row in _messages(kept))
    yield "messages", Table.from_rows("Messages", columns, said)
    for node, state in kept.tables.items():
        rows = state.table
        rates = [Column(f"{arcs[arc].name} from", Kind.NUMBER) for arc in rows.dimensions]
        flows = [Column(f"flow {arcs[arc].name}", Kind.NUMBER) for arc in rows.drops]
        cells = np.column_stack((rows.rates, rows.scores, rows.flows)).tolist()
        yield f"node-{node}", Table.from_rows("Drop plans", [*rates, Column("score", Kind.NUMBER), *flows], cells)
        yield f"node-{node}-conditions", Table.from_rows("Drop plans", rates, state.conditions.tolist())


def _kept_nodes(program: Program, epsilon: float, tables: Mapping[str, Table]) -> KeptTables:
    """Restore what `_stored_nodes` gave."""
    parts = {node: Part.from_program(program, node) for node in busy_nodes(program.wiring)}
    topology = Topology.from_parts(parts, program.wiring)
    made = {}
    for node, part in parts.items():
        dimensions = topology.dimensions[node]
        rates, scores, flows = _split(tables[f"node-{node}"], (len(dimensions), 1, len(part.drops)))
        rows = FitRows(dimensions, rates, scores[:, 0], part.drops, flows)
        made[node] = NodeTable(rows, _cells(tables[f"node-{node}-conditions"]))
    traffic = {
        Channel(int(sent["sender"] or 0), int(sent["receiver"] or 0), Topic(str(sent["topic"]))): Traffic(
            *(int(sent[column.name] or 0) for column in _SENT)
        )
        for sent in tables["messages"].records()
    }
    return KeptTables(epsilon, made, traffic)


def _messages(kept: KeptTables) -> Iterator[tuple[Channel, tuple[Cell, ...]]]:
    """Topic and traffic of each channel."""
    for way in sorted(kept.traffic):
        yield way, (way.topic.value, *astuple(kept.traffic[way]))
