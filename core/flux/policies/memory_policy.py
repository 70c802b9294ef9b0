"""Flux's memory policy: balances free memory."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.flux.policies.load_policy import MIN_IMBALANCE
from adapt.core.stage.movement.controller import Move, Observation


@dataclass(frozen=True, slots=True)
class MemoryBalancing:
    """Balances the free memory e_i of workers.

    e_i is the available memory minus the sizes of the partitions on worker i. The paper leaves open which pairs are
    skipped. Here a pair is skipped if its donor has more than the mean free memory, or if the donor's state fits and
    its memory utilization is less than `min_imbalance` times the receiver's; the first such pair ends the round, as in
    the load policy. Of equal partitions the last moves, since a worker short of memory writes its first ones first.

    Source: Flux, section 6.1.
    """

    min_imbalance: float = MIN_IMBALANCE  # smallest ratio of memory utilization that triggers a move, at least 1

    def __post_init__(self) -> None:
        if not self.min_imbalance >= 1:
            raise UsageError(f"min_imbalance must be at least 1 (got {self.min_imbalance:g})")

    def plan(self, observed: Observation) -> tuple[Move, ...]:
        """Moves of this round, at most one per worker."""
        excess, in_use = excess_bytes(observed), used_share(observed)
        ranking = np.argsort(excess, kind="stable")
        mean = excess.mean()
        moves = []
        for at in range(observed.workers // 2):
            donor, receiver = int(ranking[at]), int(ranking[-1 - at])
            if excess[donor] > mean or self.rests(excess[donor], in_use[donor], in_use[receiver]):
                break
            gap = excess[receiver] - excess[donor]
            owned = leaving(observed, donor)
            closer = owned[observed.state_bytes[owned] < gap]
            if len(closer):
                moves.append(Move(int(closer[0]), donor, receiver))
        return tuple(moves)

    def rests(self, excess: float, gives: float, takes: float) -> bool:
        """Whether a donor keeps its partitions.

        Its state fits, and its memory utilization is not much higher than the receiver's. `gives` and `takes` are the
        memory utilizations of donor and receiver; `excess` is e_i.
        """
        return bool(excess == np.inf or (excess >= 0 and gives < self.min_imbalance * takes))


def leaving(observed: Observation, worker: int) -> NDArray[np.int64]:
    """Partitions of a worker in the order in which they leave.

    In-memory ones come first; of those on disk, the ones with the least spilled input, which must be processed before
    they move. Then come larger ones, then later ones.
    """
    owned = np.flatnonzero((observed.owners == worker) & (observed.state_bytes > 0))
    waiting = np.where(observed.on_disk, observed.unprocessed, -1)[owned]
    return owned[np.lexsort((-owned, -observed.state_bytes[owned], waiting))]


def excess_bytes(observed: Observation) -> NDArray[np.float64]:
    """Free memory e_i, negative if the state does not fit, shape (workers,)."""
    return np.asarray(observed.available_bytes - _used(observed))


def used_share(observed: Observation) -> NDArray[np.float64]:
    """Memory utilization of each worker, shape (workers,)."""
    return np.asarray(_used(observed) / observed.available_bytes)


def _used(observed: Observation) -> NDArray[np.float64]:
    return np.bincount(observed.owners, observed.state_bytes, observed.workers).astype(np.float64)
