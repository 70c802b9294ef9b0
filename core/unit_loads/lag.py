"""When lag drains at today's rates, and what it needs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.errors import BadInput
from adapt.core.keys.partitioner import Channels
from adapt.core.table import Column, Kind, Table
from adapt.core.unit_loads.assigning import best_assignment

_STANDS = 1e-9
"""Relative change of lag per second that counts as none."""


@dataclass(frozen=True, slots=True)
class LagOfUnits:
    """Lag of units, and rates of arrival and consumption."""

    lag: Floats  # rows not yet consumed, from 0; shape (units,)
    arrivals: Floats  # rows a second; shape (units,)
    consumption: Floats  # rows a second; shape (units,)

    def __post_init__(self) -> None:
        each = (self.lag, self.arrivals, self.consumption)
        if len({len(of) for of in each}) > 1 or not all(np.isfinite(of).all() and (of >= 0).all() for of in each):
            raise BadInput("lag, arrivals and consumption must be numbers from 0, one for each unit")

    @classmethod
    def from_series(cls, times_s: Sequence[float], lags: Floats, arrivals: Floats) -> "LagOfUnits":
        """Rates from a series of lags.

        The slope of the lag is that of a line by least squares; consumption is arrivals less the slope.

        Args:
            times_s: Time of each sample in seconds, rising; at least two.
            lags: Lag of each unit at each time, shape (units, times).
            arrivals: Rows a second of each unit over that time, shape (units,).
        """
        at = np.asarray(times_s, np.float64)
        if len(at) < 2 or lags.shape != (len(arrivals), len(at)) or not (np.diff(at) > 0).all():
            raise BadInput(f"lag needs at least two samples of each unit, at rising times (got {len(at)} times)")
        centred = at - at.mean()
        slopes = lags @ centred / (centred**2).sum()
        return cls(lags[:, -1], np.asarray(arrivals), np.maximum(arrivals - slopes, 0.0))

    @property
    def drains_s(self) -> Floats:
        """Seconds until each unit has no lag; shape (units,).

        Infinite if its lag does not fall.
        """
        falls = self.consumption - self.arrivals
        is_falling = falls > _STANDS * np.maximum(self.lag, 1.0)
        left = np.where(is_falling, self.lag / np.where(is_falling, falls, 1.0), np.inf)
        return np.asarray(np.where(self.lag > 0, left, 0.0))

    def needed(self, within_s: float) -> Floats:
        """Rows a second that drain each unit in time; shape (units,)."""
        return np.asarray(self.arrivals + self.lag / within_s)

    def capacity(self, owners: Channels | None = None) -> float | None:
        """Rows a second that a worker can consume.

        The most that a worker with lag consumes; one without lag has no more to do than arrives. None if no unit has
        lag.

        Args:
            owners: Worker of each unit, shape (units,); None if each unit has its own.
        """
        each = np.arange(len(self.lag)) if owners is None else owners
        consumed, behind = np.bincount(each, self.consumption), np.bincount(each, self.lag) > 0
        return float(consumed[behind].max()) if behind.any() else None

    def workers_needed(self, within_s: float, owners: Channels | None = None) -> int | None:
        """Fewest workers that drain all lag in time.

        They are as fast as today's, and units are assigned as well as possible. None if no number does, because one
        unit alone needs more than a worker consumes, or if the capacity of a worker is not known.
        """
        capacity, needed = self.capacity(owners), self.needed(within_s)
        if not capacity or float(needed.max()) > capacity:
            return None
        for workers in range(max(int(np.ceil(needed.sum() / capacity - 1e-9)), 1), len(needed) + 1):
            placed = best_assignment(needed[:, None], workers)
            if float(np.bincount(placed, needed, workers).max()) <= capacity * (1 + 1e-9):
                return workers
        return None

    def table(self, units: Sequence[str], within_s: float) -> Table:
        """Units by their time to drain, the last first."""
        columns = (
            Column("unit"),
            Column("lag", Kind.COUNT, about="rows not yet consumed"),
            Column("arrivals", Kind.NUMBER, "rows/s"),
            Column("consumption", Kind.NUMBER, "rows/s"),
            Column("drains_in", Kind.SECONDS, about="at these rates; empty if the lag does not fall"),
            Column("needs", Kind.NUMBER, "rows/s", about=f"to have no lag in {within_s:,.0f} s"),
        )
        drains, needs = self.drains_s, self.needed(within_s)
        rows = [
            (
                units[at],
                round(float(self.lag[at])),
                float(self.arrivals[at]),
                float(self.consumption[at]),
                float(drains[at]) if np.isfinite(drains[at]) else None,
                float(needs[at]),
            )
            for at in np.argsort(-np.minimum(drains, 1e300), kind="stable")
        ]
        return Table.from_rows("Lag", columns, rows)
