"""All counted keys on the channels of today."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.frontier.today import Today
from adapt.core.partitioning.measures.imbalance import max_over_mean
from adapt.core.partitioning.schemes.explicit import ExplicitMap


@dataclass(frozen=True, slots=True)
class Whole:
    """All keys of a stream as placed today."""

    keys: pa.Array  # the first keys, those that may be pinned; shape (listed,)
    loads: Floats  # of each key; shape (keys,)
    state: Floats  # of each key; shape (keys,)
    home: Channels  # channel of each key today; shape (keys,)
    capacities: Floats  # of each channel; shape (channels,)

    def hottest(self, most: int) -> NDArray[np.int64]:
        """Rows of the hottest keys with load, by row."""
        loads = self.loads[: len(self.keys)]
        order = np.argsort(-loads, kind="stable")[:most]
        return np.sort(order[loads[order] > 0])

    def today(self, rows: NDArray[np.int64]) -> Today:
        """What is known of some keys; all others stay where they are."""
        stays = np.ones(len(self.loads), np.bool_)
        stays[rows] = False
        residual = np.bincount(self.home[stays], self.loads[stays], len(self.capacities)).astype(np.float64)
        own = self.loads[rows], self.state[rows], self.home[rows]
        return Today(*own, residual, self.capacities, float(self.state[stays].sum()))

    def pins(self, rows: NDArray[np.int64], placed: Channels) -> ExplicitMap:
        """The keys of some rows that are away from home."""
        is_moved = placed != self.home[rows]
        return ExplicitMap(self.keys.take(pa.array(rows[is_moved])), placed[is_moved])

    def placed(self, pins: ExplicitMap) -> Channels:
        """The channel of every key with these pins; shape (keys,)."""
        rows = pins.rows_of(self.keys)
        placed = self.home.copy()
        placed[: len(rows)] = np.where(rows >= 0, pins.channels[rows] if len(pins) else 0, placed[: len(rows)])
        return placed

    def effect(self, pins: ExplicitMap) -> tuple[float, float]:
        """Share of state that pins move, and the imbalance with them."""
        placed, total = self.placed(pins), float(self.state.sum())
        share = float(self.state[placed != self.home].sum()) / total if total else 0.0
        loads = np.bincount(placed, self.loads, len(self.capacities)).astype(np.float64)
        return share, max_over_mean(loads, self.capacities) or 1.0
