"""The shed factor: a worker that is full beyond a threshold drops the more of its input the fuller it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.names import DropCurve

Floats: TypeAlias = NDArray[np.float64]

Curve: TypeAlias = Callable[[Floats], Floats]
"""How shedding rises: from [0, 1], which is how far a worker is from the threshold to being full, to [0, 1]."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Shares of a worker's capacity at which something is done: 0 < tau0 < tau1 < tau2 < tau3 <= 1.

    Attributes:
        tau0: At or below it for long, workers are given back.
        tau1: Where workers are to be when their number is chosen.
        tau2: From it on input is shed.
        tau3: At or above it for some time, workers are added.

    Raises:
        UsageError: they are not in this order; the message names the two that are not.

    Source: ESJ, adaptive workload.
    """

    tau0: float = 0.1
    tau1: float = 0.4
    tau2: float = 0.8
    tau3: float = 0.9

    def __post_init__(self) -> None:
        named = (("0", 0.0), *((name, getattr(self, name)) for name in self.__slots__))
        for (below, low), (above, high) in pairwise(named):
            if not low < high:
                than = below if below == "0" else f"{below}, which is {low:g}"
                raise UsageError(f"{above} is {high:g}, not above {than}; give 0 < tau0 < tau1 < tau2 < tau3 <= 1")
        if self.tau3 > 1:
            raise UsageError(f"tau3 is {self.tau3:g}, above 1, where a worker is full; give 0 < ... < tau3 <= 1")


@dataclass(frozen=True, slots=True)
class ShedFactor:
    """The part of its input that a worker drops, SF.

    Attributes:
        tau2: Share of its capacity below which it drops nothing, in (0, 1).
        min_drop: What it drops at tau2, B, in [0, 1].
        drop_curve: How it rises from there to 1 at a full worker; a name, or a function of [0, 1].

    Raises:
        UsageError: a number is out of its range.

    Source: ESJ, adaptive workload: 0 below tau2, else B + (1 - B) (tau - tau2) / (1 - tau2); beyond 1, where the paper
    is silent, it is 1.
    """

    tau2: float = 0.8
    min_drop: float = 0.0
    drop_curve: DropCurve | Curve = DropCurve.LINEAR

    def __post_init__(self) -> None:
        if not 0 < self.tau2 < 1:
            raise UsageError(f"tau2 is {self.tau2:g}; give a share of the capacity above 0 and below 1")
        if not 0 <= self.min_drop <= 1:
            raise UsageError(f"the least shed factor, B, is {self.min_drop:g}; give a part from 0 to 1")

    def part(self, tau: Floats) -> Floats:
        """SF of workers whose capacity is used by these shares, from 0 up; of their shape, in [0, 1]."""
        tau = np.asarray(tau, np.float64)
        beyond = np.clip((tau - self.tau2) / (1 - self.tau2), 0.0, 1.0)
        match self.drop_curve:
            case DropCurve.LINEAR:
                risen = beyond
            case DropCurve.QUADRATIC:
                risen = beyond**2
            case curve:
                risen = np.asarray(curve(beyond), np.float64)
        shed = np.clip(self.min_drop + (1 - self.min_drop) * risen, 0.0, 1.0)
        return np.where(tau < self.tau2, 0.0, np.where(tau >= 1, 1.0, shed))

    def table(self, capacity: int) -> Floats:
        """SF by the number of tuples held, from none to the capacity; shape (capacity + 1,)."""
        return self.part(np.arange(capacity + 1) / capacity)


def through(points: Sequence[tuple[float, float]]) -> Curve:
    """A form given by points, straight in between, such as (0, 0), (0.5, 0.1), (1, 1).

    Raises:
        UsageError: there are none, or they do not go to the right within [0, 1].
    """
    if not points or not all(0 <= x <= 1 and 0 <= y <= 1 for x, y in points):
        raise UsageError(f"a form of shedding goes through points in [0, 1] x [0, 1], not through {list(points)}")
    at, height = (np.array(side, np.float64) for side in zip(*points, strict=True))
    if not (np.diff(at) > 0).all():
        raise UsageError(f"the points of a form of shedding go to the right, and {list(points)} do not; sort them")
    return lambda beyond: np.interp(beyond, at, height)


@dataclass(frozen=True, slots=True)
class Overload:
    """What workers of a stage do about too much input: they hold what they take for a while, and shed as they fill up.

    Attributes:
        factor: SF.
        capacity_tuples: W, what a worker can hold.
        window_s: How long a tuple is held.
    """

    factor: ShedFactor
    capacity_tuples: int
    window_s: float

    def __post_init__(self) -> None:
        if self.capacity_tuples < 1:
            raise UsageError(f"a worker that holds {self.capacity_tuples} tuples has no use; give it 1 or more")
        if not 0 < self.window_s < np.inf:
            raise UsageError(f"tuples cannot be held for {self.window_s:g} s; give a time above 0")
