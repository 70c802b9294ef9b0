"""Contention between workers of the model: assumptions, printed with every result."""

import math
from dataclasses import dataclass, fields

from adapt.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Contention:
    """Time that workers cost each other in the model; 0 for none.

    Attributes:
        jitter: Share of a tuple's cost, 0 to 1, that is drawn from an exponential distribution with the same mean.
        contention_us: Added to a tuple's cost by each other worker on its operator, since cache lines move between
            cores (kappa).
        send_us: To send a batch, in the section that one worker at a time may enter (d).
        output_us: To send one output in that section (e).
        lock_handover_us: From a lock's release until the next waiting worker holds it (h); with `lock` only.

    Raises:
        UsageError: a value is out of range.
    """

    jitter: float = 0.0
    contention_us: float = 0.0
    send_us: float = 0.0
    output_us: float = 0.0
    lock_handover_us: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.jitter <= 1:
            raise UsageError(f"jitter must be between 0 and 1 (got {self.jitter:g})")
        for field in fields(self):
            value = getattr(self, field.name)
            if not (math.isfinite(value) and 0 <= value <= 1e6):
                raise UsageError(f"{field.name} must be between 0 and 1e6 (got {value:g})")


MEASURED = Contention(contention_us=0.15, send_us=0.05, lock_handover_us=0.15)
"""Contention measured on a machine with two cores: 0.045 us of CPU for a tuple of one worker, 0.196 us for one that
two workers contend for. Each further worker is assumed to add as much as the second.

Source: ordered streams, measured for this program.
"""
