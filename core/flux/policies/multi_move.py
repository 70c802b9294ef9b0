"""The guarded load policy with as many moves in a round as are wanted. Not in the paper."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapt.core.flux.policies.guarded_policy import GuardedLoadBalancing, loads_of
from adapt.core.flux.policies.memory_policy import excess_bytes
from adapt.core.stage.movement.controller import Move, Observation


@dataclass(frozen=True, slots=True)
class SeveralMoves:
    """The busiest worker gives to the idlest, as predicted after the moves so far, until no pair is worth evening out.

    The faithful policy moves one partition of a loaded worker a round, so that its recovery takes a round for each.

    Attributes:
        guard: Its estimator and thresholds.
        least_donor: The utilization below which a worker gives nothing.
        within_memory: Whether workers take only what they have room for; the mean is then of those that give or take,
            since one that is full and idle tells nothing of what the others could come to.
    """

    guard: GuardedLoadBalancing = field(default_factory=GuardedLoadBalancing)
    least_donor: float = 0.0
    within_memory: bool = False

    def plan(self, observed: Observation) -> tuple[Move, ...]:
        """This round's moves: a worker gives, or takes, or neither. Equal workers rank by their number."""
        return self.foreseen(observed)[0]

    def foreseen(self, observed: Observation) -> tuple[tuple[Move, ...], NDArray[np.float64]]:
        """The moves, and the utilization that each worker should then have, shape (workers,)."""
        pairs = self.guard.pairs
        predicted = observed.utilization.copy()
        room = excess_bytes(observed) if self.within_memory else np.full(observed.workers, np.inf)
        largest = observed.state_bytes.max()
        shares = (room >= largest) | (predicted > predicted.mean())
        if not shares.any():
            return (), predicted
        mean = float(predicted[shares].mean())
        gives, takes = predicted > mean, (predicted < mean) & (room >= largest)
        offers = {
            int(worker): list(zip(*loads_of(observed, int(worker)), strict=True)) for worker in np.flatnonzero(gives)
        }
        moves = []
        while gives.any() and takes.any():
            donor = int(np.argmax(np.where(gives, predicted, -np.inf)))
            receiver = int(np.argmin(np.where(takes, predicted, np.inf)))
            if predicted[donor] < max(self.least_donor, mean, pairs.min_imbalance * predicted[receiver]):
                break
            ratio = self.guard.cost_ratio(observed, donor, receiver)
            given = self._first_that_helps(offers[donor], predicted[donor], predicted[receiver], ratio)
            if given is None:
                gives[donor] = False
                continue
            partition, load = offers[donor].pop(given)
            moves.append(Move(int(partition), donor, receiver))
            predicted[donor] -= load
            predicted[receiver] += load * ratio
            room[receiver] -= observed.state_bytes[partition]
            takes[receiver] = room[receiver] >= largest
        return tuple(moves), predicted

    def _first_that_helps(
        self, offers: list[tuple[int, float]], gives: float, takes: float, ratio: float
    ) -> int | None:
        """Where the first partition stands that brings the higher of two workers down enough."""
        for at, (_, load) in enumerate(offers):
            after = takes + load * ratio
            gain = gives - max(gives - load, after)
            if gain >= self.guard.min_gain * load and after <= self.guard.pairs.max_receiver:
                return at
        return None
