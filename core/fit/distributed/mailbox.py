"""One node's ends of its channels: sheets sent, and sheets received."""

from dataclasses import dataclass, field

from adapt.core.fit.distributed.messages import HEADER_BYTES, Delta, Sheet, Topic


@dataclass(frozen=True, slots=True, order=True)
class Channel:
    """Sender, receiver and topic of messages."""

    sender: int
    receiver: int
    topic: Topic


@dataclass(frozen=True, slots=True, eq=False)
class Message:
    """A new sheet, as its difference from the one before."""

    channel: Channel
    delta: Delta

    @property
    def size(self) -> int:
        """Bytes."""
        return self.delta.size(self.channel.topic) + HEADER_BYTES


@dataclass(slots=True, eq=False)
class Mailbox:
    """All ends of channels at one node."""

    sent: dict[Channel, Sheet] = field(default_factory=dict)  # the newest sheet sent, by channel
    received: dict[Channel, Sheet] = field(default_factory=dict)  # the newest sheet that has arrived, by channel
    out: list[Message] = field(default_factory=list)  # messages to be taken away

    def send(self, channel: Channel, sheet: Sheet) -> None:
        """Send a sheet, unless it is the one sent before."""
        before = self.sent.get(channel)
        if before is None or not sheet.same(before):
            self.sent[channel] = sheet
            self.out.append(Message(channel, Delta.between(before, sheet)))

    def take(self, message: Message) -> None:
        """Receive a message."""
        self.received[message.channel] = message.delta.applied(self.received.get(message.channel))

    def take_away(self) -> list[Message]:
        """The messages that wait."""
        out, self.out = self.out, []
        return out

    def keep(self, channels: set[Channel]) -> None:
        """Close all other channels."""
        self.sent = {channel: sheet for channel, sheet in self.sent.items() if channel in channels}
        self.received = {channel: sheet for channel, sheet in self.received.items() if channel in channels}
