"""Guarded load policy, with one or several moves per round.

Not in the paper, which leaves this as future work.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.flux.policies.load_policy import (
    LARGEST,
    LoadBalancing,
    excess_bytes,
    heaviest_first,
)
from adapt.core.stage.movement.controller import Move, Observation

MIN_GAIN = 0.5

BUSY = 0.5
"""Utilization from which a receiver's own statistics give its cost per tuple."""


@dataclass(frozen=True, slots=True)
class GuardedLoadBalancing:
    """Guarded load policy: moves only what is sure to help.

    Workers are paired as in the paper. A tuple is assumed to cost a receiver at least what it costs the donor: right
    after a move, producers hold back the tuples of a hot partition, other workers look idle, and the paper estimates
    that it would cost them nothing. The higher utilization of the pair must also fall by a share of the partition's
    load, so a partition that is most of its worker's load does not circulate.
    """

    pairs: LoadBalancing = field(default_factory=LoadBalancing)  # thresholds of the paper
    # smallest fall of the higher utilization, as a share of the partition's load on the donor, in (0, 1]
    min_gain: float = MIN_GAIN
    # smallest assumed cost per tuple on a busy receiver, as a share of the donor's; below 1 for long statistics. An
    # idle receiver is assumed to have at least the donor's cost
    least_cost: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.min_gain <= 1:
            raise UsageError(f"min_gain must be above 0 and at most 1 (got {self.min_gain:g})")

    def plan(self, observed: Observation) -> tuple[Move, ...]:
        """Moves of this round, at most one per worker."""
        moves = []
        for donor, receiver in self.pairs.worth_evening(observed):
            owned, leaving = loads_of(observed, donor)
            if len(owned) == 0:
                continue
            gives, takes = observed.utilization[donor], observed.utilization[receiver]
            after = takes + leaving * self.cost_ratio(observed, donor, receiver)
            gain = gives - np.maximum(gives - leaving, after)
            good = np.flatnonzero((gain >= self.min_gain * leaving) & (after <= self.pairs.max_receiver_utilization))
            if len(good):
                moves.append(Move(int(owned[good[0]]), donor, receiver))
        return tuple(moves)

    def cost_ratio(self, observed: Observation, donor: int, receiver: int) -> float:
        """Assumed cost ratio of a tuple, receiver over donor."""
        total, utilization = observed.processed_by_worker, observed.utilization
        if total[receiver] == 0 or utilization[donor] == 0:
            return 1.0
        ratio = float(utilization[receiver] / total[receiver] * total[donor] / utilization[donor])
        return max(self.least_cost if utilization[receiver] >= BUSY else 1.0, ratio)


def loads_of(observed: Observation, worker: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Partitions of a worker, hottest first, and their utilization."""
    owned = heaviest_first(observed, worker)
    tuples = observed.processed[owned]
    return owned, np.asarray(observed.utilization[worker] * tuples / max(1, int(tuples.sum())))


@dataclass(frozen=True, slots=True)
class SeveralMoves:
    """Several moves per round: busiest to least busy worker, by predicted utilization.

    The paper's policy moves one partition of a loaded worker per round, so recovery takes one round per partition.
    """

    guard: GuardedLoadBalancing = field(default_factory=GuardedLoadBalancing)  # estimator and thresholds
    least_donor: float = 0.0  # utilization below which a worker gives nothing
    # whether receivers need room for the state; the mean then excludes workers that are full and idle, since they say
    # nothing about what the others could reach
    within_memory: bool = False

    def plan(self, observed: Observation) -> tuple[Move, ...]:
        """Moves of this round; a worker gives, or takes, or neither."""
        return self.foreseen(observed)[0]

    def foreseen(self, observed: Observation) -> tuple[tuple[Move, ...], NDArray[np.float64]]:
        """The moves, and the predicted utilization of each worker, shape (workers,)."""
        pairs, sizes = self.guard.pairs, observed.state_bytes
        predicted = observed.utilization.copy()
        room = excess_bytes(observed) if self.within_memory else np.full(observed.workers, np.inf)
        busy = predicted > predicted.mean()
        given = sizes[busy[observed.owners] & (observed.processed > 0)]
        shares = busy | (room >= given.min(initial=LARGEST))
        if not shares.any():
            return (), predicted
        mean = float(predicted[shares].mean())
        gives, takes = predicted > mean, predicted < mean
        offers = {
            int(worker): list(zip(*loads_of(observed, int(worker)), strict=True)) for worker in np.flatnonzero(gives)
        }
        moves = []
        while gives.any():
            donor = int(np.argmax(np.where(gives, predicted, -np.inf)))
            least = min((sizes[partition] for partition, _ in offers[donor]), default=LARGEST)
            fits = takes & (room >= least)
            receiver = int(np.argmin(np.where(fits, predicted, np.inf)))
            enough = max(self.least_donor, mean, pairs.min_imbalance * predicted[receiver])
            ratio = self.guard.cost_ratio(observed, donor, receiver)
            fitting = [(at, load) for at, (one, load) in enumerate(offers[donor]) if sizes[one] <= room[receiver]]
            at = self._first_that_helps(fitting, predicted[donor], predicted[receiver], ratio)
            if not fits.any() or predicted[donor] < enough or at is None:
                gives[donor] = False
                continue
            partition, load = offers[donor].pop(at)
            moves.append(Move(int(partition), donor, receiver))
            predicted[donor] -= load
            predicted[receiver] += load * ratio
            room[receiver] -= sizes[partition]
        return tuple(moves), predicted

    def _first_that_helps(
        self, offers: list[tuple[int, float]], gives: float, takes: float, ratio: float
    ) -> int | None:
        """The first partition that lowers the higher utilization enough, of numbered loads."""
        for at, load in offers:
            after = takes + load * ratio
            gain = gives - max(gives - load, after)
            if gain >= self.guard.min_gain * load and after <= self.guard.pairs.max_receiver_utilization:
                return at
        return None
