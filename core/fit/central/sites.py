"""A coordinator and the nodes that follow it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.central.duties import Duties
from adapt.core.fit.distributed.correspondent import Correspondent, Places
from adapt.core.fit.distributed.mailbox import Channel, Message
from adapt.core.fit.distributed.messages import Sheet, Topic
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.plan_table import TablePlanner
from adapt.core.fit.planners.planner import ALONE, NO_PLAN, UNSHED, Planner, Plans

COORDINATOR = -1
"""The number of the coordinator; those of nodes start at 0."""

_NOTHING = np.empty(0, np.int64)


def _places(node: int) -> Places:
    return Places(node, _NOTHING, _NOTHING, {}, {})


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """The shares of a node's arcs with each plan of a table."""

    number: int  # differs between tables; above 0, and 0 without a table
    sheet: Sheet  # a row per plan, shape (plans, arcs)

    @classmethod
    def of(cls, sheet: Sheet) -> "Table":
        """The table that arrived."""
        return cls(1 + crc32(np.ascontiguousarray(sheet.rows).tobytes()), sheet)

    @classmethod
    def empty(cls) -> "Table":
        """No table."""
        return cls(0, Sheet(_NOTHING, np.empty((0, 0))))

    @classmethod
    def for_nodes(cls, planner: Planner, duties: Iterable[Duties]) -> "dict[int, Table]":
        """The tables of all nodes that drop.

        They are empty where plans are made on demand.
        """
        made = {}
        for duty in duties:
            if len(duty.arcs) and isinstance(planner, TablePlanner) and planner.parts:
                table, _ = planner.parts[part_of(planner, duty.arcs)]
                shares = planner.program.keeps(table.low, table.flows)
                shares[:, planner.program.drop_arcs[planner.program.free]] = 1.0
                made[duty.node] = cls.of(Sheet(duty.arcs, np.ascontiguousarray(shares[:, duty.arcs])))
            elif len(duty.arcs):
                made[duty.node] = cls.empty()
        return made

    def message(self, duty: Duties, keeps: Floats, found: int) -> Floats:
        """Which plan a node should follow.

        Returns:
            Number of its table, id, scale of its inputs; where the plan is in no table, 0, id and all shares.
        """
        if self.number == 0 or found < NO_PLAN:
            return np.concatenate(([0.0, found], keeps))
        base = self.sheet.rows[found - 1] if found > 0 else np.ones(len(keeps))
        scale = np.divide(keeps, base, out=np.zeros_like(keeps), where=base > 0)[duty.scaled]
        return np.concatenate(([float(self.number), found], scale))


class ManagedNode(Correspondent):
    """A node that reports to a coordinator and follows its plans.

    Attributes:
        shares: Share kept on each of its arcs; None before any plan has arrived.
        plan_id: Of the plan that it follows.
    """

    def __init__(self, duties: Duties) -> None:
        """A node without a plan."""
        super().__init__(_places(duties.node))
        self.duties, self.plan_id = duties, ALONE
        self.shares: Floats | None = None
        self._table = Table.empty()

    def start(self) -> list[Message]:
        """Report its catalogue."""
        self._mail.send(Channel(self.duties.node, COORDINATOR, Topic.CATALOGUE), self.duties.reported)
        return super().start()

    def deploy(self, duties: Duties) -> list[Message]:
        """Change its operators, costs or capacity; it reports what differs."""
        if not np.array_equal(duties.arcs, self.duties.arcs):
            self.shares, self.plan_id = None, ALONE
        self.duties = duties
        return self.start()

    def measure(self, rates: Floats) -> list[Message]:
        """Report the rates of its inputs, if they changed; shape (inputs,)."""
        if len(rates):
            self._mail.send(Channel(self.duties.node, COORDINATOR, Topic.RATES), Sheet(self.duties.inputs, rates[None]))
        return self._mail.take_away()

    def _react(self) -> None:
        """Follow the plan received, unless its table has not arrived yet."""
        plan, table = (
            self._mail.received.get(Channel(COORDINATOR, self.duties.node, topic))
            for topic in (Topic.PLAN, Topic.PLANS)
        )
        if plan is None or not np.array_equal(plan.arcs, self.duties.arcs):
            return
        number, found, *told = plan.rows[0].tolist()
        shares = np.ones(len(plan.arcs))
        if number == 0:
            shares[:] = told
        else:
            if table is not None and self._table.sheet is not table:
                self._table = Table.of(table)
            if self._table.number != number:
                return
            if found > 0:
                shares = self._table.sheet.rows[int(found) - 1].copy()
            shares[self.duties.scaled] *= told
        self.shares, self.plan_id = shares, int(found)


class Coordinator(Correspondent):
    """Plans for all nodes by what they have reported.

    It builds its planner once all catalogues have arrived, uploads the shares of precomputed plans, and sends each node
    the plan for the rates reported.
    """

    def __init__(self, duties: Mapping[int, Duties], planner_for: Callable[[Floats], Planner]) -> None:
        """A coordinator that knows nothing.

        Args:
            planner_for: Makes a planner of all catalogues, one below the other.
        """
        super().__init__(_places(COORDINATOR))
        self._duties, self._planner_for, self._news = duties, planner_for, False
        self.planner: Planner | None = None
        self._tables: dict[int, Table] = {}

    def deploy(self, duties: Mapping[int, Duties]) -> None:
        """Change the nodes that follow it."""
        self._duties, self._news, self.planner = duties, True, None
        there = {Channel(node, COORDINATOR, topic) for node in duties for topic in (Topic.CATALOGUE, Topic.RATES)}
        back = {Channel(COORDINATOR, node, topic) for node in duties for topic in (Topic.PLANS, Topic.PLAN)}
        self._mail.keep(there | back)

    def take(self, message: Message) -> list[Message]:
        """Receive a message; what follows from it waits for `decide`."""
        self._mail.take(message)
        self._news = True
        return []

    def decide(self, again: bool = False) -> list[Message]:
        """Plan for the rates reported, if anything has arrived.

        Args:
            again: Whether to plan anyway: the planner has learnt.
        """
        if not (self._news or again):
            return []
        self._news = False
        catalogues = [self._mail.received.get(Channel(node, COORDINATOR, Topic.CATALOGUE)) for node in self._duties]
        known = [sheet.rows for sheet in catalogues if sheet is not None]
        if len(known) < len(self._duties):
            return []
        planner = self._planner_for(np.concatenate(known))
        if planner is not self.planner:
            self.planner, self._tables = planner, Table.for_nodes(planner, self._duties.values())
            for node, table in self._tables.items():
                if table.number:
                    self._mail.send(Channel(COORDINATOR, node, Topic.PLANS), table.sheet)
        rates = self.rates()
        if rates is not None:
            self._tell(planner.plan(rates[None]))
        return self._mail.take_away()

    def rates(self) -> Floats | None:
        """The rates of all inputs; None before all have arrived."""
        rates = np.full(sum(len(duty.inputs) for duty in self._duties.values()), np.nan)
        for node, duty in self._duties.items():
            sheet = self._mail.received.get(Channel(node, COORDINATOR, Topic.RATES))
            if sheet is not None and np.array_equal(sheet.arcs, duty.inputs):
                rates[duty.inputs] = sheet.rows[0]
        return None if np.isnan(rates).any() else rates

    def _tell(self, plans: Plans) -> None:
        assert self.planner is not None
        for node, table in self._tables.items():
            duty = self._duties[node]
            found = id_of(plans.ids[0], part_of(self.planner, duty.arcs))
            row = table.message(duty, plans.keeps[0, duty.arcs], found)
            self._mail.send(Channel(COORDINATOR, node, Topic.PLAN), Sheet(duty.arcs, row[None]))

    def _react(self) -> None:
        """Nothing: it decides once all that arrives together is there."""


def id_of(ids: Indices, part: int) -> int:
    """The plan id of a part; without a part, nothing is dropped."""
    return int(ids[part]) if part < len(ids) else UNSHED


def part_of(planner: Planner, arcs: Indices) -> int:
    """The part of a planner's tables for a node's arcs.

    It is 0 without tables.
    """
    if not isinstance(planner, TablePlanner):
        return 0
    columns = np.searchsorted(planner.program.drop_arcs, arcs)
    plans = [bool((table.flows[:, columns] > 0).any()) for table, _ in planner.parts]
    return plans.index(True) if True in plans else 0
