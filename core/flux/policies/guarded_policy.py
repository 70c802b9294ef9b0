"""Guarded load policy: robust against receivers that only look idle.

Not in the paper.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.flux.policies.load_policy import LoadBalancing, heaviest_first
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
