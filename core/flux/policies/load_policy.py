"""The load policy of Flux: the busiest worker gives to the idlest, one partition a pair."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.stage.movement.controller import Move, Observation

MIN_IMBALANCE = 1.2
MAX_RECEIVER = 0.95


@dataclass(frozen=True, slots=True)
class LoadBalancing:
    """Evens out utilization in as few moves as possible.

    A worker that processed nothing has no rate from which to tell what a partition would cost it; the paper divides by
    zero. Here it is predicted to stay as idle as it is, which is what makes this policy thrash where the paper's does.

    Source: Flux, section 5.3.

    Attributes:
        min_imbalance: lambda_min, the ratio of utilizations from which a pair is evened out; at least 1.
        max_receiver: u_max, the utilization above which a worker receives nothing, in (0, 1].
    """

    min_imbalance: float = MIN_IMBALANCE
    max_receiver: float = MAX_RECEIVER

    def __post_init__(self) -> None:
        if not self.min_imbalance >= 1:
            raise UsageError(f"a least imbalance of {self.min_imbalance:g} is none; give 1 or more")
        if not 0 < self.max_receiver <= 1:
            raise UsageError(f"a receiver's utilization of {self.max_receiver:g} is none; give one above 0, up to 1")

    def plan(self, observed: Observation, may_take: NDArray[np.bool_] | None = None) -> tuple[Move, ...]:
        """This round's moves: each worker gives or takes at most one partition.

        Args:
            may_take: Which workers may receive, shape (workers,); all if not given.
        """
        moves = (self._first_that_evens(observed, *pair) for pair in self.worth_evening(observed, may_take))
        return tuple(move for move in moves if move is not None)

    def worth_evening(self, observed: Observation, may_take: NDArray[np.bool_] | None = None) -> list[tuple[int, int]]:
        """Donors and receivers, taken from both ends of the ranking towards its middle.

        The first pair that is not worth it ends them. Equal workers rank by their number.
        """
        utilization = observed.utilization
        ranking = np.argsort(-utilization, kind="stable")
        places = np.arange(observed.workers) if may_take is None else np.flatnonzero(may_take[ranking])
        mean = utilization.mean()
        pairs = []
        for at, place in enumerate(places[::-1].tolist()):
            donor, receiver = int(ranking[at]), int(ranking[place])
            if (
                place <= at
                or utilization[donor] < mean
                or utilization[donor] < self.min_imbalance * utilization[receiver]
                or utilization[receiver] > self.max_receiver
            ):
                break
            pairs.append((donor, receiver))
        return pairs

    def _first_that_evens(self, observed: Observation, donor: int, receiver: int) -> Move | None:
        """The donor's heaviest partition that brings the two closer, unless it would fill the receiver.

        Equal partitions go by their number.
        """
        owned = heaviest_first(observed, donor)
        if len(owned) == 0:
            return None
        tuples, total = observed.processed[owned], observed.processed_by_worker
        gives, takes = observed.utilization[donor], observed.utilization[receiver]
        gives_after = gives - gives * tuples / total[donor]
        takes_after = takes + (takes * tuples / total[receiver] if total[receiver] else np.zeros(len(tuples)))
        closer = np.flatnonzero(np.abs(gives_after - takes_after) < gives - takes)
        if len(closer) == 0 or takes_after[closer[0]] > self.max_receiver:
            return None
        return Move(int(owned[closer[0]]), donor, receiver)


def heaviest_first(observed: Observation, worker: int) -> NDArray[np.int64]:
    """The partitions of a worker that had tuples, heaviest first."""
    owned = np.flatnonzero((observed.owners == worker) & (observed.processed > 0))
    return owned[np.argsort(-observed.processed[owned], kind="stable")]
