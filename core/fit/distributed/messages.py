"""Messages between nodes: differences of sheets, delayed and counted."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.network.settings import Delivery
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.planners.direct_planners import Plans
from adapt.core.fit.planners.program import Program


class Topic(StrEnum):
    """What the rows of a message contain."""

    BOUNDS = "bounds"
    """Sent downstream: an arc's highest rate with drops and without."""
    TABLE = "table"
    """Sent upstream: feasible rates of arcs with their score. Local plans are not sent."""
    CONDITIONS = "conditions"
    """Sent upstream: load per tuple/s of each arc, which shows where no drops are needed."""
    RATES = "rates"
    """Sent to nodes whose tables hold the arcs: tuples/s that arrive on arcs of other nodes. To a coordinator: of
    inputs."""
    QUESTIONS = "questions"
    """Sent downstream: planned rates, and the score that the receiver's cuts promise there."""
    ANSWERS = "answers"
    """Sent upstream: whether that score can be reached; if not, a cut precedes."""
    CUTS = "cuts"
    """Sent upstream: linear upper bounds of the best score; a score, then a slope per arc."""
    CATALOGUE = "catalogue"
    """Sent to a coordinator: cost and selectivity of each operator, capacity of each resource."""
    PLANS = "plans"
    """Sent by a coordinator: the shares that the receiver's arcs keep with each plan of a table, by id."""
    PLAN = "plan"
    """Sent by a coordinator: a plan's id, and how far to scale the receiver's inputs down to it."""


LASTING = (Topic.BOUNDS, Topic.TABLE, Topic.CONDITIONS, Topic.CUTS, Topic.CATALOGUE, Topic.PLANS)
"""What changes with costs and selectivities only, not with rates."""

ERASED_BYTES = 8
"""Size of the number of an erased row."""

HEADER_BYTES = 8
"""Size of a message without its rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """Rows with one column per arc, and perhaps more."""

    arcs: Indices  # shape (arcs,)
    rows: Floats  # shape (rows, columns)

    def same(self, other: "Sheet") -> bool:
        """Whether both are equal to the bit."""
        return np.array_equal(self.arcs, other.arcs) and np.array_equal(_bits(self.rows), _bits(other.rows))

    def row_bytes(self, topic: Topic) -> int:
        """Size of a row; of a table, 8 + 22 per arc.

        Source: FIT, Table 3.
        """
        return 8 + 22 * len(self.arcs) if topic in (Topic.TABLE, Topic.CUTS) else 8 * self.rows.shape[1]


def difference(old: Sheet | None, new: Sheet) -> tuple[Indices, Indices]:
    """The rows to erase from an old sheet, and the new ones.

    Rows that change their order are sent again. Numbers are ascending.
    """
    every = np.arange(len(new.rows))
    if old is None or not np.array_equal(old.arcs, new.arcs) or old.rows.shape[1] != new.rows.shape[1]:
        return np.arange(0 if old is None else len(old.rows)), every
    _, same = np.unique(_bits(np.concatenate((old.rows, new.rows))), axis=0, return_inverse=True)
    before, after = np.split(same.reshape(-1), [len(old.rows)])
    first = np.full(len(same.reshape(-1)), -1, np.int64)
    first[before[::-1]] = np.arange(len(before))[::-1]
    match = first[after]
    kept = match > np.maximum.accumulate(np.concatenate(([-1], match)))[:-1]
    return np.setdiff1d(np.arange(len(before)), match[kept], assume_unique=True), every[~kept]


def _bits(rows: Floats) -> Indices:
    return np.ascontiguousarray(rows).view(np.int64)


@dataclass(frozen=True, slots=True, order=True)
class Channel:
    """Sender, receiver and topic of messages."""

    sender: int
    receiver: int
    topic: Topic


@dataclass(frozen=True, slots=True)
class Traffic:
    """Messages sent, with their rows and bytes."""

    messages: int = 0
    rows: int = 0
    erased: int = 0  # rows withdrawn
    size: int = 0  # bytes

    def __add__(self, other: "Traffic") -> "Traffic":
        """The sum of both."""
        return Traffic(
            self.messages + other.messages, self.rows + other.rows, self.erased + other.erased, self.size + other.size
        )

    def __sub__(self, before: "Traffic") -> "Traffic":
        """The traffic since an earlier count."""
        return self + Traffic(-before.messages, -before.rows, -before.erased, -before.size)


class Member(ABC):
    """A node that knows its own arcs and its messages only."""

    def __init__(self, node: int, exchange: "Exchange") -> None:
        self.node, self.exchange = node, exchange
        self.passing = np.empty(0, np.int64)
        """Arcs that enter other nodes, and that it plans with; shape (passing,)."""
        self.watched: dict[int, Indices] = {}
        """These arcs, ascending, by the node where they enter."""

    @abstractmethod
    def channels(self) -> list[Channel]:
        """The channels on which it receives messages."""

    @abstractmethod
    def react(self) -> None:
        """Rebuild what follows from current knowledge, and send it."""

    def take(self, topic: Topic) -> None:
        """React to a message that has arrived."""
        if topic is not Topic.RATES:
            self.react()

    def send(self, receiver: int, topic: Topic, sheet: Sheet) -> None:
        """Send a sheet."""
        self.exchange.send(Channel(self.node, receiver, topic), sheet)

    def heard(self, sender: int, topic: Topic, arcs: Indices | None = None) -> Sheet | None:
        """The newest sheet that has arrived, if it is about these arcs."""
        sheet = self.exchange.received.get(Channel(sender, self.node, topic))
        return None if sheet is None or (arcs is not None and not np.array_equal(sheet.arcs, arcs)) else sheet

    def elsewhere(self) -> Floats:
        """The latest rates on passing arcs, 0 before any; shape (passing,)."""
        rates, order = np.zeros(len(self.passing)), np.argsort(self.passing)
        for other, arcs in self.watched.items():
            sheet = self.heard(other, Topic.RATES, arcs)
            if sheet is not None:
                rates[order[np.searchsorted(self.passing, arcs, sorter=order)]] = sheet.rows[0]
        return rates


Kind = TypeVar("Kind", bound=Member)


class Exchange:
    """The network that carries all messages between nodes.

    All messages have the same delay, so they arrive in the order sent.

    Attributes:
        now: Seconds since the start.
        sent: The newest sheet sent, by channel.
        received: The newest sheet that has arrived, by channel.
    """

    def __init__(self, delay_s: float, members: Mapping[int, Member]) -> None:
        self.now, self.delay_s, self.total = 0.0, delay_s, Traffic()
        self.sent: dict[Channel, Sheet] = {}
        self.received: dict[Channel, Sheet] = {}
        self._members = members
        self._traffic: dict[Channel, Traffic] = {}
        self._on_their_way: deque[tuple[float, Channel, Sheet]] = deque()

    def up_to_date(self, but: Topic | None = None) -> bool:
        """Whether no message is on its way, except those of a topic."""
        return all(channel.topic is but for _, channel, _ in self._on_their_way)

    def traffic(self) -> dict[Channel, Traffic]:
        """Traffic so far, by channel."""
        return {channel: self._traffic[channel] for channel in sorted(self._traffic)}

    def count(self, channel: Channel, traffic: Traffic) -> None:
        """Add traffic, perhaps carried elsewhere."""
        self._traffic[channel] = self._traffic.get(channel, Traffic()) + traffic
        self.total += traffic

    def send(self, channel: Channel, sheet: Sheet) -> None:
        """Send what differs from the sheet sent before, if anything does."""
        before = self.sent.get(channel)
        if before is None or not sheet.same(before):
            erased, rows = map(len, difference(before, sheet))
            size = sheet.row_bytes(channel.topic) * rows + ERASED_BYTES * erased + HEADER_BYTES
            self.count(channel, Traffic(1, rows, erased, size))
            self.sent[channel] = sheet
            self._on_their_way.append((self.now + self.delay_s, channel, sheet))

    def keep(self, channels: set[Channel]) -> None:
        """Close all other channels, and discard the messages on them."""
        for sheets in (self.sent, self.received):
            for channel in sheets.keys() - channels:
                del sheets[channel]
        self._on_their_way = deque(each for each in self._on_their_way if each[1] in channels)

    def restart(self, traffic: Mapping[Channel, Traffic]) -> None:
        """Start with the traffic of an earlier run."""
        self.now, self._traffic, self.total = 0.0, dict(traffic), sum(traffic.values(), Traffic())

    def next_s(self) -> float:
        """When the next message arrives; inf without one."""
        return self._on_their_way[0][0] if self._on_their_way else np.inf

    def run(self, until_s: float, *, silent: bool = False) -> None:
        """Deliver messages until none is on its way, or until a time.

        Args:
            silent: Whether receivers do not react.
        """
        while self._on_their_way and self._on_their_way[0][0] <= until_s:
            self.now, channel, sheet = self._on_their_way.popleft()
            self.received[channel] = sheet
            if not silent:
                self._members[channel.receiver].take(channel.topic)

    def wait(self, until_s: float) -> None:
        """The same, and advance the clock to that time."""
        self.run(until_s)
        self.now = self.now if until_s == np.inf else max(self.now, until_s)


class Exchanging(ABC, Generic[Kind]):
    """Nodes that communicate by an exchange, and plan together."""

    program: Program

    def __init__(self, delivery: Delivery) -> None:
        """Nodes before they are placed."""
        self.delivery, self.late = delivery, delivery.delay_s is not None
        self.members: dict[int, Kind] = {}
        self.exchange = Exchange(delivery.delay_s or 0.0, self.members)
        self._reported: dict[Channel, Floats] = {}

    @property
    def stale(self) -> bool:
        """Whether some nodes lack the latest sheets of others."""
        return not self.exchange.up_to_date()

    def settle(self, until_s: float = np.inf) -> None:
        """Deliver messages until none is on its way, or until a time."""
        self.exchange.wait(until_s)

    def change(self, program: Program) -> None:
        """Apply new costs, selectivities, capacities or placements; nodes exchange the consequences.

        Args:
            program: Of a network with the same inputs, operators and outputs.
        """
        if program.wiring.arcs != self.program.wiring.arcs:
            raise UsageError(
                "plans follow new costs, capacities and placements; a change of operators needs a new planner"
            )
        self._place(program)

    def plan(self, rates: Floats) -> Plans:
        """Plan node by node; where messages take time, tick by tick."""
        if not self.late:
            return self._plan(rates)
        ticks = (self._plan(rates[[at]]) for at in range(len(rates)))
        return Plans(*(np.concatenate(each) for each in zip(*ticks, strict=True)))

    @abstractmethod
    def _place(self, program: Program) -> None:
        """Place a network on the nodes."""

    @abstractmethod
    def _plan(self, rates: Floats) -> Plans:
        """Plan some points, or a single one where messages take time."""

    @abstractmethod
    def _follow(self, member: Kind, before: Kind | None) -> None:
        """Let a node continue from itself before a change; None: it is new."""

    def _deploy(self, made: Mapping[int, Kind]) -> None:
        """Put nodes in the place of those before, in this order."""
        self.exchange.keep({channel for member in made.values() for channel in member.channels()})
        for node in self.members.keys() - made.keys():
            del self.members[node]
        for node, member in made.items():
            before = self.members.get(node)
            self.members[node] = member
            self._follow(member, before)

    def _exchange_rates(self, node: int, flows: Floats) -> None:
        """Send, or only count, the messages with the rates that a node watches; flows have shape (points, arcs)."""
        for other, arcs in self.members[node].watched.items():
            channel, rows = Channel(other, node, Topic.RATES), flows[:, arcs]
            if self.late:
                self.exchange.send(channel, Sheet(arcs, rows))
                continue
            before = self._reported.get(channel)
            first = before is None or before.shape[1] != len(arcs)
            if before is not None and not first:
                rows = np.concatenate((before, rows))
            messages = int((rows[1:] != rows[:-1]).any(axis=1).sum()) + first
            erased = messages - first
            size = messages * (8 * len(arcs) + HEADER_BYTES) + erased * ERASED_BYTES
            self.exchange.count(channel, Traffic(messages, messages, erased, size))
            self._reported[channel] = rows[-1:]
        if self.late:
            self.exchange.run(self.exchange.now)


def watching(entering: Mapping[int, Indices], members: Mapping[int, Member]) -> None:
    """Let nodes know where the arcs enter that they plan with.

    Args:
        entering: The arcs that enter each node, ascending.
    """
    for member in members.values():
        there = {other: arcs[np.isin(arcs, member.passing)] for other, arcs in entering.items()}
        member.watched = {other: arcs for other, arcs in there.items() if len(arcs)}
