"""The network between nodes: it delays and counts their messages."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.distributed.correspondent import Correspondent, Places
from adapt.core.fit.distributed.mailbox import Channel, Message
from adapt.core.fit.distributed.messages import ERASED_BYTES, HEADER_BYTES, Topic


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

    def __init__(self, delay_s: float | None) -> None:
        if delay_s is not None and not 0 <= delay_s < np.inf:
            raise UsageError(f"--messages delay must be at least 0 s (got {delay_s:g} s)")
        self._peers: dict[int, Kind] = {}
        self._exchange = Exchange(delay_s or 0.0, self._peers)
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
