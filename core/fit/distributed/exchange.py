"""Messages between nodes, with delay and loss, retried until acknowledged."""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass, field

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.fit.distributed.messages import ACKNOWLEDGED_BYTES, Delta, Sheet, Topic
from adapt.core.fit.network.settings import check_ratio


@dataclass(frozen=True, slots=True)
class Transport:
    """Delay and loss of messages.

    Attributes:
        delay_s: Minimum delay, at least 0.
        jitter_s: Maximum extra delay, uniformly distributed, so that messages overtake each other.
        loss: Share of messages lost, in [0, 1).
        resend_s: Timeout after which an unacknowledged message is sent again.
    """

    delay_s: float = 0.0
    jitter_s: float = 0.0
    loss: float = 0.0
    resend_s: float = 1.0

    def __post_init__(self) -> None:
        if not (0 <= self.delay_s < np.inf and 0 <= self.jitter_s < np.inf and 0 < self.resend_s < np.inf):
            raise UsageError("message delay and jitter must be at least 0 s, the resend timeout above 0 s")
        check_ratio("--message-loss", self.loss)


@dataclass(frozen=True, slots=True, order=True)
class Channel:
    """Sender, receiver and topic of messages."""

    sender: int
    receiver: int
    topic: Topic


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
        return Traffic(*(mine + theirs for mine, theirs in zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True, eq=False)
class _Event:
    channel: Channel
    opened: int
    version: int


@dataclass(frozen=True, slots=True, eq=False)
class _Message(_Event):
    delta: Delta


class _Acknowledged(_Event):
    pass


class _Overdue(_Event):
    pass


@dataclass(slots=True)
class _Ends:
    """Both ends of a channel: latest sheet, sheet in flight, sheet received."""

    opened: int
    wanted: Sheet | None = None
    sent: Sheet | None = None
    sent_version: int = 0
    known: Sheet | None = None
    known_version: int = 0
    received: Sheet | None = None
    received_version: int = 0
    traffic: Traffic = field(default_factory=Traffic)


class Exchange:
    """All channels between nodes.

    A channel has one message in flight at a time: the changes since the last acknowledged sheet. Version numbers let
    the receiver recognize duplicates. So every channel converges to the sheet that its sender last wanted to send, even
    if messages are lost, late, duplicated or reordered, and nothing is sent twice except after losses.
    """

    def __init__(self, transport: Transport, random: np.random.Generator) -> None:
        self.now = 0.0
        self._transport, self._random = transport, random
        self._ends: dict[Channel, _Ends] = {}
        self._closed: dict[Channel, Traffic] = {}
        self._events: list[tuple[float, int, _Event]] = []
        self._number = 0

    @property
    def idle(self) -> bool:
        """Whether everything has arrived and is acknowledged."""
        return all(ends.sent is None for ends in self._ends.values())

    @property
    def up_to_date(self) -> bool:
        """Whether all receivers have the latest sheets of their senders."""
        return all(
            ends.sent is None
            or (ends.received is not None and ends.wanted is not None and ends.wanted.same(ends.received))
            for ends in self._ends.values()
        )

    def traffic(self) -> dict[Channel, Traffic]:
        """Traffic so far, by channel."""
        known = sorted({*self._closed, *self._ends})
        return {channel: self._closed.get(channel, Traffic()) + self._now(channel) for channel in known}

    def send(self, channel: Channel, sheet: Sheet) -> None:
        """Send a sheet, unless the receiver has it already."""
        self._number += 1
        ends = self._ends.setdefault(channel, _Ends(self._number))
        ends.wanted = sheet
        if ends.sent is None:
            self._send_next(channel, ends)

    def known(self, channel: Channel) -> Sheet | None:
        """What the receiver has, or will have once messages in flight arrive."""
        ends = self._ends.get(channel)
        return None if ends is None else ends.sent or ends.known

    def received(self, channel: Channel) -> Sheet | None:
        """The sheet that has arrived."""
        ends = self._ends.get(channel)
        return None if ends is None else ends.received

    def assume(self, channel: Channel, sheet: Sheet) -> None:
        """Treat a sheet as sent and received before, without traffic."""
        self._number += 1
        self._ends[channel] = _Ends(self._number, sheet, None, 1, sheet, 1, sheet, 1)

    def assume_sent(self, traffic: Mapping[Channel, Traffic]) -> None:
        """Add traffic of an earlier run."""
        self._closed |= traffic

    def close(self, channel: Channel) -> None:
        """Close a channel and ignore messages in flight; its traffic still counts."""
        self._closed[channel] = self._closed.get(channel, Traffic()) + self._now(channel)
        self._ends.pop(channel, None)

    def channels(self) -> list[Channel]:
        """All open channels."""
        return sorted(self._ends)

    def wait(self, until_s: float) -> None:
        """Advance the clock to a time."""
        self.now = max(self.now, until_s)

    def next_s(self) -> float:
        """Time of the next event; inf without one."""
        return self._events[0][0] if self._events and not self.idle else np.inf

    def run(self, until_s: float, react: Callable[[int], None]) -> None:
        """Deliver messages until none is pending, or until a time.

        Args:
            until_s: On the clock of the messages.
            react: Called with each node that received something new.
        """
        while self.next_s() < np.inf and self.next_s() <= until_s:
            channel = self.step()
            if channel is not None:
                react(channel.receiver)

    def step(self) -> Channel | None:
        """Process the next event; returns its channel if a new sheet arrived."""
        time, _, event = heapq.heappop(self._events)
        self.now = max(self.now, time)
        ends = self._ends.get(event.channel)
        if ends is None or ends.opened != event.opened:
            return None
        match event:
            case _Message():
                return self._arrive(event, ends)
            case _Acknowledged() if ends.sent is not None and event.version == ends.sent_version:
                ends.known, ends.known_version, ends.sent = ends.sent, ends.sent_version, None
                self._send_next(event.channel, ends)
            case _Overdue() if ends.sent is not None and event.version == ends.sent_version:
                ends.traffic.retries += 1
                self._transmit(event.channel, ends)
            case _:
                pass
        return None

    def _now(self, channel: Channel) -> Traffic:
        return self._ends[channel].traffic if channel in self._ends else Traffic()

    def _arrive(self, message: _Message, ends: _Ends) -> Channel | None:
        new = message.version > ends.received_version
        if new:
            ends.received, ends.received_version = message.delta.applied(ends.received), message.version
        ends.traffic.size += ACKNOWLEDGED_BYTES
        self._on_its_way(_Acknowledged(message.channel, ends.opened, ends.received_version), ends)
        return message.channel if new else None

    def _send_next(self, channel: Channel, ends: _Ends) -> None:
        if ends.wanted is None or (ends.known is not None and ends.wanted.same(ends.known)):
            return
        ends.sent, ends.sent_version = ends.wanted, ends.known_version + 1
        self._transmit(channel, ends)

    def _transmit(self, channel: Channel, ends: _Ends) -> None:
        assert ends.sent is not None
        delta = Delta.between(ends.known, ends.sent)
        ends.traffic.messages += 1
        ends.traffic.rows += len(delta.rows)
        ends.traffic.erased += len(delta.erased)
        ends.traffic.size += delta.size(channel.topic)
        self._on_its_way(_Message(channel, ends.opened, ends.sent_version, delta), ends)
        self._at(self.now + self._transport.resend_s, _Overdue(channel, ends.opened, ends.sent_version))

    def _on_its_way(self, event: _Event, ends: _Ends) -> None:
        way = self._transport
        if way.loss and self._random.random() < way.loss:
            ends.traffic.lost += 1
            return
        late = way.jitter_s * self._random.random() if way.jitter_s else 0.0
        self._at(self.now + way.delay_s + late, event)

    def _at(self, time: float, event: _Event) -> None:
        self._number += 1
        heapq.heappush(self._events, (time, self._number, event))


class Exchanging:
    """Nodes that communicate by an exchange."""

    _exchange: Exchange

    @property
    def stale(self) -> bool:
        """Whether some nodes lack the latest sheets of others."""
        return not self._exchange.up_to_date

    @property
    def now_s(self) -> float:
        """Time on the clock of the messages."""
        return self._exchange.now

    def traffic(self) -> dict[Channel, Traffic]:
        """Traffic so far, by channel."""
        return self._exchange.traffic()
