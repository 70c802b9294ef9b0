"""What a controller is told, and what it asks for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Move:
    """One partition goes from one worker to another."""

    partition: int
    donor: int
    receiver: int


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """What the consumers report at the end of a collection.

    Attributes:
        collected_s: How long each worker collected, shape (workers,).
        idle_s: How long of that it waited for input, shape (workers,).
        processed: Tuples of each partition in that time, or what they take where partitions of several stages are seen
            together; shape (partitions,).
        owners: The worker of each partition, shape (partitions,).
        state_bytes: The state of each partition, shape (partitions,).
        on_disk: Which partitions are spilled, shape (partitions,).
        available_bytes: Memory that each worker may use for state, shape (workers,).
        at_s: The time.
    """

    collected_s: NDArray[np.float64]
    idle_s: NDArray[np.float64]
    processed: NDArray[np.int64]
    owners: NDArray[np.int32]
    state_bytes: NDArray[np.int64]
    on_disk: NDArray[np.bool_]
    available_bytes: NDArray[np.float64]
    at_s: float = 0.0

    @property
    def workers(self) -> int:
        """n."""
        return len(self.collected_s)

    @property
    def utilization(self) -> NDArray[np.float64]:
        """u_i, the share of the time in which each worker was not waiting, (delta - idle) / delta; shape (workers,).

        Source: Flux, section 5.3.
        """
        return np.asarray(1 - self.idle_s / self.collected_s)

    @property
    def processed_by_worker(self) -> NDArray[np.int64]:
        """N_i, shape (workers,)."""
        return np.bincount(self.owners, self.processed, self.workers).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Round:
    """A collection and the moves that followed.

    Attributes:
        collection_s: How long statistics were collected.
        moves: What was decided.
        moving_s: How long it took to carry out; 0 where nothing was to move.
    """

    collection_s: float
    moves: tuple[Move, ...]
    moving_s: float


class Controller(Protocol):
    """Decides in rounds which partitions move."""

    def collection_s(self, previous: Round | None) -> float:
        """How long to collect after a round, or at the start."""

    def plan(self, observed: Observation) -> Sequence[Move]:
        """The moves of this round. A partition is named once, with its owner as the donor."""
