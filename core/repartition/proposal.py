"""Proposed plan, and what it would change."""

from dataclasses import dataclass

from adapt.core.arrays import Floats
from adapt.core.keys.partitioner import Partitioner
from adapt.core.partitioning.measures.migration import Migration


@dataclass(frozen=True, slots=True)
class Proposal:
    """A plan to adopt."""

    partitioner: Partitioner
    change: Migration  # the keys and state of the window that move for it
    loads: Floats  # loads of the channels over the window, shape (3, channels)
    build_s: float | None  # time to build it; None without a clock
