"""The network between nodes: it delays, loses and counts their messages."""

import heapq
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Generic, Protocol, TypeVar

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import UsageError
from adapt.core.fit.distributed.correspondent import Correspondent, Places
from adapt.core.fit.distributed.mailbox import Channel, Data, Overdue, Packet
from adapt.core.fit.distributed.messages import ACKNOWLEDGED_BYTES, ERASED_BYTES, Topic
from adapt.core.fit.network.settings import check_ratio


@dataclass(frozen=True, slots=True)
class Transport:
    """Delay and loss of messages.

    Attributes:
        delay_s: Minimum delay, at least 0.
        jitter_s: Maximum extra delay, uniformly distributed, so that messages overtake each other.
        loss: Share of messages lost, in [0, 1).
        resend_s: Timeout after which an unacknowledged message is sent again.
        coordinator_down: When a coordinator fails and comes back, in turn; seconds since the start, ascending.
    """

    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0
    resend_s: float = 1.0
    coordinator_down: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not (0 <= self.delay_s < np.inf and 0 <= self.jitter_s < np.inf and 0 < self.resend_s < np.inf):
            raise UsageError("message delay and jitter must be at least 0 s, the resend timeout above 0 s")
        check_ratio("--message-loss", self.loss)
        if any(end <= start for start, end in pairwise(self.coordinator_down)):
            raise UsageError("--coordinator-down must give ascending times, each a start and a later end: 1h-2h,5h-6h")


@dataclass(slots=True)
class Traffic:
    """Messages and bytes sent.

    Attributes:
        messages: Messages with rows, retries included.
        retries: Messages sent again.
        lost: Lost messages and acknowledgements.
        rows: Rows sent, retries included.
        erased: Rows withdrawn.
        size: Bytes, acknowledgements included.
    """

    messages: int = 0
    retries: int = 0
    lost: int = 0
    rows: int = 0
    erased: int = 0
    size: int = 0

    def __add__(self, other: "Traffic") -> "Traffic":
        """The sum of both."""
        return Traffic(
            self.messages + other.messages,
            self.retries + other.retries,
            self.lost + other.lost,
            self.rows + other.rows,
            self.erased + other.erased,
            self.size + other.size,
        )


class Exchange:
    """The network that carries all messages between nodes.

    Attributes:
        now: Seconds since the start.
        members: All nodes that run.
        apart: Pairs of nodes between which all messages are lost.
    """

    def __init__(self, transport: Transport, random: np.random.Generator, members: Mapping[int, Correspondent]) -> None:
        self.now, self.members = 0.0, members
        self.apart: set[frozenset[int]] = set()
        self._transport, self._random = transport, random
        self._traffic: dict[Channel, Traffic] = {}
        self._events: list[tuple[float, int, Packet | Overdue]] = []
        self._number = 0

    @property
    def idle(self) -> bool:
        """Whether all is acknowledged, except at nodes down or cut off."""
        return not any(self._reaches(channel) for node in self.members.values() for channel in node.pending())

    def up_to_date(self, but: Topic | None = None) -> bool:
        """Whether all receivers have the latest sheets, except those of a topic."""
        for member in self.members.values():
            for channel, wanted in member.pending().items():
                if channel.topic is but:
                    continue
                other = self.members.get(channel.receiver)
                there = None if other is None else other.received(channel)
                if wanted is None or there is None or not wanted.same(there):
                    return False
        return True

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
        """Lose messages on some channels; their traffic still counts."""
        self._events = [event for event in self._events if _channel(event[2]) not in channels]
        heapq.heapify(self._events)

    def use(self, transport: Transport) -> None:
        """Carry messages from now on by another transport."""
        self._transport = transport

    def wait(self, until_s: float) -> None:
        """Advance the clock to a time."""
        self.now = max(self.now, until_s)

    def next_s(self) -> float:
        """Time of the next event; inf without one."""
        return self._events[0][0] if self._events and not self.idle else np.inf

    def run(self, until_s: float) -> None:
        """Deliver messages until none is pending, or until a time.

        Args:
            until_s: On the clock of the messages.
        """
        while self.next_s() < np.inf and self.next_s() <= until_s:
            self.step()

    def step(self) -> None:
        """Deliver the next message."""
        time, _, event = heapq.heappop(self._events)
        self.now = max(self.now, time)
        if event.to in self.members:
            self.carry(self.members[event.to].take(event))

    def carry(self, packets: Iterable[Packet]) -> None:
        """Take messages from nodes, and lose or delay them."""
        for packet in packets:
            traffic = self._traffic.setdefault(packet.channel, Traffic())
            if isinstance(packet, Data) and packet.delta is not None:
                traffic.messages += 1
                traffic.retries += packet.again
                traffic.rows += len(packet.delta.rows)
                traffic.erased += len(packet.delta.erased)
            traffic.size += packet.size
            self._on_its_way(packet, traffic)
            if (isinstance(packet, Data) and packet.delta is not None) or packet.run == 0:
                self._at(self.now + self._transport.resend_s, Overdue(packet))

    def _reaches(self, channel: Channel) -> bool:
        ends = frozenset((channel.sender, channel.receiver))
        running = all(end in self.members and not self.members[end].gone for end in ends)
        return running and ends not in self.apart

    def _on_its_way(self, packet: Packet, traffic: Traffic) -> None:
        way = self._transport
        lost = bool(way.loss) and self._random.random() < way.loss
        if lost or frozenset((packet.channel.sender, packet.channel.receiver)) in self.apart:
            traffic.lost += 1
            return
        late = way.jitter_s * self._random.random() if way.jitter_s else 0.0
        self._at(self.now + way.delay_s + late, packet)

    def _at(self, time: float, event: Packet | Overdue) -> None:
        self._number += 1
        heapq.heappush(self._events, (time, self._number, event))


class Deployed(Protocol):
    """What a node knows except by messages."""

    def channels_to(self) -> list[Channel]:
        """The channels on which it receives messages."""
        ...


Kind = TypeVar("Kind", bound=Correspondent)


class Exchanging(Generic[Kind]):
    """Nodes that communicate by an exchange."""

    def __init__(self, transport: Transport | None, seed: int) -> None:
        self._peers: dict[int, Kind] = {}
        self._starts: dict[int, int] = {}
        self._exchange = Exchange(transport or Transport(), np.random.default_rng(seed), self._peers)
        self._places: dict[int, Places] = {}
        self._reported: dict[Channel, Floats] = {}

    @property
    def stale(self) -> bool:
        """Whether some nodes lack the latest sheets of others."""
        return not self._exchange.up_to_date()

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

    @property
    def down(self) -> set[int]:
        """Nodes that have crashed."""
        return self._starts.keys() - self._peers.keys()

    def crash(self, node: int) -> None:
        """Stop a node, which loses its state and keeps nothing until restarted."""
        if node in self._peers:
            self._peers.pop(node).close()

    def restart(self, node: int) -> None:
        """Start a node again that has crashed."""
        self._begin(node)
        self._exchange.carry(self._peers[node].start())

    def part(self, node: int, other: int) -> None:
        """Lose all messages between two nodes until they are joined again."""
        self._exchange.apart.add(frozenset((node, other)))

    def join(self, node: int, other: int) -> None:
        """Carry messages between two nodes again."""
        self._exchange.apart.discard(frozenset((node, other)))

    def _revive(self) -> None:
        """Start nodes again that have ended by themselves."""
        for node in [node for node, peer in self._peers.items() if peer.gone]:
            self.crash(node)
            self.restart(node)

    def _follow(self, deployments: Mapping[int, Deployed]) -> None:
        """Close the channels, and stop the nodes, that are no longer deployed."""
        channels = {channel for deployed in deployments.values() for channel in deployed.channels_to()}
        self._exchange.close(self.traffic().keys() - channels)
        for node in self._starts.keys() - deployments.keys():
            self.crash(node)
            del self._starts[node]

    @abstractmethod
    def _started(self, node: int, run: int) -> Kind:
        """Start a node, given the number of its start."""

    def _begin(self, node: int) -> None:
        self._starts[node] = self._starts.get(node, 0) + 1
        self._peers[node] = self._started(node, self._starts[node])

    def _report(self, node: int, flows: Floats) -> None:
        """Let other nodes send a node the rates that it watches; flows have shape (arcs,)."""
        for other in self._places[node].watched:
            if other in self._peers:
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
            size = messages * (8 * len(arcs) + ACKNOWLEDGED_BYTES) + erased * ERASED_BYTES
            self._exchange.count(channel, Traffic(messages, 0, 0, messages, erased, size))
            self._reported[channel] = rows[-1:]


def _channel(event: Packet | Overdue) -> Channel:
    return event.packet.channel if isinstance(event, Overdue) else event.channel
