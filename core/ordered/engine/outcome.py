"""What a run of a chain by workers measured."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.ordered.chain.bound import Words
from adapt.core.ordered.engine.serial import Egress


@dataclass(frozen=True, slots=True, eq=False)
class OperatorTally:
    """What workers counted of one operator.

    Attributes:
        inputs: Tuples it read, punctuations not counted.
        outputs: Tuples it gave, likewise.
        busy_ns: Time of all workers spent on it, in nanoseconds.
        delegated: Tuples left to the worker that was inside their partition.
        retries: Times that outputs were offered to a ring without room for them.
        blocked: Times that a full worklist behind it ended sending.
        overlaps: Times that a worker entered a partition with another inside; counted by checked runs, and 0.
        disorders: Tuples that came to a partition after a later one; counted by checked runs, and 0.
        fullest: The most tuples of the ring in use, from the next to be sent to the last claimed.
        in_use: Batches by the bit length of that number when they were claimed; shape (32,).
        partition_loads: Tuples by partition; shape (partitions,).
    """

    name: str
    inputs: int
    outputs: int
    busy_ns: int
    delegated: int
    retries: int
    blocked: int
    overlaps: int
    disorders: int
    fullest: int
    in_use: NDArray[np.int64]
    partition_loads: NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Marks:
    """Timed tuples in serial order, in nanoseconds of one clock; each of shape (timed,).

    Attributes:
        fed: When it came into the worklist of the first operator.
        entered: When the first operator began with it.
        left: When the last of its outputs, or what stands for it where it was dropped, left the chain.
    """

    fed: NDArray[np.int64]
    entered: NDArray[np.int64]
    left: NDArray[np.int64]

    def processing_s(self) -> NDArray[np.float64]:
        """Processing latency of those between the 20th and the 80th hundredth of the run, in seconds.

        Source: ordered streams, section 7.
        """
        return self._middle(self.left - self.entered)

    def end_to_end_s(self) -> NDArray[np.float64]:
        """As `processing_s`, with the time in the first worklist."""
        return self._middle(self.left - self.fed)

    def _middle(self, ns: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.asarray(ns[len(ns) // 5 : len(ns) - len(ns) // 5] / 1e9)


@dataclass(frozen=True, slots=True, eq=False)
class WorkersRun:
    """A run by workers.

    Attributes:
        egress: What left the chain; that of the serial run, if the run was ordered.
        elapsed_s: From the start of the workers to the end of the last one.
        operators: By place in the chain.
        marks: The timed tuples.
        kept: The first tuples that left, shape (kept, fields).
    """

    egress: Egress
    elapsed_s: float
    operators: tuple[OperatorTally, ...]
    marks: Marks
    kept: Words
