"""Flux's load policy: from the busiest to the least busy worker."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from adapt.core.errors import UsageError
from adapt.core.flux.policies.names import Imbalance
from adapt.core.stage.movement.controller import Move, Observation

MIN_IMBALANCE = 1.2
MAX_RECEIVER = 0.95

LARGEST = np.iinfo(np.int64).max
"""Size that fits nowhere, for a worker without partitions to give."""


@dataclass(frozen=True, slots=True)
class LoadBalancing:
    """Balances utilization in as few moves as possible.

    A worker that processed nothing has no rate to predict the cost of a partition; the paper divides by zero. Here it
    is predicted to stay idle, so this policy thrashes where the paper's does.

    Source: Flux, section 5.3.
    """

    # lambda_min, the smallest utilization ratio of a pair that triggers a move; at least 1
    min_imbalance: float = MIN_IMBALANCE
    # u_max, the utilization above which a worker receives no partitions, in (0, 1]
    max_receiver_utilization: float = MAX_RECEIVER
    # what a move must reduce. By the ratio, an idle worker receives nothing: it is predicted to stay idle
    imbalance: Imbalance = Imbalance.DIFFERENCE

    def __post_init__(self) -> None:
        if not self.min_imbalance >= 1:
            raise UsageError(f"min_imbalance must be at least 1 (got {self.min_imbalance:g})")
        if not 0 < self.max_receiver_utilization <= 1:
            raise UsageError(
                f"max_receiver_utilization must be above 0 and at most 1 (got {self.max_receiver_utilization:g})"
            )

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
