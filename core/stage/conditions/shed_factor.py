"""Shed factor: the drop probability of a worker by its occupancy."""

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.names import DropCurve
from adapt.core.stage.conditions.stage_settings import BufferSettings, SheddingSettings
from adapt.core.units.amounts import seconds_of
from adapt.core.units.settings import SettingError

Floats: TypeAlias = NDArray[np.float64]

Curve: TypeAlias = Callable[[Floats], Floats]
"""Drop curve: maps the way from the threshold to a full worker, in [0, 1], to [0, 1]."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Occupancy thresholds of a worker, ascending in (0, 1].

    Source: ESJ, adaptive workload.
    """

    tau0: float = 0.1  # scale in at or below it
    tau1: float = 0.4  # target when the number of workers is chosen
    tau2: float = 0.8  # shed load above it
    tau3: float = 0.9  # scale out at or above it

    def __post_init__(self) -> None:
        named = (("0", 0.0), *((name, getattr(self, name)) for name in self.__slots__))
        for (below, low), (above, high) in pairwise(named):
            if not low < high:
                than = below if below == "0" else f"{below}, {low:g}"
                raise UsageError(f"{above} must be above {than} (got {high:g})")
        if self.tau3 > 1:
            raise UsageError(f"tau3 must be at most 1, a full worker (got {self.tau3:g})")

    @classmethod
    def of(cls, given: BufferSettings) -> "Thresholds":
        """The thresholds asked for; unread ones must be the usual ones."""
        read, texts = given.READ, given.tau.split(",")
        try:
            numbers = [float(part) for part in texts]
            if len(numbers) == len(read) < 4:
                tau1, tau2 = numbers[0] if len(numbers) > 1 else numbers[-1] / 2, numbers[-1]
                return cls(tau1 / 2, tau1, tau2, (1 + tau2) / 2)
            usual = astuple(cls())
            if unread := [at for at in range(4) if at not in read and numbers[at] != usual[at]]:
                raise UsageError(
                    f"T{unread[0]} has no effect here; give {','.join(f'T{at}' for at in read)} alone (got {given.tau})"
                )
            return cls(*numbers)
        except UsageError as error:
            raise SettingError(type(given), f"{{tau}}: {error}") from None
        except (IndexError, TypeError, ValueError):
            raise SettingError(
                type(given), f"{{tau}} takes up to four numbers, such as 0.1,0.4,0.8,0.9 (got {given.tau!r})"
            ) from None


@dataclass(frozen=True, slots=True)
class ShedFactor:
    """Drop probability of a worker by its occupancy, SF.

    Source: ESJ, adaptive workload: 0 below tau2, else B + (1 - B) (tau - tau2) / (1 - tau2); beyond 1, where the paper
    is silent, it is 1.
    """

    tau2: float = 0.8  # occupancy below which nothing is dropped, in (0, 1)
    min_drop: float = 0.0  # drop probability at tau2, B, in [0, 1]
    # its shape from there to 1 at a full worker; a name, or a function of [0, 1]
    drop_curve: DropCurve | Curve = DropCurve.LINEAR

    def __post_init__(self) -> None:
        if not 0 < self.tau2 < 1:
            raise UsageError(f"tau2 must be above 0 and below 1 (got {self.tau2:g})")
        if not 0 <= self.min_drop <= 1:
            raise UsageError(f"the minimum drop probability must be from 0 to 1 (got {self.min_drop:g})")

    def part(self, tau: Floats) -> Floats:
        """Drop probability at these occupancies, of the same shape."""
        tau = np.asarray(tau, np.float64)
        beyond = np.clip((tau - self.tau2) / (1 - self.tau2), 0.0, 1.0)
        curve = self.drop_curve
        risen = beyond**curve.exponent if isinstance(curve, DropCurve) else np.asarray(curve(beyond), np.float64)
        shed = np.clip(self.min_drop + (1 - self.min_drop) * risen, 0.0, 1.0)
        return np.where(tau < self.tau2, 0.0, np.where(tau >= 1, 1.0, shed))

    def table(self, capacity: int) -> Floats:
        """Drop probability by the number of buffered tuples, shape (capacity + 1,)."""
        return self.part(np.arange(capacity + 1) / capacity)


def through(points: Sequence[tuple[float, float]]) -> Curve:
    """A piecewise linear drop curve through points.

    Args:
        points: From the threshold to a full worker, such as (0, 0), (0.5, 0.1), (1, 1).
    """
    if not points or not all(0 <= x <= 1 and 0 <= y <= 1 for x, y in points):
        raise UsageError(f"a drop curve needs points in [0, 1] x [0, 1] (got {list(points)})")
    at, height = (np.array(side, np.float64) for side in zip(*points, strict=True))
    if not (np.diff(at) > 0).all():
        raise UsageError(f"the points of a drop curve must be ascending (got {list(points)})")
    return lambda beyond: np.interp(beyond, at, height)


@dataclass(frozen=True, slots=True)
class Overload:
    """Load shedding of a stage: a bounded buffer per worker."""

    factor: ShedFactor  # the drop probability by occupancy
    capacity_tuples: int  # W, the tuples that a worker buffers
    window_s: float  # how long a tuple is retained

    def __post_init__(self) -> None:
        if self.capacity_tuples < 1:
            raise UsageError(f"the buffer of a worker must hold at least 1 tuple (got {self.capacity_tuples})")
        if not 0 < self.window_s < np.inf:
            raise UsageError(f"the retention of tuples must be above 0 (got {self.window_s:g} s)")

    @classmethod
    def of(cls, given: BufferSettings, window_s: float | None = None) -> "Overload | None":
        """The buffer that was asked for; None without one.

        Args:
            window_s: Window of a join, which is then the retention.
        """
        if given.shed is None:
            return None
        capacity, at, retention = given.shed.partition("@")
        counted, asked = capacity.isdecimal() and len(capacity) < 8, type(given)
        if window_s is not None and (at or not counted):
            raise SettingError(
                asked,
                "{shed} takes only a number of rows with a join, such as 5000, since the window is the retention"
                f" (got {given.shed!r})",
            )
        if window_s is None:
            if not (at and counted):
                raise SettingError(asked, f"{{shed}} takes rows@retention, such as 5000@100ms (got {given.shed!r})")
            try:
                window_s = seconds_of(retention)
            except UsageError as error:
                raise SettingError(asked, f"{{shed}} {error}") from None
            if window_s == 0:
                raise SettingError(asked, f"{{shed}} must be above 0 (got {retention})")
        drops = (given.min_drop, given.drop_curve) if isinstance(given, SheddingSettings) else ()
        return cls(ShedFactor(Thresholds.of(given).tau2, *drops), int(capacity), window_s)
