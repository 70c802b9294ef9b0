"""Network between nodes, which delays and counts messages."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.messages import ERASED_BYTES, HEADER_BYTES, Channel, Mailbox, Message, Sheet, Topic
from adapt.core.fit.network.settings import Delivery
from adapt.core.fit.network.wiring import Indices


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where a node sees rates, and whose rates it needs."""

    node: int
    entering: Indices  # the arcs that enter it, ascending; shape (entering,)
    passing: Indices  # arcs that enter others and that it plans with; shape (passing,)
    watched: dict[int, Indices]  # the passing arcs, by the node where they enter
    watchers: dict[int, Indices]  # its own entering arcs that others watch, by these nodes

    @classmethod
    def of_nodes(cls, dimensions: Mapping[int, tuple[Indices, Indices]]) -> "dict[int, Places]":
        """The places of all nodes.

        Args:
            dimensions: Of each node, the arcs that enter it, and the passing ones.
        """
        watched = {
            node: {
                other: found
                for other, (entering, _) in dimensions.items()
                if len(found := entering[np.isin(entering, passing)])
            }
            for node, (_, passing) in dimensions.items()
        }
        watchers = {node: {other: arcs[node] for other, arcs in watched.items() if node in arcs} for node in watched}
        return {node: cls(node, *arcs, watched[node], watchers[node]) for node, arcs in dimensions.items()}

    def channels_to(self) -> list[Channel]:
        """The channels on which it receives rates."""
        return [Channel(other, self.node, Topic.RATES) for other in self.watched]

    def channels_from(self) -> list[Channel]:
        """The channels on which it sends rates."""
        return [Channel(self.node, other, Topic.RATES) for other in self.watchers]


class Correspondent(ABC):
    """A node that knows its own arcs and its messages only."""

    def __init__(self, places: Places) -> None:
        """A node that has received nothing."""
        self._mail, self._places = Mailbox(), places

    def start(self) -> list[Message]:
        """Send what it can say by itself."""
        self._react()
        return self._mail.take_away()

    def take(self, message: Message) -> list[Message]:
        """Receive a message; returns the messages that follow from it."""
        self._mail.take(message)
        if message.channel.topic is not Topic.RATES:
            self._react()
        return self._mail.take_away()

    def observe(self, arriving: Floats, watcher: int) -> list[Message]:
        """Send a node the rates that it watches here.

        Args:
            arriving: Tuples/s on the entering arcs, shape (entering,).
        """
        arcs = self._places.watchers[watcher]
        rates = arriving[np.searchsorted(self._places.entering, arcs)]
        self._mail.send(Channel(self._places.node, watcher, Topic.RATES), Sheet(arcs, rates[None]))
        return self._mail.take_away()

    def elsewhere(self) -> Floats:
        """The latest rates on passing arcs, 0 before any; shape (passing,)."""
        passing = self._places.passing
        rates, order = np.zeros(len(passing)), np.argsort(passing)
        for channel in self._places.channels_to():
            sheet, arcs = self._mail.received.get(channel), self._places.watched[channel.sender]
            if sheet is not None and np.array_equal(sheet.arcs, arcs):
                rates[order[np.searchsorted(passing, arcs, sorter=order)]] = sheet.rows[0]
        return rates

    @abstractmethod
    def _react(self) -> None:
        """Rebuild what follows from current knowledge, and send it."""


@dataclass(slots=True)
class Traffic:
    """Messages sent, with their rows and bytes."""

    messages: int = 0
    rows: int = 0
    erased: int = 0  # rows withdrawn
    size: int = 0  # bytes

    def __add__(self, other: "Traffic") -> "Traffic":
        """The sum of both."""
        return Traffic(
            self.messages + other.messages,
            self.rows + other.rows,
            self.erased + other.erased,
            self.size + other.size,
        )


class Exchange:
    """The network that carries all messages between nodes.

    All messages have the same delay, so they arrive in the order sent.

    Attributes:
        now: Seconds since the start.
        members: All nodes that run.
    """

    def __init__(self, delay_s: float, members: Mapping[int, Correspondent]) -> None:
        self.now, self.members = 0.0, members
        self._delay_s = delay_s
        self._traffic: dict[Channel, Traffic] = {}
        self._on_their_way: deque[tuple[float, Message]] = deque()

    @property
    def idle(self) -> bool:
        """Whether no message is on its way."""
        return not self._on_their_way

    def up_to_date(self, but: Topic | None = None) -> bool:
        """Whether no message is on its way, except those of a topic."""
        return all(message.channel.topic is but for _, message in self._on_their_way)

    def traffic(self) -> dict[Channel, Traffic]:
        """Traffic so far, by channel."""
        return {channel: replace(self._traffic[channel]) for channel in sorted(self._traffic)}

    @property
    def total(self) -> Traffic:
        """Traffic so far, of all channels."""
        return sum(self._traffic.values(), Traffic())

    def count(self, channel: Channel, traffic: Traffic) -> None:
        """Add traffic that was carried elsewhere."""
        self._traffic[channel] = self._traffic.get(channel, Traffic()) + traffic

    def close(self, channels: set[Channel]) -> None:
        """Discard the messages on some channels; they are counted."""
        self._on_their_way = deque(each for each in self._on_their_way if each[1].channel not in channels)

    def use(self, delay_s: float) -> None:
        """Delay messages by another time; none may be on its way."""
        self._delay_s = delay_s

    def wait(self, until_s: float) -> None:
        """Advance the clock to a time."""
        self.now = max(self.now, until_s)

    def next_s(self) -> float:
        """When the next message arrives; inf without one."""
        return self._on_their_way[0][0] if self._on_their_way else np.inf

    def run(self, until_s: float) -> None:
        """Deliver messages until none is on its way, or until a time."""
        while self._on_their_way and self._on_their_way[0][0] <= until_s:
            self.now, message = self._on_their_way.popleft()
            self.carry(self.members[message.channel.receiver].take(message))

    def carry(self, messages: Iterable[Message]) -> None:
        """Take messages from nodes."""
        for message in messages:
            rows, erased = len(message.delta.rows), len(message.delta.erased)
            self.count(message.channel, Traffic(1, rows, erased, message.size))
            self._on_their_way.append((self.now + self._delay_s, message))


class Deployed(Protocol):
    """What a node knows except by messages."""

    def channels_to(self) -> list[Channel]:
        """The channels on which it receives messages."""
        ...


Kind = TypeVar("Kind", bound=Correspondent)


class Exchanging(Generic[Kind]):
    """Nodes that communicate by an exchange."""

    def __init__(self, delivery: Delivery) -> None:
        self._delivery = delivery
        self._peers: dict[int, Kind] = {}
        self._exchange = Exchange(delivery.delay_s or 0.0, self._peers)
        self._places: dict[int, Places] = {}
        self._reported: dict[Channel, Floats] = {}

    @property
    def stale(self) -> bool:
        """Whether some nodes lack the latest sheets of others."""
        return not self._exchange.up_to_date()

    @property
    def settled(self) -> bool:
        """Whether no message is on its way."""
        return self._exchange.idle

    @property
    def now_s(self) -> float:
        """Time on the clock of the messages."""
        return self._exchange.now

    def traffic(self) -> dict[Channel, Traffic]:
        """Traffic so far, by channel."""
        return self._exchange.traffic()

    @property
    def total(self) -> Traffic:
        """Traffic so far, of all channels."""
        return self._exchange.total

    def settle(self, until_s: float = np.inf) -> None:
        """Deliver messages until none is on its way, or until a time."""
        self._exchange.run(until_s)
        if until_s < np.inf:
            self._exchange.wait(until_s)

    def _follow(self, deployments: Mapping[int, Deployed]) -> None:
        """Close the channels, and stop the nodes, that are no longer deployed."""
        channels = {channel for deployed in deployments.values() for channel in deployed.channels_to()}
        self._exchange.close(self.traffic().keys() - channels)
        for node in self._peers.keys() - deployments.keys():
            del self._peers[node]

    def _start(self, node: int, peer: Kind) -> None:
        """Start a node."""
        self._peers[node] = peer
        self._exchange.carry(peer.start())

    def _report(self, node: int, flows: Floats) -> None:
        """Let other nodes send a node the rates that it watches; flows have shape (arcs,)."""
        for other in self._places[node].watched:
            arriving = flows[self._places[other].entering]
            self._exchange.carry(self._peers[other].observe(arriving, node))
        self._exchange.run(self._exchange.now)

    def _count(self, node: int, flows: Floats) -> None:
        """Count the messages with the rates that a node watches; flows have shape (points, arcs)."""
        for other, arcs in self._places[node].watched.items():
            channel = Channel(other, node, Topic.RATES)
            before = self._reported.get(channel)
            rows, first = flows[:, arcs], before is None or before.shape[1] != len(arcs)
            if before is not None and not first:
                rows = np.concatenate((before, rows))
            messages = int((rows[1:] != rows[:-1]).any(axis=1).sum()) + first
            erased = messages - first
            size = messages * (8 * len(arcs) + HEADER_BYTES) + erased * ERASED_BYTES
            self._exchange.count(channel, Traffic(messages, messages, erased, size))
            self._reported[channel] = rows[-1:]
