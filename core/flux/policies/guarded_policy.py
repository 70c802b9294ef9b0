"""The load policy with an estimator that cannot be fooled by an idle receiver. Not in the paper."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.flux.policies.load_policy import LoadBalancing, heaviest_first
from adapt.core.stage.movement.controller import Move, Observation

MIN_GAIN = 0.5

BUSY = 0.5
"""The utilization from which on the statistics of a receiver tell what a tuple costs it."""


@dataclass(frozen=True, slots=True)
class GuardedLoadBalancing:
    """Pairs workers as the paper does, and moves only what is sure to help.

    A tuple is taken to cost a receiver what it costs the donor, if that is more than its own statistics say: right
    after a move producers hold back the tuples of a hot partition, the other workers look idle, and the paper's estimate
    is that it would cost them nothing. And the higher utilization of the pair must fall by some share of what the
    partition makes of it, so that one that is most of the load of its worker does not go round the workers.

    Attributes:
        pairs: The thresholds of the paper.
        min_gain: The least fall of the higher of the two utilizations, as a share of what the partition makes of the
            donor's, in (0, 1].
        least_cost: The least that a tuple is taken to cost a busy receiver, as a share of what it costs the donor;
            below 1 for statistics that are long enough. An idle one is taken to have the donor's cost at least.
    """

    pairs: LoadBalancing = field(default_factory=LoadBalancing)
    min_gain: float = MIN_GAIN
    least_cost: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.min_gain <= 1:
            raise UsageError(f"a gain of {self.min_gain:g} is none or too much; give a share above 0, up to 1")

    def plan(self, observed: Observation) -> tuple[Move, ...]:
        """This round's moves: each worker gives or takes at most one partition."""
        moves = []
        for donor, receiver in self.pairs.worth_evening(observed):
            owned, leaving = loads_of(observed, donor)
            if len(owned) == 0:
                continue
            gives, takes = observed.utilization[donor], observed.utilization[receiver]
            after = takes + leaving * self.cost_ratio(observed, donor, receiver)
            gain = gives - np.maximum(gives - leaving, after)
            good = np.flatnonzero((gain >= self.min_gain * leaving) & (after <= self.pairs.max_receiver))
            if len(good):
                moves.append(Move(int(owned[good[0]]), donor, receiver))
        return tuple(moves)

    def cost_ratio(self, observed: Observation, donor: int, receiver: int) -> float:
        """What a tuple is taken to cost the receiver over what it costs the donor; 1 where nothing tells."""
        total, utilization = observed.processed_by_worker, observed.utilization
        if total[receiver] == 0 or utilization[donor] == 0:
            return 1.0
        ratio = float(utilization[receiver] / total[receiver] * total[donor] / utilization[donor])
        return max(self.least_cost if utilization[receiver] >= BUSY else 1.0, ratio)


def loads_of(observed: Observation, worker: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The partitions of a worker that had tuples, heaviest first, and the utilization that each of them makes."""
    owned = heaviest_first(observed, worker)
    tuples = observed.processed[owned]
    return owned, np.asarray(observed.utilization[worker] * tuples / max(1, int(tuples.sum())))
