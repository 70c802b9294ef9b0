"""Slicer's weighted moves, within a budget of keys moved."""

from dataclasses import dataclass

import numpy as np

from adapt.core.errors import UsageError
from adapt.core.stage.movement.controller import Move, Observation

CHURN = 0.09
"""Share of the key space that may move in a round."""

SHIFTS = 1e-9
"""Benefit, in workers, below which a move is rounding."""

MOVED = -1
"""Owner of a partition that has moved in this round."""


@dataclass(frozen=True, slots=True)
class WeightedMoves:
    """Moves partitions from the hottest to the coldest worker, within a budget.

    The benefit of a move is by how much it lowers the higher utilization of the two; its cost is the key space it
    moves, which is the same for each partition. At least one partition may move in a round, which ends before a worker
    would both give and take.

    Source: Adya et al., "Slicer", OSDI 2016, section 4.4.1, without its merges and splits of slices (partitions stay)
    and without replicas.
    """

    churn: float = CHURN  # share of the partitions that may move in a round, in (0, 1]

    def __post_init__(self) -> None:
        if not 0 < self.churn <= 1:
            raise UsageError(f"churn must be above 0 and at most 1 (got {self.churn:g})")

    def plan(self, observed: Observation) -> tuple[Move, ...]:
        """Moves of this round; each partition moves at most once."""
        utilization, owners = observed.utilization.copy(), observed.owners.copy()
        loads = utilization[owners] * observed.processed / np.maximum(1, observed.processed_by_worker)[owners]
        moves: list[Move] = []
        gave, took = set[int](), set[int]()
        for _ in range(max(1, int(self.churn * len(owners)))):
            hottest, coldest = int(utilization.argmax()), int(utilization.argmin())
            movable = np.flatnonzero(owners == hottest)
            after = np.maximum(utilization[hottest] - loads[movable], utilization[coldest] + loads[movable])
            if hottest in took or coldest in gave or len(movable) == 0 or utilization[hottest] - after.min() <= SHIFTS:
                break
            best = int(movable[after.argmin()])
            utilization[hottest] -= loads[best]
            utilization[coldest] += loads[best]
            owners[best] = MOVED
            gave.add(hottest)
            took.add(coldest)
            moves.append(Move(best, hottest, coldest))
        return tuple(moves)
