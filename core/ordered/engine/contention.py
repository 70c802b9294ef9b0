"""What workers cost each other in the model: assumptions, said with every result, never fitted to one."""

import math
from dataclasses import dataclass, fields

from adapt.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class Contention:
    """The constants of the model; all 0 is a machine on which workers never hinder each other.

    Attributes:
        jitter: Share of a tuple's cost that is drawn from an exponential distribution of the same mean, 0 to 1.
        crowding_us: Added to a tuple by each other worker on its operator, as cache lines move between them (kappa).
        send_us: Of a batch in the section in which only one worker sends (d).
        output_us: Of an output in there (e).
        hand_over_us: From a lock's release to the next worker that waits for it (h); with `lock` only.

    Raises:
        UsageError: one is out of its range.
    """

    jitter: float = 0.0
    crowding_us: float = 0.0
    send_us: float = 0.0
    output_us: float = 0.0
    hand_over_us: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.jitter <= 1:
            raise UsageError(f"the jitter is a share of the cost, from 0 to 1, not {self.jitter:g}")
        for field in fields(self):
            value = getattr(self, field.name)
            if not (math.isfinite(value) and 0 <= value <= 1e6):
                raise UsageError(f"{field.name} is from 0 to 1e6 microseconds, not {value:g}")


MEASURED = Contention(crowding_us=0.15, send_us=0.05, hand_over_us=0.15)
"""What one machine of two cores showed: an uncontended tuple took 0.045 us of CPU, one that two workers contended for
0.196 us. How that goes on with more workers is assumed: each adds as much as the second.

Source: ordered streams, measured for this program.
"""


@dataclass(frozen=True, slots=True)
class Modelled:
    """What a model knows beside the chain and the settings.

    Attributes:
        costs_us: Of a tuple, by operator; None where each tuple brings its own.
        selectivities: Outputs a tuple, by operator.
        contention: The constants.
        gap_us: From the arrival of a tuple to that of the next; 0, all are there at the start.
        seed: Of what is drawn; below 2^62.
    """

    costs_us: tuple[float | None, ...]
    selectivities: tuple[float, ...]
    contention: Contention
    gap_us: float
    seed: int
