"""Rebalancing controllers: observations, moves, and the state moved.

Source: Flux, section 5.2.

Source: Flux, section 5.1, getPartitionState and installPartitionState.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.engine.queues import Action
from adapt.core.stage.records.arrays import NONE, Arrays, Records


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


STEPS = ("decided", "paused", "quiesced", "extracted", "received", "installed", "restarted")
"""Steps of a move, in order."""


@dataclass(slots=True)
class Moved:
    """Log entry of a move."""

    move: Move
    state_bytes: int  # state moved: its size at extraction, or at the decision until then
    times_s: dict[str, float] = field(default_factory=dict)  # time of each finished step of `STEPS`


@dataclass(slots=True, eq=False)
class Course:
    """A move in progress."""

    moved: Moved  # its log entry
    done: Action  # called when it is finished or aborted
    copies: bool  # whether it creates a standby replica and the donor keeps the partition
    donor_lost: bool  # whether the donor has crashed since the decision
    receiver_lost: bool  # whether the receiver has
    buried: bool = False  # whether the donor was declared dead and the receiver continues without it
    over: bool = False  # whether it was aborted
    promotes: bool = False  # whether the receiver has the replica, so that owner and replica change places
    is_expected: bool = False  # whether the receiver has read the order, and so waits for the state

    @property
    def state_survives(self) -> bool:
        """Whether a live donor or receiver has the state."""
        received = "received" in self.moved.times_s and not self.promotes
        return not self.donor_lost or (received and not self.receiver_lost)


@dataclass(frozen=True, slots=True, eq=False)
class PartitionState:
    """State of a partition: windows of groups, or a join's rows."""

    windows: Records  # position and sum of each group's window, shape (groups of the partition,)
    values: NDArray[np.int64]  # values in the windows, shape (groups of the partition, window)
    newest: NDArray[np.int64]  # for a join, the head of each list of rows, shape (groups of the partition, 2)

    @property
    def needed(self) -> NDArray[np.bool_]:
        """Whether the next answer of each group depends on its window."""
        others = np.arange(self.values.shape[1]) != self.windows["place"][:, None]
        return np.asarray((others & (self.values != 0)).any(axis=1))


class States:
    """Extracts and installs states of partitions, of owners and standby replicas."""

    def __init__(self, arrays: Arrays) -> None:
        """View of the arrays of a stage."""
        self._arrays = arrays
        self._window = int(arrays.world["window"])
        partitions = arrays["group"]["partition"]
        self._all = len(partitions)
        self._groups = np.argsort(partitions, kind="stable")
        self._firsts = np.searchsorted(partitions[self._groups], np.arange(int(arrays.world["partitions"]) + 1))

    def copy(self, partition: int, twin: bool = False) -> PartitionState:
        """Copy the state of a partition."""
        groups = self._groups_of(partition, twin)
        windows, past = self._arrays["window"], self._arrays["past"].reshape(-1, max(1, self._window))
        return PartitionState(windows[groups], past["value"][groups], self._newest()[self._joined_of(partition)])

    def take(self, partition: int, twin: bool = False) -> PartitionState:
        """Extract the state of a partition and clear it."""
        taken = self.copy(partition, twin)
        groups = self._groups_of(partition, twin)
        self._arrays["window"][groups] = 0
        self._arrays["past"].reshape(-1, max(1, self._window))[groups] = 0
        self._newest()[self._joined_of(partition)] = NONE
        return taken

    def put(self, partition: int, state: PartitionState, twin: bool = False) -> None:
        """Install the state of a partition, overwriting."""
        groups = self._groups_of(partition, twin)
        self._arrays["window"][groups] = state.windows
        self._arrays["past"].reshape(-1, max(1, self._window))["value"][groups] = state.values
        self._newest()[self._joined_of(partition)] = state.newest

    def groups_of(self, partition: int) -> NDArray[np.int64]:
        """The groups of a partition."""
        return self._groups[self._firsts[partition] : self._firsts[partition + 1]]

    def _newest(self) -> NDArray[np.int64]:
        """List heads by group and side."""
        return self._arrays["newest"]["at"].reshape(-1, 2)

    def _joined_of(self, partition: int) -> NDArray[np.int64]:
        """Groups with lists of a join."""
        return self.groups_of(partition) if self._arrays.world["joins"] else np.empty(0, np.int64)

    def _groups_of(self, partition: int, twin: bool) -> NDArray[np.int64]:
        """Positions of the windows of a partition."""
        if self._window == 0:
            return np.empty(0, np.int64)
        return self.groups_of(partition) + (self._all if twin else 0)
