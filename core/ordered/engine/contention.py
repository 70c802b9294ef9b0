"""Contention and scheduling that slow the model's workers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.names import Heuristic


@dataclass(frozen=True, slots=True)
class Contention:
    """Time of contention and scheduling in the model; 0 for none."""

    # share of a tuple's cost, 0 to 1, that is drawn from an exponential distribution with the same mean
    jitter: float = 0.0
    # added to a tuple's cost by each other worker on its operator, since cache lines move between cores (kappa)
    contention_us: float = 0.0
    send_us: float = 0.0  # to send a batch, in the section that one worker at a time may enter (d)
    output_us: float = 0.0  # to send one output in that section (e)
    lock_handover_us: float = 0.0  # from a lock's release until the next waiting worker holds it (h); with `lock` only
    # for a worker to ask the scheduler for an operator, enter it, and leave it after its slice (section 6)
    query_us: float = 0.0
    query_operator_us: float = 0.0  # added to that by each operator of the chain
    query_contention_us: float = 0.0  # added to that by each other worker that has work

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
"""Time of a query, and what each operator of the chain adds, measured on a machine with two cores,
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


@dataclass(frozen=True, slots=True)
class Modeled:
    """Inputs of a model, in addition to the chain and the settings."""

    costs_us: tuple[float | None, ...]  # of a tuple by operator; None where each tuple has its own
    selectivities: tuple[float, ...]  # outputs per tuple, by operator
    contention: Contention
    seed: int  # below 2^62
