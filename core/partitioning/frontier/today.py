"""Keys and channels as placed today, and budgets for pinning keys elsewhere."""

import math
from dataclasses import dataclass

import numpy as np

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Channels
from adapt.core.partitioning.measures.plan_settings import PlanSettings
from adapt.core.phrases import percent
from adapt.core.units.settings import PERCENT, Range, knob, same, settings

ROUNDING = 1e-12
"""Relative rounding error of sums in another order."""


@settings()
class Budget:
    """Limits of moved state and pins; each is optional."""

    max_moved_state: float | None = knob(
        "Share of all state that may move.",
        default=None,
        unit=PERCENT,
        typed="max-migration",
        range=Range(0, at_most=1),
    )
    max_pins: int | None = same(PlanSettings, "max_pins")

    @property
    def pins(self) -> float:
        """The limit of pins, infinite if there is none."""
        return math.inf if self.max_pins is None else float(self.max_pins)

    @property
    def words(self) -> list[str]:
        """The limits that are set, in words."""
        share, pins = self.max_moved_state, self.max_pins
        moved = [] if share is None else [f"max migration {percent(share)}"]
        return moved + ([] if pins is None else [f"max pins {pins:,}"])

    def within(self, other: "Budget") -> "Budget":
        """The stricter of two limits, each."""
        shares = [each for each in (self.max_moved_state, other.max_moved_state) if each is not None]
        pins = [each for each in (self.max_pins, other.max_pins) if each is not None]
        return Budget(min(shares, default=None), min(pins, default=None))


NO_LIMITS = Budget()
"""A budget without limits."""


@dataclass(frozen=True, slots=True)
class Today:
    """Keys that may be pinned, on the channels of today."""

    loads: Floats  # of each key, from 0; shape (keys,)
    state: Floats  # of each key, from 0; shape (keys,)
    home: Channels  # channel of each key today; shape (keys,)
    residual: Floats  # load of all other keys of each channel; shape (channels,)
    capacities: Floats  # of each channel, above 0; shape (channels,)
    other_state: float = 0.0  # state of all other keys, for shares of all state

    @property
    def average(self) -> float:
        """Load of all keys / all capacity."""
        return float((self.loads.sum() + self.residual.sum()) / self.capacities.sum())

    @property
    def all_state(self) -> float:
        """State of all keys."""
        return float(self.state.sum()) + self.other_state

    def utilizations(self, placed: Channels) -> Floats:
        """Load / capacity of each channel, shape (channels,)."""
        return (self.residual + np.bincount(placed, self.loads, len(self.residual))) / self.capacities

    def imbalance(self, placed: Channels) -> float:
        """Highest utilization / that of all capacity together; 1 without load."""
        return float(self.utilizations(placed).max()) / self.average if self.average > 0 else 1.0

    def pins(self, placed: Channels) -> int:
        """Number of keys away from home."""
        return int(np.count_nonzero(placed != self.home))

    def moved(self, placed: Channels) -> float:
        """State of keys away from home."""
        return float(self.state[placed != self.home].sum())

    def moved_share(self, placed: Channels) -> float:
        """Share of all state that is away from home."""
        all_state = self.all_state
        return self.moved(placed) / all_state if all_state else 0.0

    def state_in(self, budget: Budget) -> float:
        """The state that may move in a budget, infinite without a limit."""
        return math.inf if budget.max_moved_state is None else budget.max_moved_state * self.all_state * (1 + ROUNDING)
