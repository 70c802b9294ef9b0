"""The interface of the simulators: one tick at a time."""

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adapt.core.arrays import Floats
from adapt.core.fit.network.wiring import Indices, Wiring

LATE = 10
"""Ticks after the arrival of a row in which its results count in the score."""


@dataclass(frozen=True, slots=True, eq=False)
class Offered:
    """The rows that arrive during a tick."""

    begin_us: int  # start, in microseconds since the start of the run
    end_us: int  # end, exclusive
    at_us: NDArray[np.int64]  # arrival of each row, ascending; shape (rows,)
    inputs: Indices  # the input that reads each row; shape (rows,)

    @property
    def tick_s(self) -> float:
        """Length of the tick."""
        return (self.end_us - self.begin_us) / 1e6

    def after(self, begin_us: int) -> "Offered":
        """The same with times since another one."""
        return replace(
            self, begin_us=self.begin_us - begin_us, end_us=self.end_us - begin_us, at_us=self.at_us - begin_us
        )


@dataclass(frozen=True, slots=True, eq=False)
class Tick:
    """What happened in a tick; amounts are tuples, by arc.

    On every arc, summed from the start: offered = dropped + queue_drops + served + queued.
    """

    offered: Floats  # emitted by the source of each arc, shape (arcs,)
    dropped: Floats  # dropped by plan
    queue_drops: Floats  # dropped by a node with a full queue
    served: Floats  # processed by the operator, or read at an output
    # results of the operator at the end of each arc, of windows that lost a tuple to a full queue after these were
    # emitted; they do not count in the score
    withdrawn: Floats
    queued: Floats  # waiting or being processed at a link or node, at the end
    busy_s: Floats  # CPU or transfer time of each node, then link; shape (resources,)
    work_s: Floats  # CPU time at its node for the tuples of each arc
    score: float  # weighted tuples/s at the outputs, without those that come too late
    latency_s: float | None  # mean time from arrival of a row to its results; None without results, or for a fluid flow
    latency_max_s: float | None  # the longest such time
    wait_s: Floats  # time to drain the queue of each node, then link, at the end; shape (resources,)


class Running(Protocol):
    """A simulator of a network, tick by tick."""

    def run(self, offered: Offered, keeps: Floats) -> Tick:
        """Simulate a tick with these shares kept on the arcs, shape (arcs,)."""
        ...

    def follow(self, wiring: Wiring) -> None:
        """Change the true costs and selectivities, from the next tick on."""
        ...

    def latencies(self) -> NDArray[np.int64]:
        """Results per latency bin of `core.histogram`; empty for a fluid flow."""
        ...
