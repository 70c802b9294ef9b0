"""Stalls: how long and how often the system stops running workers."""

import math
from dataclasses import dataclass

from adapt.core.errors import BadInput

MOST_QUANTILES = 1000


@dataclass(frozen=True, slots=True)
class Stalls:
    """What the system of a machine does to threads that want to run.

    Attributes:
        workers: Number of threads that ran at the same time.
        per_s: Stalls in a second in which a thread runs.
        us: Lengths of the stalls in microseconds: quantiles at equal steps of probability, ascending.
        late_us: How late idle workers are, who sleep until shortly before the next row; likewise.

    Raises:
        BadInput: a value is out of range.
    """

    workers: int
    per_s: float
    us: tuple[float, ...]
    late_us: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.workers < 1 or not (math.isfinite(self.per_s) and 0 <= self.per_s <= 1e6):
            got = f"{self.workers} and {self.per_s:g}"
            raise BadInput(f"stalls need workers of at least 1, and per_s from 0 to 1e6 (got {got})")
        for name, values in (("us", self.us), ("late_us", self.late_us)):
            in_range = len(values) <= MOST_QUANTILES and all(0 <= one <= 1e9 for one in values)
            if not in_range or sorted(values) != [*values]:
                raise BadInput(f"{name} must have at most {MOST_QUANTILES} ascending numbers from 0 to 1e9")
        if self.per_s and not self.us:
            raise BadInput("us must have the lengths of the stalls")

    @property
    def lost(self) -> float:
        """Share of the time that the system takes from a thread."""
        taken = self.per_s * sum(self.us) / len(self.us) / 1e6 if self.us else 0.0
        return taken / (1 + taken)
