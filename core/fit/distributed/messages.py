"""What one node tells another: rows about arcs, and what changes in them from one telling to the next."""

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices
from adapt.core.fit.tables.point_tree import PointTree


class Topic(StrEnum):
    """What rows are about."""

    BOUNDS = "bounds"
    """What can come, told downstream: an arc's highest rate with drops and without."""
    TABLE = "table"
    """What is feasible, told upstream: rates of arcs, score. Local plans stay where they are."""
    CONDITIONS = "conditions"
    """Where nothing needs to be dropped, told upstream: loads by a tuple/s of each arc."""
    CUTS = "cuts"
    """Linear functions above the best score, told upstream: a score, then what a tuple/s of each arc adds."""


ERASED_BYTES = 8
"""Of the number of a row that is erased."""

ACKNOWLEDGED_BYTES = 8
"""Of the number of what has arrived."""


@dataclass(frozen=True, slots=True, eq=False)
class Sheet:
    """Rows about arcs.

    Attributes:
        arcs: Shape (arcs,).
        rows: Shape (rows, columns).
    """

    arcs: Indices
    rows: Floats

    def same(self, other: "Sheet") -> bool:
        """Whether all is equal to the bit."""
        return np.array_equal(self.arcs, other.arcs) and np.array_equal(_bits(self.rows), _bits(other.rows))


@dataclass(frozen=True, slots=True, eq=False)
class Delta:
    """What makes a new sheet of an old one.

    Attributes:
        arcs: Of the new sheet.
        erased: Numbers of old rows that go, in rising order.
        places: Numbers of new rows that come, in rising order.
        rows: These rows, shape (places, columns).
    """

    arcs: Indices
    erased: Indices
    places: Indices
    rows: Floats

    @classmethod
    def between(cls, old: Sheet | None, new: Sheet) -> "Delta":
        """The rows of a new sheet that the old one lacks; rows that change their order come again."""
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
        """Bytes; a row of a table with D arcs takes 8 + 22 D.

        Source: FIT, Table 3.
        """
        row = 8 + 22 * len(self.arcs) if topic in (Topic.TABLE, Topic.CUTS) else 8 * self.rows.shape[1]
        return row * len(self.rows) + ERASED_BYTES * len(self.erased)


def good_enough(sent: Sheet, new: Sheet, distance: float) -> Sheet:
    """A table near a new one, with as many rows as may be of the one that was told before.

    An old row stays if what the new table gives at its rates differs from what it says by a third of the distance at
    most. A new row comes if none that stay lies at or below it with a score as near. Who chooses the best row of the
    result, and is given what the new table gives there, loses at most `distance` of the new table's best score.

    Args:
        sent: Rates, score; shape (rows, arcs + 1).
        new: The same, of the table as it is.
        distance: Part of the score, in [0, 1).

    Source: FIT, section 8.2.5, which leaves open how the entries to be sent are found.
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


def _best_below(rates: Floats, scores: Floats, points: Floats) -> Floats:
    """The best score of a row at or below each point, -1 if there is none; shape (points,)."""
    if not len(rates):
        return np.full(len(points), -1.0)
    found = PointTree.from_table(rates, scores, prune=True).find(np.ascontiguousarray(points))
    return np.where(found >= 0, scores[found], -1.0)


def _bits(rows: Floats) -> Indices:
    return np.ascontiguousarray(rows).view(np.int64)
