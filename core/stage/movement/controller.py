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
    """Statistics of a collection round, as workers reported them."""

    collected_s: NDArray[np.float64]  # collection time of each worker, shape (workers,)
    idle_s: NDArray[np.float64]  # idle seconds of each worker in that time, shape (workers,)
    # processed tuples of each partition, or their work in a common unit for a DAG; shape (partitions,)
    processed: NDArray[np.int64]
    owners: NDArray[np.int32]  # worker of each partition, shape (partitions,)
    state_bytes: NDArray[np.int64]  # state of each partition, shape (partitions,)
    on_disk: NDArray[np.bool_]  # whether each partition is spilled, shape (partitions,)
    unprocessed: NDArray[np.int64]  # spilled tuples of each partition, shape (partitions,)
    available_bytes: NDArray[np.float64]  # memory limit of each worker, shape (workers,)
    at_s: float = 0.0  # current simulated time
    # tuples of each partition sent and not processed or spilled, shape (partitions,); None, not known
    in_flight: NDArray[np.int64] | None = None
    # worker number of each of these workers where others are down; empty, their ranks are their numbers
    numbers: tuple[int, ...] = ()
    in_all: int = 0  # number of all workers where some may be down; else 0

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
    """A collection and the moves that followed."""

    collection_s: float  # collection time
    moves: tuple[Move, ...]  # the decided moves
    moving_s: float  # duration of the moves; 0 without any


class Controller(Protocol):
    """Rebalancing policy: decides in rounds which partitions move."""

    def collection_s(self, previous: Round | None) -> float:
        """Collection time of the next round; `previous` is None at the start."""

    def plan(self, observed: Observation) -> Sequence[Move]:
        """Moves of this round, at most one per partition."""
