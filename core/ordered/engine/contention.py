"""Contention, scheduling and stalls that slow the model's workers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

from adapt.core.errors import BadInput, UsageError
from adapt.core.ordered.chain.names import Heuristic


@dataclass(frozen=True, slots=True)
class Contention:
    """Time of contention and scheduling in the model; 0 for none.

    Attributes:
        jitter: Share of a tuple's cost, 0 to 1, that is drawn from an exponential distribution with the same mean.
        contention_us: Added to a tuple's cost by each other worker on its operator, since cache lines move between
            cores (kappa).
        send_us: To send a batch, in the section that one worker at a time may enter (d).
        output_us: To send one output in that section (e).
        lock_handover_us: From a lock's release until the next waiting worker holds it (h); with `lock` only.
        query_us: For a worker to ask the scheduler for an operator, enter it, and leave it after its slice (section 6).
        query_operator_us: Added to that by each operator of the chain.
        query_contention_us: Added to that by each other worker that has work.

    Raises:
        UsageError: a value is out of range.
    """

    jitter: float = 0.0
    contention_us: float = 0.0
    send_us: float = 0.0
    output_us: float = 0.0
    lock_handover_us: float = 0.0
    query_us: float = 0.0
    query_operator_us: float = 0.0
    query_contention_us: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.jitter <= 1:
            raise UsageError(f"jitter must be between 0 and 1 (got {self.jitter:g})")
        for field in fields(self):
            value = getattr(self, field.name)
            if not (math.isfinite(value) and 0 <= value <= 1e6):
                raise UsageError(f"{field.name} must be between 0 and 1e6 (got {value:g})")


_QUERIES_US: Mapping[Heuristic, tuple[float, float]] = {
    Heuristic.CT: (0.093, 0.0025),
    Heuristic.LP: (0.092, 0.0013),
    Heuristic.ET: (0.088, 0.0039),
    Heuristic.QST: (0.09, 0.0039),
    Heuristic.CT_LITERAL: (0.092, 0.0022),
}
"""Time of a query, and what each operator of the chain adds, by `adapt calibrate ordered` on a machine with two cores,
where the other worker added nothing."""


def assumed_contention(heuristic: Heuristic = Heuristic.CT) -> Contention:
    """What was measured on a machine with two cores.

    A tuple of one worker took 0.045 us of CPU, and one that two workers contend for 0.196 us. Each further worker is
    assumed to add as much as the second.

    Source: ordered streams, measured for this program.
    """
    query_us, operator_us = _QUERIES_US[heuristic]
    return Contention(
        contention_us=0.15,
        send_us=0.05,
        lock_handover_us=0.15,
        query_us=query_us,
        query_operator_us=operator_us,
    )


MOST_QUANTILES = 1000


@dataclass(frozen=True, slots=True)
class Stalls:
    """Stalls of threads by the system of a machine.

    Attributes:
        workers: Number of threads that ran at the same time.
        per_s: Stalls in a second in which a thread runs.
        us: Lengths of the stalls in microseconds: quantiles at equal steps of probability, ascending.
        late_us: How late idle workers are, who sleep until shortly before the next row; likewise.
        spans: Spans of time in which stalls were watched; 0 if that is not known.
        rare_us: The longest stall of each span with one that is not among `us`, since it is more than twice as long as
            all stalls of most spans; ascending.

    Raises:
        BadInput: a value is out of range.
    """

    workers: int
    per_s: float
    us: tuple[float, ...]
    late_us: tuple[float, ...]
    spans: int = 0
    rare_us: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.workers < 1 or not (math.isfinite(self.per_s) and 0 <= self.per_s <= 1e6):
            got = f"{self.workers} and {self.per_s:g}"
            raise BadInput(f"stalls need workers of at least 1, and per_s from 0 to 1e6 (got {got})")
        for name, values in (("us", self.us), ("late_us", self.late_us), ("rare_us", self.rare_us)):
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
