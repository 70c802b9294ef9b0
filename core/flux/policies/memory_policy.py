"""The memory policy of Flux: the worker with the least memory to spare gives to the one with the most."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.flux.policies.load_policy import MIN_IMBALANCE
from adapt.core.stage.movement.controller import Move, Observation


@dataclass(frozen=True, slots=True)
class MemoryBalancing:
    """Evens out the memory that is to spare, e_i = available - the sizes of the partitions at i.

    The paper leaves open which pairs rest. Here a pair does if its donor has more than the mean to spare, or if all of
    the donor fits and the share of its memory that it uses is less than `min_imbalance` times that of the receiver; the
    first such pair ends the round, as it does in the load policy. Of equal partitions the last moves, since a worker
    short of memory writes its first ones first.

    Source: Flux, section 6.1.

    Attributes:
        min_imbalance: Least ratio of the shares of memory in use, at least 1.
    """

    min_imbalance: float = MIN_IMBALANCE

    def __post_init__(self) -> None:
        if not self.min_imbalance >= 1:
            raise UsageError(f"a least imbalance of {self.min_imbalance:g} is none; give 1 or more")

    def plan(self, observed: Observation) -> tuple[Move, ...]:
        """This round's moves: each worker gives or takes at most one partition, those in memory before those on disk."""
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
        """Whether a donor keeps what it has: all fits, and not much more of its memory is used than elsewhere.

        The shares of their memory that donor and receiver use are `gives` and `takes`; the excess is e_i.
        """
        return bool(excess == np.inf or (excess >= 0 and gives < self.min_imbalance * takes))


def leaving(observed: Observation, worker: int) -> NDArray[np.int64]:
    """The partitions of a worker in the order in which they leave it: those in memory first, the largest, the last."""
    owned = np.flatnonzero((observed.owners == worker) & (observed.state_bytes > 0))
    return owned[np.lexsort((-owned, -observed.state_bytes[owned], observed.on_disk[owned]))]


def excess_bytes(observed: Observation) -> NDArray[np.float64]:
    """e_i, negative where not all fits; shape (workers,)."""
    return np.asarray(observed.available_bytes - _used(observed))


def used_share(observed: Observation) -> NDArray[np.float64]:
    """The size of each worker's partitions over its memory, shape (workers,)."""
    return np.asarray(_used(observed) / observed.available_bytes)


def _used(observed: Observation) -> NDArray[np.float64]:
    return np.bincount(observed.owners, observed.state_bytes, observed.workers).astype(np.float64)
