"""What a run of a chain by workers measured."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapt.core.ordered.chain.bound import Words
from adapt.core.ordered.engine.reference import Egress


@dataclass(frozen=True, slots=True, eq=False)
class OperatorTally:
    """Counters of one operator, over all workers."""

    name: str
    inputs: int  # tuples read, without punctuations
    outputs: int  # tuples sent on, without punctuations
    partition_loads: NDArray[np.int64]  # tuples by partition; shape (partitions,)
    busy_ns: int = 0  # time that workers spent on it, summed, in nanoseconds
    delegated: int = 0  # tuples delegated to the worker inside their partition
    retries: int = 0  # attempts to put outputs into a full ring buffer
    blocked: int = 0  # times that sending stopped because the next work queue was full
    overlaps: int = 0  # times that a worker entered a partition with another inside; counted by checked runs, always 0
    disorders: int = 0  # tuples that reached a partition after a later one; counted by checked runs, always 0
    fullest: int = 0  # most tuples of the ring buffer in use, from the next to be sent to the last claimed
    # chunks by the bit length of that number when they were claimed; shape (32,)
    in_use: NDArray[np.int64] = field(default_factory=lambda: np.zeros(32, np.int64))
    # time that workers spent blocked, in nanoseconds: with `retry` until their outputs had room in the ring buffer,
    # with `lock` until they had the lock. It is part of `busy_ns`
    waited_ns: int = 0
    ring_buffer: int = 0  # size of the ring buffer, which `retry` may make larger than the settings
    slices: int = 0  # slices that workers began, each after they asked the scheduler


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """Time stamps of the timed tuples, in serial order.

    In nanoseconds, each of shape (timed,).
    """

    fed: NDArray[np.int64]  # when the tuple was to arrive; without arrival times, when it entered the first work queue
    entered: NDArray[np.int64]  # when the first operator started on it
    left: NDArray[np.int64]  # when the last of its outputs left the chain, or its place holder if it was dropped
    # how late an idle worker of threads took it in, 0 while workers were busy; empty without arrival times
    lag: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    # when the first operator was done with it, in a model; empty on threads
    served: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    # the worker that ran that, likewise
    worker: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def processing_s(self) -> NDArray[np.float64]:
        """Processing latency in seconds.

        Of the tuples between the 20th and the 80th percentile of the run.

        Source: ordered streams, section 7.
        """
        return self._middle(self.left - self.entered)

    def wait_s(self) -> NDArray[np.float64]:
        """Wait in the first work queue in seconds, of the same tuples."""
        return self._middle(self.entered - self.fed)

    def end_to_end_s(self) -> NDArray[np.float64]:
        """Latency in seconds, including the wait in the first work queue.

        Otherwise as `processing_s`.
        """
        return self._middle(self.left - self.fed)

    def _middle(self, ns: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(ns[len(ns) // 5 : len(ns) - len(ns) // 5] / 1e9)


@dataclass(frozen=True, slots=True, eq=False)
class WorkersRun:
    """Result of a run by workers."""

    egress: Egress  # count and hash of the output; equal to that of the serial run if the run was ordered
    elapsed_s: float  # from the start of the workers until the last one ends
    operators: tuple[OperatorTally, ...]  # counters by place in the chain
    marks: Marks  # the timed tuples
    kept: Words  # the first output tuples, shape (kept, fields)
    # tuples by worker and operator, without punctuations; shape (workers used, operators)
    served: NDArray[np.int64] = field(default_factory=lambda: np.zeros((0, 0), np.int64))
