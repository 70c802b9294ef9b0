"""The table of one D-FIT node, and the resulting drops."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.exchange import Traffic
from adapt.core.fit.distributed.mailbox import Channel
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.planner import MADE, NO_PLAN, UNSHED
from adapt.core.fit.tables.point_tree import PointTree
from adapt.core.fit.tables.rows import FitRows
from adapt.core.fit.tables.server import Server

_FITS = 1 + 1e-11
"""Relative load up to which nothing needs to be dropped."""

_SAME = 1 + 1e-9
"""Tolerance for rounding: planned rates may arrive slightly higher and still match their row."""

_ALL_FITS = -2
"""Instead of a row number: everything fits."""


@dataclass(slots=True, eq=False)
class NodeTable:
    """A node's table, once it has received what it needs."""

    table: FitRows | None = None
    conditions: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    tree: PointTree | None = None
    too_large: bool = False

    def find(self, rates: Floats) -> Indices:
        """The best row at or below each point; shape (points,).

        Returns:
            The row number; -1 if no row matches, -2 where everything fits.
        """
        assert self.table is not None
        if self.tree is None:
            self.tree = PointTree.from_table(self.table.rates, self.table.scores, prune=True)
        found = np.full(len(rates), _ALL_FITS)
        over = np.flatnonzero(~(rates @ self.conditions.T <= _FITS).all(axis=1))
        found[over] = self.tree.find(np.ascontiguousarray(rates[over] * _SAME))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class KeptTables:
    """The tables and traffic of nodes that had settled."""

    epsilon: float  # grid step of the tables
    tables: Mapping[int, FitRows]  # of each node, with the flows of its own drop arcs
    conditions: Mapping[int, Floats]  # of each node, shape (conditions, dimensions of its table)
    traffic: Mapping[Channel, Traffic]  # messages sent


def shed(
    server: Server, state: NodeTable, trust_upstream: bool, arriving: Floats, elsewhere: Floats
) -> tuple[Floats, Indices]:
    """Plan one node by its own table.

    Args:
        trust_upstream: Whether it accepts whatever other nodes send.
        arriving: Tuples/s on the entering arcs, shape (points, entering).
        elsewhere: Tuples/s on the other arcs of its table, shape (points, arcs).

    Returns:
        The share kept on each of its arcs, shape (points, arcs of the part); and plan ids, shape (points,).

    Source: FIT, sections 4 and 6.4.
    """
    if state.table is None:
        variables, ids = _alone(server, arriving)
    else:
        found = state.find(np.concatenate((arriving, elsewhere), axis=1))
        variables = planned(server, state.table, arriving, found)
        ids = np.where(found >= 0, found + 1, np.where(found == _ALL_FITS, UNSHED, NO_PLAN))
    kept = server.part.program.keeps(arriving, variables)
    if trust_upstream:
        kept[:, np.isin(server.part.arcs, server.sent_by_others)] = 1.0
    return kept, ids


def _alone(server: Server, arriving: Floats) -> tuple[Floats, Indices]:
    """The variables and plan ids of a node that has received nothing yet."""
    inner = server.part.program
    links = (arriving @ server.links.T).max(axis=1, initial=1.0)
    variables, _ = server.alone.plan(arriving / links[:, None])
    shed = (variables < inner.unshed(arriving)).any(axis=1)
    return variables, np.where(shed, MADE, UNSHED)


def planned(server: Server, table: FitRows, arriving: Floats, found: Indices) -> Floats:
    """The variables of a node for the rows found, else 0."""
    inner = server.part.program
    variables = np.where(found[:, None] == _ALL_FITS, inner.unshed(arriving), 0.0)
    some = np.flatnonzero(found >= 0)
    roots = np.flatnonzero(inner.input_of >= 0)
    variables[np.ix_(some, server.part.splits)] = table.flows[found[some]]
    variables[np.ix_(some, roots)] = table.rates[np.ix_(found[some], inner.input_of[roots])]
    return variables
