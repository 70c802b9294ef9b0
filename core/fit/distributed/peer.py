"""One node of D-FIT: its messages, its table, its plans."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.exchange import Correspondent, Places, Traffic
from adapt.core.fit.distributed.messages import Channel, Message, Sheet, Topic, good_enough, small_enough
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.direct_planners import MADE, NO_PLAN, UNSHED
from adapt.core.fit.tables.local_plans import Part
from adapt.core.fit.tables.rows import Bounds, FitRows, PointTree, Spacing, TooManyRows
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
        variables, without = planned(server, state.table, arriving, found), found == -1
        variables[without], _ = _alone(server, arriving[without])
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


_UPSTREAM = (Topic.TABLE, Topic.CONDITIONS)


@dataclass(frozen=True, slots=True, eq=False)
class Deployment:
    """All that a node knows except by messages."""

    part: Part  # its own arcs and operators
    inputs: Bounds  # bounds of those entering arcs that come from inputs
    receiver: int  # the node that receives its table; -1: none
    dimensions: Indices  # the arcs of its table, entering ones first
    senders: dict[int, Indices]  # the nodes whose tables it receives, in building order, with their arcs
    places: Places  # where it sees rates, and where it needs those that others see
    spacing: Spacing  # how its table is built
    distance: float  # relative score error accepted in its table at the receiver
    trust_upstream: bool  # whether it accepts whatever others send

    def channels_to(self) -> list[Channel]:
        """The channels on which it receives messages."""
        node, feeders = self.part.node, np.unique(self.part.feeders[self.part.feeders >= 0])
        return [
            *(Channel(other, node, topic) for other in self.senders for topic in _UPSTREAM),
            *(Channel(int(other), node, Topic.BOUNDS) for other in feeders),
            *self.places.channels_to(),
        ]

    def channels_from(self) -> list[Channel]:
        """The channels on which it sends messages."""
        node, readers = self.part.node, np.unique(self.part.readers[self.part.readers >= 0])
        return [
            *(Channel(node, self.receiver, topic) for topic in _UPSTREAM if self.receiver >= 0),
            *(Channel(node, int(other), Topic.BOUNDS) for other in readers),
            *self.places.channels_from(),
        ]

    def decides(self) -> tuple[object, ...]:
        """Everything that determines its table, except messages; for comparison."""
        return (*self.part.facts(), self.dimensions.tobytes(), self.receiver, self.channels_to(), self.spacing)


class Peer(Correspondent):
    """A node that knows its own part, its messages and its clock.

    It plans by its own table. Arcs of the table that enter other nodes count with the rates that these have sent, 0
    before any.
    """

    def __init__(self, deployment: Deployment) -> None:
        """A node that has received nothing."""
        self.deployment, self._state = deployment, NodeTable()
        self._server = Server(deployment.part)
        super().__init__(deployment.places)

    @property
    def state(self) -> NodeTable:
        """Its table."""
        return self._state

    @property
    def too_large(self) -> bool:
        """Whether its table exceeds the limit."""
        return self._state.too_large

    def deploy(self, deployment: Deployment) -> list[Message]:
        """Change its part, its neighbors or its spacing."""
        changed = deployment.decides() != self.deployment.decides()
        self.deployment, self._server = deployment, Server(deployment.part)
        self._places = deployment.places
        self._mail.keep({*deployment.channels_to(), *deployment.channels_from()})
        if changed:
            self._react()
        return self._mail.take_away()

    def plan(self, arriving: Floats, elsewhere: Floats | None = None) -> tuple[Floats, Indices]:
        """The share kept on each of its arcs, and plan ids.

        Args:
            arriving: Tuples/s on the entering arcs, shape (points, entering).
            elsewhere: Tuples/s on passing arcs, shape (points, passing); None: as messages said.
        """
        if elsewhere is None:
            elsewhere = np.repeat(self.elsewhere()[None], len(arriving), axis=0)
        return shed(self._server, self._state, self.deployment.trust_upstream, arriving, elsewhere)

    def resume(self, state: NodeTable) -> list[tuple[Channel, Sheet]]:
        """Continue with a table made before; returns what it had sent then."""
        assert state.table is not None
        if not np.array_equal(state.table.dimensions, self.deployment.dimensions):
            raise KeyError(self.deployment.part.node)
        self._state, bounds = state, self._bounds()
        assert bounds is not None, "upstream nodes have sent their bounds"
        sent = [] if self._server.leaf else list(self._bounds_for_others(self._server.passed_on(bounds)))
        if self.deployment.receiver >= 0:
            sent += zip(
                self._upward(), (self._sheet(state.table), Sheet(state.table.dimensions, state.conditions)), strict=True
            )
        self._mail.sent.update(sent)
        return sent

    def assume(self, channel: Channel, sheet: Sheet) -> None:
        """Treat a sheet as received before."""
        self._mail.received[channel] = sheet

    def _react(self) -> None:
        """Rebuild what follows from current knowledge, and send it."""
        self._state, bounds = NodeTable(), self._bounds()
        if bounds is None:
            return
        if not self._server.leaf:
            for channel, sheet in self._bounds_for_others(self._server.passed_on(bounds)):
                self._mail.send(channel, sheet)
        behind = self._behind()
        if behind is None:
            return
        tables, conditions = behind
        try:
            table = self._server.table(bounds, tables, self.deployment.spacing)
        except TooManyRows:
            self._state = NodeTable(too_large=True)
            return
        self._state = NodeTable(table, self._server.conditions(conditions, table.dimensions))
        if self.deployment.receiver >= 0:
            rows, where = self._upward()
            sheet, sent = self._sheet(table), self._mail.sent.get(rows)
            if sent is not None:
                close = good_enough(sent, sheet, self.deployment.distance)
                sheet = small_enough(close, self.deployment.spacing.sent_bytes)
            self._mail.send(rows, sheet)
            self._mail.send(where, Sheet(table.dimensions, self._state.conditions))

    def _upward(self) -> list[Channel]:
        return [Channel(self.deployment.part.node, self.deployment.receiver, topic) for topic in _UPSTREAM]

    def _sheet(self, table: FitRows) -> Sheet:
        """What its receiver gets of its table."""
        rows = np.concatenate((table.rates, table.scores[:, None]), axis=1)
        return small_enough(Sheet(table.dimensions, rows), self.deployment.spacing.sent_bytes)

    def _bounds(self) -> Bounds | None:
        """The highest rates on the arcs that enter it; None before all are received."""
        parts = [self.deployment.inputs]
        for channel in self.deployment.channels_to():
            sheet = self._mail.received.get(channel)
            if channel.topic is Topic.BOUNDS and sheet is not None:
                parts.append(Bounds(sheet.arcs, sheet.rows[:, 0], sheet.rows[:, 1]))
        bounds, entering = Bounds.joined(parts), self.deployment.part.entering
        return bounds.on(entering) if np.isin(entering, bounds.arcs).all() else None

    def _behind(self) -> tuple[list[FitRows], list[tuple[Indices, Floats]]] | None:
        """Tables and conditions received; None if some are missing or cover other arcs."""
        tables, conditions = [], []
        for other, arcs in self.deployment.senders.items():
            ways = (Channel(other, self.deployment.part.node, topic) for topic in _UPSTREAM)
            rows, where = map(self._mail.received.get, ways)
            if rows is None or where is None:
                return None
            if not (np.array_equal(rows.arcs, arcs) and np.array_equal(where.arcs, arcs)):
                return None
            rates = np.ascontiguousarray(rows.rows[:, : len(arcs)])
            tables.append(FitRows.without_drops(arcs, rates, rows.rows[:, -1]))
            conditions.append((arcs, where.rows))
        return tables, conditions

    def _bounds_for_others(self, leaving: Bounds) -> Iterator[tuple[Channel, Sheet]]:
        part = self.deployment.part
        for other in np.unique(part.readers[part.readers >= 0]):
            arcs = part.leaving[part.readers == other]
            at = leaving.on(arcs)
            yield (
                Channel(part.node, int(other), Topic.BOUNDS),
                Sheet(arcs, np.stack((at.most, at.corners), axis=1)),
            )
