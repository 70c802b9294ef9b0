"""Guarded load policy with several moves per round.

Not in the paper.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapt.core.flux.policies.guarded_policy import GuardedLoadBalancing, loads_of
from adapt.core.flux.policies.load_policy import LARGEST
from adapt.core.flux.policies.memory_policy import excess_bytes
from adapt.core.stage.movement.controller import Move, Observation


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
