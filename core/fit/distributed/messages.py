"""Messages between nodes: sheets of rows, and their differences."""

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.tables.composition import covered
from adapt.core.fit.tables.rows import PointTree


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

_HALVINGS = 8
"""Steps in which the least loss is found that makes a table small enough."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Delta:
    """The difference between two sheets."""

    arcs: Indices  # of the new sheet
    erased: Indices  # numbers of the old rows to erase, ascending
    places: Indices  # numbers of the new rows to insert, ascending
    rows: Floats  # these rows, shape (places, columns)

    @classmethod
    def between(cls, old: Sheet | None, new: Sheet) -> "Delta":
        """The rows to add to and erase from an old sheet.

        Rows that change their order are sent again.
        """
        every = np.arange(len(new.rows))
        if old is None or not np.array_equal(old.arcs, new.arcs) or old.rows.shape[1] != new.rows.shape[1]:
            return cls(new.arcs, np.arange(0 if old is None else len(old.rows)), every, new.rows)
        _, same = np.unique(_bits(np.concatenate((old.rows, new.rows))), axis=0, return_inverse=True)
        same = same.reshape(-1)
        before, after = same[: len(old.rows)], same[len(old.rows) :]
        first = np.full(len(same), -1, np.int64)
        first[before[::-1]] = np.arange(len(before))[::-1]
        match = first[after]
        kept = match > np.maximum.accumulate(np.concatenate(([-1], match)))[:-1]
        erased = np.setdiff1d(np.arange(len(before)), match[kept], assume_unique=True)
        return cls(new.arcs, erased, every[~kept], new.rows[~kept])

    def applied(self, old: Sheet | None) -> Sheet:
        """The new sheet."""
        stay = np.zeros((0, self.rows.shape[1]))
        if old is not None and len(self.erased) < len(old.rows):
            stay = np.delete(old.rows, self.erased, axis=0)
        rows = np.empty((len(stay) + len(self.places), self.rows.shape[1]))
        comes = np.zeros(len(rows), dtype=np.bool_)
        comes[self.places] = True
        rows[comes], rows[~comes] = self.rows, stay
        return Sheet(self.arcs, rows)

    def size(self, topic: Topic) -> int:
        """Size in bytes; a table row takes 8 + 22 per arc.

        Source: FIT, Table 3.
        """
        row = _row_bytes(self.arcs) if topic in (Topic.TABLE, Topic.CUTS) else 8 * self.rows.shape[1]
        return row * len(self.rows) + ERASED_BYTES * len(self.erased)


def small_enough(table: Sheet, most_bytes: int | None) -> Sheet:
    """Part of a table of limited size, with the least loss.

    The rows that stay represent the others. As every row is feasible by itself, any of them may go; points above it get
    a row that scores less.

    Args:
        table: Rates and score, shape (rows, arcs + 1).
        most_bytes: The size, at least that of one row; None: unlimited.

    Source: FIT, section 8.2.5, which proposes to adjust epsilon to the communication overhead.
    """
    rows = len(table.rows) if most_bytes is None else max(most_bytes // _row_bytes(table.arcs), 1)
    if len(table.rows) <= rows:
        return table
    arcs = len(table.arcs)
    best, low, high = None, 0.0, 1.0
    for _ in range(_HALVINGS):
        loss = (low + high) / 2
        stays = covered(table.rows[:, :arcs], table.rows[:, arcs], loss)
        if len(stays) <= rows:
            best, high = stays, loss
        else:
            low = loss
    if best is None:
        best = stays[np.linspace(0, len(stays) - 1, rows).astype(np.int64)]
    return Sheet(table.arcs, table.rows[best])


def good_enough(sent: Sheet, new: Sheet, distance: float) -> Sheet:
    """A table close to a new one that reuses rows already sent.

    An old row stays if its score differs by at most a third of the distance from the new table's score at its rates. A
    new row is added if no row that stays, at or below it, has a score as close. Choosing the best row of the result,
    and getting the new table's score there, loses at most `distance` of the new table's best score.

    Args:
        sent: Rates and score of the table sent before; shape (rows, arcs + 1).
        new: The current table, likewise.
        distance: Relative score error, in [0, 1).

    Source: FIT, section 8.2.5, which does not say how the rows to send are found.
    """
    if distance == 0 or not np.array_equal(sent.arcs, new.arcs):
        return new
    allowed, arcs = distance / 3, len(new.arcs)
    given = _best_below(new.rows[:, :arcs], new.rows[:, arcs], sent.rows[:, :arcs])
    says = sent.rows[:, arcs]
    stays = (given >= 0) & (np.abs(says - given) <= allowed * given)
    reached = _best_below(sent.rows[stays, :arcs], given[stays], new.rows[:, :arcs])
    comes = reached < (1 - allowed) * new.rows[:, arcs]
    comes |= reached < 0
    if stays.sum() + comes.sum() > 2 * len(new.rows):
        return new
    return Sheet(new.arcs, np.concatenate((sent.rows[stays], new.rows[comes])))


def _row_bytes(arcs: Indices) -> int:
    """Size of a row of a table or cut."""
    return 8 + 22 * len(arcs)


def _best_below(rates: Floats, scores: Floats, points: Floats) -> Floats:
    """The best score of a row at or below each point, else -1; shape (points,)."""
    if not len(rates):
        return np.full(len(points), -1.0)
    found = PointTree.from_table(rates, scores, prune=True).find(np.ascontiguousarray(points))
    return np.where(found >= 0, scores[found], -1.0)


def _bits(rows: Floats) -> Indices:
    return np.ascontiguousarray(rows).view(np.int64)


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
