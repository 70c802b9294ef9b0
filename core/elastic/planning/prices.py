"""Prices of what a schedule of workers costs, in worker seconds."""

from dataclasses import dataclass

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.values import duration

GIB = 2.0**30

BLIND = 2
"""Control periods of the pool that a rescale costs by default: after one, DS2 ignores as many intervals as useless."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of late rows, pauses, moved state and rescales, in worker seconds.

    Attributes:
        target_s: Target latency, above which a row is late.
        late: Price of a late row, in multiples of the mean work of a row; rows that are shed or left are late, too.
        pause: Price of a second in which all partitions are paused; a part of them counts in proportion.
        moved: Price of a GiB of state that changes its worker.
        rescale: Price of a rescale, or of placing anew on as many workers.

    Raises:
        UsageError: a number is out of range.
    """

    target_s: float = 5.0
    late: float = 10.0
    pause: float = 1.0
    moved: float = 20.0
    rescale: float = 0.0

    def __post_init__(self) -> None:
        if not 0 < self.target_s < np.inf:
            raise UsageError(f"--target-latency must be above 0 (got {self.target_s:g} s)")
        for option in ("late", "pause", "moved", "rescale"):
            price = getattr(self, option)
            if not 0 <= price < np.inf:
                raise UsageError(f"--{option}-price must be finite and at least 0 (got {price:g})")

    def sentence(self) -> str:
        """What is in a cost."""
        return (
            f"Cost is worker time, {self.late:g} times the work of each row above {duration(self.target_s)},"
            f" {self.pause:g} s for each second in which all partitions are paused, {self.moved:g} s for each GiB"
            f" of state moved, and {self.rescale:g} s for each rescale"
        )


def usual_rescale_price(pool: int, period_s: float) -> float:
    """Default price of a rescale, in worker seconds."""
    return BLIND * pool * period_s
