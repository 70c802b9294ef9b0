"""Migration from one partitioner to the next."""

from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels


@dataclass(frozen=True, slots=True)
class Migration:
    """Keys and state moved by one change of partitioner.

    Attributes:
        keys: Keys whose channel changed.
        state: Their state, M (Eq. 9), in units of beta_s of a count.
        ideal: L_s (Eq. 10): the state of an average channel among the new ones.
    """

    keys: int
    state: float
    ideal: float

    @property
    def relative(self) -> float | None:
        """m (Eq. 12), the migration factor; None without state.

        Consistent hashing without skew moves 1 to a new channel.
        """
        return self.state / self.ideal if self.ideal > 0 else None


def migration(
    before: Channels,
    after: Channels,
    state: Floats,
    channels: int,
    represented: Floats | None = None,
    leaving: Floats | None = None,
) -> Migration:
    """M (Eq. 9): the state of the keys whose channel changed.

    A key of a removed channel has moved, since its old channel differs from any new one. A key that is not in the new
    period has no known state and does not count.

    Args:
        before: The channel of each key under the old partitioner, shape (keys,).
        state: beta_s of each key's new count, shape (keys,).
        channels: N of the new partitioner (decision of ours: Eq. 10 does not say which N).
        represented: Number of keys that each entry represents, shape (keys,). Default: 1.
        leaving: The share of each key's state that moves, shape (keys,). Default: all of it if its channel changed.

    Source: partitioning functions, sections 3.3 and 3.4.
    """
    share = (before != after).astype(np.float64) if leaving is None else leaving
    moved = share > 0
    keys = np.count_nonzero(moved) if represented is None else round(represented[moved].sum())
    return Migration(int(keys), float((state[moved] * share[moved]).sum()), float(state.sum()) / channels)
