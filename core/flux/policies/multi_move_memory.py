"""Several moves a round where memory is short, and then where load is uneven. Not in the paper."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.flux.policies.memory_policy import MemoryBalancing, excess_bytes, leaving, used_share
from adapt.core.flux.policies.round_controller import MIN_COLLECTION_S, PacedController
from adapt.core.flux.policies.settling import SettlingController
from adapt.core.stage.movement.controller import Move, Observation, Round

MOST_A_WORKER = 8


@dataclass(frozen=True, slots=True)
class SeveralMemoryMoves:
    """The worker shortest of memory gives to the one with the most, as it is after the moves so far.

    A worker that is short of memory reads its messages between two accesses to its disk, so that with one move a round,
    as in the paper, most of the time goes by waiting for rounds. What moves is held back by producers meanwhile, so
    that a round cannot move everything either.

    Attributes:
        pairs: Which pairs rest.
        most_per_worker: The most partitions that a worker gives in a round, at least 1.
    """

    pairs: MemoryBalancing = field(default_factory=MemoryBalancing)
    most_per_worker: int = MOST_A_WORKER

    def __post_init__(self) -> None:
        if self.most_per_worker < 1:
            raise UsageError(f"a worker that gives {self.most_per_worker} partitions gives none; let it give 1 or more")

    def plan(self, observed: Observation) -> tuple[Move, ...]:
        """This round's moves: a worker gives, or takes, or neither; those in memory before those on disk."""
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
            gap = excess[receiver] - excess[donor]
            closer = next((one for one in owned[donor] if observed.state_bytes[one] < gap), None)
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
    """Evens out memory while anything is on disk anywhere, else load, and that ever more finely.

    Rounds on memory need no statistics, so that they do not collect for as long as moves take.
    """

    def __init__(
        self, memory: SeveralMemoryMoves, load: SettlingController | None, min_collection_s: float = MIN_COLLECTION_S
    ) -> None:
        """A controller of one run.

        Args:
            memory: Decides while anything is on disk, and always if nothing else does.
            load: Decides otherwise, if given; it should keep to memory.

        Raises:
            UsageError: the least time to collect is not above 0.
        """
        self._memory, self._load = memory, load
        self._paced = PacedController(memory, min_collection_s)
        self._by_load = False

    def collection_s(self, previous: Round | None) -> float:
        """As in the paper after moves for load; the least, after those for memory."""
        return self._paced.collection_s(previous if self._by_load else None)

    def plan(self, observed: Observation) -> Sequence[Move]:
        """The moves of a round."""
        if self._load is None or observed.on_disk.any():
            self._by_load = False
            return self._memory.plan(observed)
        self._by_load = True
        return self._load.plan(observed)
