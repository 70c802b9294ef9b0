"""The table of one D-FIT node, and the drops it implies."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.exchange import Channel, Traffic
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.planner import MADE, NO_PLAN, UNSHED
from adapt.core.fit.tables.point_tree import PointTree
from adapt.core.fit.tables.rows import FitRows
from adapt.core.fit.tables.server import Server

_FITS = 1 + 1e-11
"""Up to which part of a limit nothing needs to be dropped."""

_SAME = 1 + 1e-9
"""Rates that a node was promised may arrive lower by rounding; a row is still at them."""

_ALL_FITS = -2
"""Instead of a row's number."""


@dataclass(slots=True, eq=False)
class NodeTable:
    """The table that a node has made, if it was told all that it needs."""

    table: FitRows | None = None
    conditions: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    tree: PointTree | None = None
    too_large: bool = False

    def find(self, rates: Floats) -> Indices:
        """The number of the best row at or below each point; -1, none is; -2, all fits. Shape (points,)."""
        assert self.table is not None
        if self.tree is None:
            self.tree = PointTree.from_table(self.table.rates, self.table.scores, prune=True)
        found = np.full(len(rates), _ALL_FITS)
        over = np.flatnonzero(~(rates @ self.conditions.T <= _FITS).all(axis=1))
        found[over] = self.tree.find(np.ascontiguousarray(rates[over] * _SAME))
        return found


@dataclass(frozen=True, slots=True, eq=False)
class KeptTables:
    """What nodes had made and told when there was nothing left to tell.

    Attributes:
        epsilon: That tables were made with.
        tables: Of each node, with the flows of its own drop arcs.
        conditions: Of each node, shape (conditions, dimensions of its table).
        traffic: What was sent.
    """

    epsilon: float
    tables: Mapping[int, FitRows]
    conditions: Mapping[int, Floats]
    traffic: Mapping[Channel, Traffic]


def shed(server: Server, state: NodeTable, trust_upstream: bool, flows: Floats, keeps: Floats, cap: Floats) -> Indices:
    """One node's plans, by its own table; returns their ids, shape (points,).

    Args:
        trust_upstream: Whether it lets in whatever other nodes send.
        flows: Tuples/s that are offered on each arc, shape (points, arcs).
        keeps: The share kept on each arc, to which its drops are added; shape (points, arcs).
        cap: What later nodes may let in on each arc, to which its promises are added; shape (points, arcs).

    Source: FIT, sections 4 and 6.4.
    """
    arriving = np.minimum(flows, cap)
    if state.table is None:
        variables, ids = _alone(server, arriving[:, server.entering])
    else:
        found = state.find(arriving[:, state.table.dimensions])
        variables = planned(server, state.table, arriving[:, server.entering], found)
        passing = state.table.dimensions[len(server.entering) :]
        some = np.flatnonzero(found >= 0)
        promised = state.table.rates[found[some], len(server.entering) :] * _SAME
        cap[np.ix_(some, passing)] = np.minimum(arriving[np.ix_(some, passing)], promised)
        ids = np.where(found >= 0, found + 1, np.where(found == _ALL_FITS, UNSHED, NO_PLAN))
    kept = server.part.program.keeps(flows[:, server.entering], variables)
    if trust_upstream:
        kept[:, np.isin(server.part.arcs, server.sent_by_others)] = 1.0
    keeps[:, server.part.arcs] *= kept
    return ids


def _alone(server: Server, arriving: Floats) -> tuple[Floats, Indices]:
    """What a node keeps that knows nothing of others, and ids."""
    inner = server.part.program
    links = (arriving @ server.links.T).max(axis=1, initial=1.0)
    variables, _ = server.alone.plan(arriving / links[:, None])
    shed = (variables < inner.unshed(arriving)).any(axis=1)
    return variables, np.where(shed, MADE, UNSHED)


def planned(server: Server, table: FitRows, arriving: Floats, found: Indices) -> Floats:
    """The variables of a node's part by the rows that were found, nothing where there is none."""
    inner = server.part.program
    variables = np.where(found[:, None] == _ALL_FITS, inner.unshed(arriving), 0.0)
    some = np.flatnonzero(found >= 0)
    splits, whole = server.split_variables()
    roots = np.flatnonzero(inner.input_of >= 0)
    variables[np.ix_(some, splits)] = table.flows[np.ix_(found[some], whole)]
    variables[np.ix_(some, roots)] = table.rates[np.ix_(found[some], inner.input_of[roots])]
    return variables
