"""A node that knows its own arcs and its messages."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.distributed.mailbox import Channel, Mailbox, Message
from adapt.core.fit.distributed.messages import Sheet, Topic
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
