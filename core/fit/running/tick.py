"""What a running network did in a tick, and what runs it."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices


@dataclass(frozen=True, slots=True, eq=False)
class Offered:
    """What comes in during a tick.

    Attributes:
        begin_us: From, in microseconds since the start.
        end_us: To; what comes then is of the next tick.
        at_us: When each row comes, never falling; shape (rows,).
        inputs: The input that each row is bound to; shape (rows,).
    """

    begin_us: int
    end_us: int
    at_us: NDArray[np.int64]
    inputs: Indices

    @property
    def tick_s(self) -> float:
        """How long it is."""
        return (self.end_us - self.begin_us) / 1e6


@dataclass(frozen=True, slots=True, eq=False)
class Tick:
    """What happened between two times; amounts are tuples, by arc.

    On every arc, from the start on: offered = dropped + queue_drops + served + queued.

    Attributes:
        offered: What the source of each arc gave, shape (arcs,).
        dropped: By plan.
        queue_drops: By a node whose queue is too full.
        served: Worked on by the operator, or read at an output.
        queued: Waiting at a link or a node, or being worked on, at the end.
        busy_s: CPU or transfer time of each node, then link; shape (resources,).
        score: Weighted tuples/s at the outputs.
        latency_s: Mean from when a row comes until what is made of it is read; None where nothing is, or fluid flows.
        latency_max_s: The longest, likewise.
        wait_s: Time that each node, then link, needs for what waits at the end; shape (resources,).
    """

    offered: Floats
    dropped: Floats
    queue_drops: Floats
    served: Floats
    queued: Floats
    busy_s: Floats
    score: float
    latency_s: float | None
    latency_max_s: float | None
    wait_s: Floats


class Running(Protocol):
    """Takes what comes through the network, tick by tick."""

    def run(self, offered: Offered, keeps: Floats) -> Tick:
        """Let a tick happen with these shares kept on the arcs, shape (arcs,)."""
        ...

    def latencies(self) -> NDArray[np.int64]:
        """How many results had a latency in each bin of `core.histogram`; empty where fluid flows."""
        ...
