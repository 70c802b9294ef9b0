"""The tables of D-FIT's nodes, for display and for storage."""

from collections.abc import Iterator, Mapping
from dataclasses import astuple

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.distributed import DFit
from adapt.core.fit.distributed.exchange import Traffic
from adapt.core.fit.distributed.mailbox import Channel
from adapt.core.fit.distributed.messages import Topic
from adapt.core.fit.distributed.node_table import KeptTables
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.program.program import Program
from adapt.core.fit.tables.local_plans import Part, busy_nodes
from adapt.core.fit.tables.rows import FitRows
from adapt.core.fit.tables.topology import Topology
from adapt.core.table import Column, Kind, Table

_SENT = (
    Column("messages", Kind.COUNT),
    Column("rows", Kind.COUNT),
    Column("erased", Kind.COUNT, "rows", "withdrawn"),
    Column("size", Kind.BYTES, "bytes"),
)


def shown_nodes(nodes: DFit) -> Iterator[Table]:
    """Each node's table with ids, conditions, scores and shares; then the messages."""
    wiring, kept = nodes.program.wiring, nodes.kept()
    names = [node.name for node in wiring.network.nodes]
    for node, rows in kept.tables.items():
        keeps = nodes.shares(node)
        columns = [
            Column("plan", Kind.COUNT, about="id"),
            *(Column(f"{wiring.arcs[arc].name} from", Kind.NUMBER, "tuples/s") for arc in rows.dimensions),
            Column("score", Kind.NUMBER, "tuples/s", "weighted output rate downstream"),
            *(Column(f"keep {wiring.arcs[arc].name}", Kind.SHARE) for arc in rows.drops),
        ]
        cells = np.column_stack((rows.rates, rows.scores, keeps)).tolist()
        lines = ((number, *line) for number, line in enumerate(cells, 1))
        yield Table.from_rows(f"Drop plans of d-fit, node {names[node]}", columns, lines)
    columns = [Column("sender"), Column("receiver"), Column("about"), *_SENT]
    said = ((names[way.sender], names[way.receiver], way.topic.value, *astuple(sent)) for way, sent in _sent(kept))
    yield Table.from_rows("Messages between d-fit nodes", columns, said)


def stored_nodes(nodes: DFit) -> dict[str, Table]:
    """Tables and traffic of all nodes, from which `kept_nodes` restores them exactly."""
    kept = nodes.kept()
    columns = (Column("sender", Kind.COUNT), Column("receiver", Kind.COUNT), Column("topic"), *_SENT)
    said = ((way.sender, way.receiver, way.topic.value, *astuple(sent)) for way, sent in _sent(kept))
    tables = {"messages": Table.from_rows("Messages", columns, said)}
    arcs = nodes.program.wiring.arcs
    for node, rows in kept.tables.items():
        rates = [f"{arcs[arc].name} from" for arc in rows.dimensions]
        flows = [f"flow {arcs[arc].name}" for arc in rows.drops]
        cells = np.column_stack((rows.rates, rows.scores, rows.flows))
        tables[f"node-{node}"] = _numbers([*rates, "score", *flows], cells)
        tables[f"node-{node}-conditions"] = _numbers(rates, kept.conditions[node])
    return tables


def kept_nodes(program: Program, epsilon: float, tables: Mapping[str, Table]) -> KeptTables:
    """Restore what `stored_nodes` gave."""
    parts = {node: Part.from_program(program, node) for node in busy_nodes(program.wiring)}
    topology = Topology.from_parts(parts, program.wiring)
    rows = {node: _rows(topology.dimensions[node], part.drops, tables[f"node-{node}"]) for node, part in parts.items()}
    conditions = {node: _cells(tables[f"node-{node}-conditions"]) for node in parts}
    traffic = {
        Channel(int(sent["sender"] or 0), int(sent["receiver"] or 0), Topic(str(sent["topic"]))): Traffic(
            *(int(sent[column.name] or 0) for column in _SENT)
        )
        for sent in tables["messages"].records()
    }
    return KeptTables(epsilon, rows, conditions, traffic)


def _rows(dimensions: Indices, drops: Indices, stored: Table) -> FitRows:
    cells = _cells(stored)
    if cells.shape[1] != len(dimensions) + 1 + len(drops):
        raise ValueError(f"table {stored.title!r} has {cells.shape[1]} columns")
    rates, scores, flows = np.split(cells, [len(dimensions), len(dimensions) + 1], axis=1)
    return FitRows(dimensions, rates.copy(), scores[:, 0].copy(), drops, flows.copy())


def _sent(kept: KeptTables) -> list[tuple[Channel, Traffic]]:
    return sorted(kept.traffic.items(), key=lambda sent: sent[0])


def _numbers(names: list[str], cells: Floats) -> Table:
    return Table.from_rows("Drop plans", [Column(name, Kind.NUMBER) for name in names], cells.tolist())


def _cells(stored: Table) -> Floats:
    return np.array(stored.rows, np.float64).reshape(len(stored.rows), len(stored.columns))
