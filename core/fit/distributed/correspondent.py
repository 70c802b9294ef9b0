"""A node that knows its own arcs and its messages."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.mailbox import Channel, Mailbox, Overdue, Packet
from adapt.core.fit.distributed.messages import Sheet, Topic
from adapt.core.fit.network.wiring import Indices


@dataclass(frozen=True, slots=True, eq=False)
class Places:
    """Where a node sees rates, and whose rates it needs.

    Attributes:
        node: Its number.
        entering: The arcs that enter it, ascending; shape (entering,).
        passing: Arcs that enter others and that it plans with; shape (passing,).
        watched: The passing arcs, by the node where they enter.
        watchers: Its own entering arcs that others watch, by these nodes.
    """

    node: int
    entering: Indices
    passing: Indices
    watched: dict[int, Indices]
    watchers: dict[int, Indices]

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

    def __init__(self, places: Places, run: int) -> None:
        """A node that has received nothing.

        Args:
            run: Number of its start.
        """
        self._mail, self._places = Mailbox(run), places

    @property
    def gone(self) -> bool:
        """Whether it has ended by itself: never."""
        return False

    def start(self) -> list[Packet]:
        """Send what it can say by itself."""
        self._react()
        return self._mail.sent()

    def take(self, event: Packet | Overdue) -> list[Packet]:
        """Receive a message; returns the messages that follow from it."""
        if self._mail.take(event) and isinstance(event, Packet) and event.channel.topic is not Topic.RATES:
            self._react()
        return self._mail.sent()

    def pending(self) -> dict[Channel, Sheet | None]:
        """Sheets not acknowledged yet, by channel; None where this node asks."""
        return self._mail.pending()

    def received(self, channel: Channel) -> Sheet | None:
        """The sheet that has arrived."""
        return self._mail.received(channel)

    def observe(self, arriving: Floats, watcher: int) -> list[Packet]:
        """Send a node the rates that it watches here.

        Args:
            arriving: Tuples/s on the entering arcs, shape (entering,).
        """
        arcs = self._places.watchers[watcher]
        rates = arriving[np.searchsorted(self._places.entering, arcs)]
        self._mail.send(Channel(self._places.node, watcher, Topic.RATES), Sheet(arcs, rates[None]))
        return self._mail.sent()

    def _elsewhere(self) -> Floats:
        """The latest rates on passing arcs, 0 before any; shape (passing,)."""
        passing = self._places.passing
        rates, order = np.zeros(len(passing)), np.argsort(passing)
        for channel in self._places.channels_to():
            sheet, arcs = self._mail.received(channel), self._places.watched[channel.sender]
            if sheet is not None and np.array_equal(sheet.arcs, arcs):
                rates[order[np.searchsorted(passing, arcs, sorter=order)]] = sheet.rows[0]
        return rates

    def close(self) -> None:  # noqa: B027 - only a process has something to end
        """End it."""

    @abstractmethod
    def _react(self) -> None:
        """Rebuild what follows from current knowledge, and send it."""
