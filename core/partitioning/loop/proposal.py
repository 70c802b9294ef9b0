"""Proposed plan of a splitter, with the keys that would move."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from adapt.core.arrays import Floats
from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.tables import key_shown
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.measures.resources import Resources, loads_at
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.table import Column, Kind, Table


@dataclass(frozen=True)
class Proposal:
    """A plan to adopt, and what must move for it.

    Keys that neither plan pins move only if the number of channels changes; they are in `moved_state` alone.
    """

    before: Plan  # the plan in force
    plan: Plan  # the proposed plan; its parent is the one in force
    counted: Frequencies  # the counts that it was built from
    resources: Resources

    @property
    def imbalance(self) -> float | None:
        """Predicted load of the busiest channel / mean; None without load."""
        value = self.plan.metrics["imbalance"]
        return None if value is None else float(value)

    @property
    def m(self) -> float:
        """Migration factor: state that moves / that of an average channel.

        0 without state. Source: partitioning functions, Eq. 12.
        """
        return float(self.plan.metrics["m"] or 0.0)

    @property
    def moved_state(self) -> float:
        """State that moves, in units of beta_s."""
        return float(self.plan.metrics["state_moved"] or 0.0)

    @cached_property
    def moved(self) -> tuple[pa.Array, Channels, Channels, Floats]:
        """Pinned keys whose channel changes, with both channels and state.

        Pinned before or after; by falling state, then in key order; each of shape (keys,). A key that was not counted
        has no state.
        """
        maps = self.before.explicit, self.plan.explicit
        keys = pa.chunked_array([each.column for each in maps]).unique()
        was, is_now = (plan.partitioner().channels_of(keys) for plan in (self.before, self.plan))
        state = loads_at(self.counted, self.counted.rows_of(keys), self.resources.state)
        changed = np.flatnonzero(was != is_now)
        order = changed[np.argsort(-state[changed], kind="stable")]
        return keys.take(pa.array(order)), was[order], is_now[order], state[order]

    def moves(self) -> Table:
        """The keys to move, most state first."""
        columns = (
            Column("key"),
            Column("from", Kind.COUNT, about="old channel"),
            Column("to", Kind.COUNT, about="new channel"),
            Column("state", Kind.NUMBER),
        )
        keys, was, is_now, state = self.moved
        cells = zip(map(key_shown, keys.to_pylist()), was.tolist(), is_now.tolist(), state.tolist(), strict=True)
        return Table.from_rows("Keys to move", columns, list(cells))
