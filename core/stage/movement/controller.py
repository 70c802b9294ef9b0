"""Interface of rebalancing controllers: observations and moves."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Move:
    """A move of one partition to another worker."""

    partition: int
    donor: int
    receiver: int


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """Statistics of a collection round, as workers reported them.

    Attributes:
        collected_s: Collection time of each worker, shape (workers,).
        idle_s: Idle seconds of each worker in that time, shape (workers,).
        processed: Processed tuples of each partition, or their work in a common unit for a DAG; shape
            (partitions,).
        owners: Worker of each partition, shape (partitions,).
        state_bytes: State of each partition, shape (partitions,).
        on_disk: Whether each partition is spilled, shape (partitions,).
        unprocessed: Spilled tuples of each partition, shape (partitions,).
        available_bytes: Memory limit of each worker, shape (workers,).
        at_s: Current simulated time.
        in_flight: Tuples of each partition sent and not processed or spilled, shape (partitions,); None, not known.
        numbers: Worker number of each of these workers where others are down; empty, their ranks are their numbers.
        in_all: Number of all workers where some may be down; else 0.
    """

    collected_s: NDArray[np.float64]
    idle_s: NDArray[np.float64]
    processed: NDArray[np.int64]
    owners: NDArray[np.int32]
    state_bytes: NDArray[np.int64]
    on_disk: NDArray[np.bool_]
    unprocessed: NDArray[np.int64]
    available_bytes: NDArray[np.float64]
    at_s: float = 0.0
    in_flight: NDArray[np.int64] | None = None
    numbers: tuple[int, ...] = ()
    in_all: int = 0

    @property
    def workers(self) -> int:
        """Number of workers."""
        return len(self.collected_s)

    @property
    def utilization(self) -> NDArray[np.float64]:
        """Utilization u_i of each worker, (delta - idle) / delta; shape (workers,).

        Source: Flux, section 5.3.
        """
        return np.asarray(1 - self.idle_s / self.collected_s)

    @property
    def processed_by_worker(self) -> NDArray[np.int64]:
        """Processed tuples of each worker, N_i, shape (workers,)."""
        return np.bincount(self.owners, self.processed, self.workers).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Round:
    """A collection and the moves that followed.

    Attributes:
        collection_s: Collection time.
        moves: The decided moves.
        moving_s: Duration of the moves; 0 without any.
    """

    collection_s: float
    moves: tuple[Move, ...]
    moving_s: float


class Controller(Protocol):
    """Rebalancing policy: decides in rounds which partitions move."""

    def collection_s(self, previous: Round | None) -> float:
        """Collection time of the next round; `previous` is None at the start."""

    def plan(self, observed: Observation) -> Sequence[Move]:
        """Moves of this round, at most one per partition."""
