"""One node's ends of its channels: sheets sent, and sheets received."""

from dataclasses import dataclass, field

from adapt.core.fit.distributed.messages import ACKNOWLEDGED_BYTES, Delta, Sheet, Topic


@dataclass(frozen=True, slots=True, order=True)
class Channel:
    """Sender, receiver and topic of messages."""

    sender: int
    receiver: int
    topic: Topic


@dataclass(frozen=True, slots=True, eq=False)
class Packet:
    """A message on its way.

    Attributes:
        run: Number of the sender's start; 0: unknown to a receiver that lost its state.
        version: Of the sheet.
    """

    channel: Channel
    run: int
    version: int

    @property
    def to(self) -> int:
        """The node that gets it."""
        return self.channel.receiver

    @property
    def size(self) -> int:
        """Bytes."""
        return ACKNOWLEDGED_BYTES


@dataclass(frozen=True, slots=True, eq=False)
class Data(Packet):
    """A new version of a sheet, as a difference.

    Attributes:
        base: The acknowledged version that it changes; 0: none.
        delta: None: nothing to send yet.
        again: Whether it was sent before.
    """

    base: int = 0
    delta: Delta | None = None
    again: bool = False

    @property
    def size(self) -> int:
        """Bytes of its rows."""
        return ACKNOWLEDGED_BYTES if self.delta is None else self.delta.size(self.channel.topic)


@dataclass(frozen=True, slots=True, eq=False)
class Acknowledged(Packet):
    """The version that the receiver has; 0 after it lost its state.

    Attributes:
        by: Number of the receiver's start.
    """

    by: int = 0

    @property
    def to(self) -> int:
        """The node that gets it."""
        return self.channel.sender


@dataclass(frozen=True, slots=True, eq=False)
class Overdue:
    """No answer in time: to a sheet sent, or to a question."""

    packet: Packet

    @property
    def to(self) -> int:
        """The node that waits."""
        channel = self.packet.channel
        return channel.sender if isinstance(self.packet, Data) else channel.receiver


@dataclass(slots=True)
class _Sending:
    wanted: Sheet | None = None
    sent: Sheet | None = None
    version: int = 0
    known: Sheet | None = None
    known_version: int = 0
    receiver_run: int = 0


@dataclass(slots=True)
class _Receiving:
    sheet: Sheet | None = None
    run: int = 0
    version: int = 0
    asks: bool = False


@dataclass(slots=True, eq=False)
class Mailbox:
    """All ends of channels at one node.

    A channel has one message in flight at a time: the changes since the last acknowledged sheet. Version numbers let
    the receiver recognize duplicates, and numbers of starts let both ends recognize that the other has lost its state;
    then the whole sheet is sent again. So every channel converges to the sheet that its sender last wanted to send,
    even if messages are lost, late, duplicated or reordered and nodes restart, and without faults nothing is sent
    twice.

    Attributes:
        run: Number of the node's start.
        out: Messages to be taken away.
    """

    run: int
    out: list[Packet] = field(default_factory=list)
    _sending: dict[Channel, _Sending] = field(default_factory=dict)
    _receiving: dict[Channel, _Receiving] = field(default_factory=dict)

    def send(self, channel: Channel, sheet: Sheet) -> None:
        """Send a sheet, unless the receiver has it already."""
        end = self._sending.setdefault(channel, _Sending())
        end.wanted = sheet
        if end.sent is None:
            self._send_next(channel, end)

    def sent(self) -> list[Packet]:
        """Take away the messages that wait."""
        sent, self.out = self.out, []
        return sent

    def known(self, channel: Channel) -> Sheet | None:
        """What the receiver has, or will have once messages in flight arrive."""
        end = self._sending.get(channel)
        return None if end is None else end.sent or end.known

    def received(self, channel: Channel) -> Sheet | None:
        """The sheet that has arrived."""
        end = self._receiving.get(channel)
        return None if end is None else end.sheet

    def assume_sent(self, channel: Channel, sheet: Sheet) -> None:
        """Treat a sheet as acknowledged by a receiver that started once."""
        self._sending[channel] = _Sending(sheet, None, 1, sheet, 1, 1)

    def assume_received(self, channel: Channel, sheet: Sheet) -> None:
        """Treat a sheet as received from a sender that started once."""
        self._receiving[channel] = _Receiving(sheet, 1, 1)

    def keep(self, channels: set[Channel]) -> None:
        """Close all other channels."""
        self._sending = {channel: end for channel, end in self._sending.items() if channel in channels}
        self._receiving = {channel: end for channel, end in self._receiving.items() if channel in channels}

    def ask(self, channel: Channel) -> None:
        """Ask for a sheet that was received before a restart."""
        self._receiving[channel] = _Receiving(asks=True)
        self.out.append(Acknowledged(channel, 0, 0, self.run))

    def pending(self) -> dict[Channel, Sheet | None]:
        """Sheets not acknowledged yet, by channel; None where this node asks."""
        asked: dict[Channel, Sheet | None] = {way: None for way, end in self._receiving.items() if end.asks}
        return asked | {way: end.wanted for way, end in self._sending.items() if end.sent is not None}

    def take(self, event: Packet | Overdue) -> bool:
        """Receive a message; returns whether it brought a new sheet."""
        match event:
            case Data():
                return self._arrived(event)
            case Acknowledged():
                self._acknowledged(event)
            case Overdue():
                self._overdue(event.packet)
        return False

    def _arrived(self, data: Data) -> bool:
        end = self._receiving.setdefault(data.channel, _Receiving())
        if data.run < end.run:
            return False
        if data.run > end.run and data.base == 0:
            end.run, end.version = data.run, 0
        known = data.run == end.run
        new = known and data.version > end.version and data.base in (0, end.version)
        if data.delta is None or new:
            end.asks = False
        if new and data.delta is not None:
            end.sheet, end.version = data.delta.applied(end.sheet if data.base else None), data.version
        if data.delta is not None:
            self.out.append(Acknowledged(data.channel, data.run, end.version if known else 0, self.run))
        return new and data.delta is not None

    def _acknowledged(self, got: Acknowledged) -> None:
        end = self._sending.setdefault(got.channel, _Sending())
        if got.run not in (0, self.run) or got.by < end.receiver_run:
            return
        restarted, end.receiver_run = got.by > end.receiver_run, got.by
        if end.sent is not None and got.version == end.version:
            end.known, end.known_version, end.sent = end.sent, end.version, None
        elif restarted and got.version != end.known_version:
            end.known, end.known_version, end.sent = None, 0, None
        elif got.run != 0:
            return
        if end.wanted is None:
            self.out.append(Data(got.channel, self.run, 0))
        elif end.sent is None:
            self._send_next(got.channel, end)

    def _overdue(self, packet: Packet) -> None:
        sending, receiving = self._sending.get(packet.channel), self._receiving.get(packet.channel)
        if isinstance(packet, Data) and sending is not None and sending.sent is not None:
            if (packet.run, packet.version) == (self.run, sending.version):
                self._transmit(packet.channel, sending, again=True)
        elif isinstance(packet, Acknowledged) and packet.by == self.run and receiving is not None and receiving.asks:
            self.out.append(packet)

    def _send_next(self, channel: Channel, end: _Sending) -> None:
        if end.wanted is None or (end.known is not None and end.wanted.same(end.known)):
            return
        end.sent, end.version = end.wanted, end.version + 1
        self._transmit(channel, end, again=False)

    def _transmit(self, channel: Channel, end: _Sending, again: bool) -> None:
        assert end.sent is not None
        delta = Delta.between(end.known, end.sent)
        self.out.append(Data(channel, self.run, end.version, end.known_version, delta, again))
