"""Memory and hybrid policies with several moves per round.

Not in the paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.flux.policies.load_policy import (
    MIN_COLLECTION_S,
    MemoryBalancing,
    PacedController,
    excess_bytes,
    leaving,
    used_share,
)
from adapt.core.flux.policies.settling import SettlingController
from adapt.core.stage.movement.controller import Move, Observation, Round

MOST_A_WORKER = 8


@dataclass(frozen=True, slots=True)
class SeveralMemoryMoves:
    """Several moves per round that balance free memory.

    A worker short of memory reads messages only between disk accesses, so with one move per round, as in the paper,
    most time is spent waiting for rounds. Producers hold back tuples of moving partitions, so a round cannot move
    everything either. Receivers are filled up to their limit only: with less memory than state, balancing would make
    all workers spill.
    """

    pairs: MemoryBalancing = field(default_factory=MemoryBalancing)  # thresholds of the memory policy
    most_per_worker: int = MOST_A_WORKER  # largest number of partitions that a worker gives per round, at least 1

    def __post_init__(self) -> None:
        if self.most_per_worker < 1:
            raise UsageError(f"most_per_worker must be at least 1 (got {self.most_per_worker})")

    def plan(self, observed: Observation) -> tuple[Move, ...]:
        """Moves of this round; a worker gives, or takes, or neither."""
        excess, in_use = excess_bytes(observed), used_share(observed)
        mean = excess.mean()
        gives, takes = excess < mean, excess > mean
        given = np.zeros(observed.workers, np.int64)
        owned = {worker: leaving(observed, worker).tolist() for worker in np.flatnonzero(gives).tolist()}
        moves: list[Move] = []
        while gives.any() and takes.any():
            donor = int(np.argmin(np.where(gives, excess, np.inf)))
            receiver = int(np.argmax(np.where(takes, excess, -np.inf)))
            if excess[donor] > mean or self.pairs.rests(excess[donor], in_use[donor], in_use[receiver]):
                break
            most = min(excess[receiver] - excess[donor] - 1, excess[receiver])
            closer = next((one for one in owned[donor] if observed.state_bytes[one] <= most), None)
            if closer is None:
                gives[donor] = False
                continue
            owned[donor].remove(closer)
            moves.append(Move(closer, donor, receiver))
            for worker, more in ((donor, -observed.state_bytes[closer]), (receiver, observed.state_bytes[closer])):
                excess[worker] -= more
                in_use[worker] += more / observed.available_bytes[worker]
            given[donor] += 1
            gives[donor] = given[donor] < self.most_per_worker
        return tuple(moves)


class SeveralMemoryController:
    """Balances memory while any partition is on disk, else load.

    Rounds for memory need no statistics, so their collection time does not grow with the duration of moves.
    """

    def __init__(
        self, memory: SeveralMemoryMoves, load: SettlingController | None, min_collection_s: float = MIN_COLLECTION_S
    ) -> None:
        """Start a controller for one run.

        Args:
            memory: Policy while any partition is on disk, and always without `load`.
            load: Policy otherwise; it should respect memory limits.
        """
        self._memory, self._load = memory, load
        self._paced = PacedController(memory, min_collection_s)
        self._by_load = False

    def collection_s(self, previous: Round | None) -> float:
        """Collection time: the minimum after moves for memory."""
        return self._paced.collection_s(previous if self._by_load else None)

    def plan(self, observed: Observation) -> Sequence[Move]:
        """Moves of this round."""
        if self._load is None or observed.on_disk.any():
            self._by_load = False
            return self._memory.plan(observed)
        self._by_load = True
        return self._load.plan(observed)
