"""Flux's policies: load, memory and hybrid, in rounds.

Source: Flux, section 5.3.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.flux.policies.names import Imbalance, PairSettings
from adapt.core.stage.movement.controller import Move, Observation, Round

LARGEST = np.iinfo(np.int64).max
"""Size that fits nowhere, for a worker without partitions to give."""


class LoadBalancing(PairSettings):
    """Balances utilization in as few moves as possible.

    A worker that processed nothing has no rate to predict the cost of a partition; the paper divides by zero. Here it
    is predicted to stay idle, so this policy thrashes where the paper's does.

    Source: Flux, section 5.3.
    """

    __slots__ = ()

    def plan(self, observed: Observation, room: NDArray[np.float64] | None = None) -> tuple[Move, ...]:
        """Moves of this round, at most one per worker.

        Args:
            room: Free memory of each worker, in which a received partition must fit, shape (workers,); None, unlimited.
        """
        moves = (self._first_that_evens(observed, *pair, room) for pair in self.worth_evening(observed, room))
        return tuple(move for move in moves if move is not None)

    def worth_evening(self, observed: Observation, room: NDArray[np.float64] | None = None) -> list[tuple[int, int]]:
        """Pairs of donor and receiver, from both ends of the ranking inwards.

        Stops at the first pair below the thresholds. Ties rank by worker number. A donor passes over workers without
        room for any of its partitions: they gave partitions away, are therefore idle, and rank last.
        """
        utilization = observed.utilization
        ranking = np.argsort(-utilization, kind="stable").tolist()
        mean = utilization.mean()
        pairs: list[tuple[int, int]] = []
        for at, donor in enumerate(ranking):
            least = None if room is None else observed.state_bytes[heaviest_first(observed, donor)].min(initial=LARGEST)
            paired = {receiver for _, receiver in pairs}
            if donor in paired:
                continue
            free = (one for one in ranking[:at:-1] if one not in paired and (room is None or room[one] >= least))
            receiver = next(free, None)
            if receiver is None:
                continue
            if (
                utilization[donor] < mean
                or utilization[donor] < self.min_imbalance * utilization[receiver]
                or utilization[receiver] > self.max_receiver_utilization
            ):
                break
            pairs.append((donor, receiver))
        return pairs

    def _first_that_evens(
        self, observed: Observation, donor: int, receiver: int, room: NDArray[np.float64] | None
    ) -> Move | None:
        """The donor's hottest partition that narrows the gap and fits, unless it would overload the receiver.

        Ties go by partition number.
        """
        owned = heaviest_first(observed, donor)
        if room is not None:
            owned = owned[observed.state_bytes[owned] <= room[receiver]]
        if len(owned) == 0:
            return None
        tuples, total = observed.processed[owned], observed.processed_by_worker
        gives, takes = observed.utilization[donor], observed.utilization[receiver]
        gives_after = gives - gives * tuples / total[donor]
        takes_after = takes + (takes * tuples / total[receiver] if total[receiver] else np.zeros(len(tuples)))
        if self.imbalance is Imbalance.DIFFERENCE:
            evens = np.abs(gives_after - takes_after) < gives - takes
        else:
            evens = np.maximum(gives_after, takes_after) * takes < gives * np.minimum(gives_after, takes_after)
        closer = np.flatnonzero(evens)
        if len(closer) == 0 or takes_after[closer[0]] > self.max_receiver_utilization:
            return None
        return Move(int(owned[closer[0]]), donor, receiver)


def heaviest_first(observed: Observation, worker: int) -> NDArray[np.int64]:
    """Partitions of a worker with tuples, hottest first."""
    owned = np.flatnonzero((observed.owners == worker) & (observed.processed > 0))
    return owned[np.argsort(-observed.processed[owned], kind="stable")]


class MemoryBalancing(PairSettings):
    """Balances the free memory e_i of workers.

    e_i is the available memory minus the sizes of the partitions on worker i. The paper leaves open which pairs are
    skipped. Here a pair is skipped if its donor has more than the mean free memory, or if the donor's state fits and
    its memory utilization is less than `min_imbalance` times the receiver's; the first such pair ends the round, as in
    the load policy. Of equal partitions the last moves, since a worker short of memory writes its first ones first.

    Source: Flux, section 6.1.
    """

    __slots__ = ()

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


@dataclass(frozen=True, slots=True)
class HybridBalancing:
    """Balances memory while any partition is on disk, else load.

    A partition moves for load only if the receiver has room for it, as in the paper. The paper leaves open which pairs
    then form; here a donor passes over workers without room for any of its partitions.

    Source: Flux, section 6.3.
    """

    load: LoadBalancing = field(default_factory=LoadBalancing)  # policy while everything is in memory
    memory: MemoryBalancing = field(default_factory=MemoryBalancing)  # policy otherwise

    def plan(self, observed: Observation) -> tuple[Move, ...]:
        """Moves of this round."""
        if observed.on_disk.any():
            return self.memory.plan(observed)
        return self.load.plan(observed, excess_bytes(observed))


MIN_COLLECTION_S = 0.15


class Policy(Protocol):
    """Stateless policy: decides from one observation."""

    def plan(self, observed: Observation) -> Sequence[Move]:
        """Moves of this round."""


@dataclass(frozen=True, slots=True)
class PacedController:
    """Runs a policy in rounds, at most half the time moving."""

    policy: Policy
    min_collection_s: float = MIN_COLLECTION_S  # minimum collection time, delta_min, above 0

    def __post_init__(self) -> None:
        if not self.min_collection_s > 0:
            raise UsageError(f"the minimum collection time must be above 0 (got {self.min_collection_s:g} s)")

    def collection_s(self, previous: Round | None) -> float:
        """Duration of the last moves, or half of the last collection."""
        if previous is None:
            return self.min_collection_s
        wanted = previous.moving_s if previous.moves else previous.collection_s / 2
        return max(self.min_collection_s, wanted)

    def plan(self, observed: Observation) -> Sequence[Move]:
        """Moves of this round."""
        return self.policy.plan(observed)
