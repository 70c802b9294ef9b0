"""What a scaler of a stage is told, and what it asks for: how many workers, and whether the plan is built anew."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """What the workers of a stage did in the last period, and how they stand.

    Attributes:
        at_s: The time.
        collected_s: How long the period was.
        workers: m.
        busy_s: How long of it each worker had work, shape (workers,).
        processed: Tuples that each has done with, shape (workers,).
        loads: Work that came in for the partitions of each, shape (workers,); in any unit.
        arrived: Rows that came to be due in it.
        waiting: Rows that are due and neither processed nor shed.
        held: Tuples that all workers hold; 0 where they hold none.
        offered: Rows that came to be due as lately as those that are held; likewise.
    """

    at_s: float
    collected_s: float
    workers: int
    busy_s: NDArray[np.float64]
    processed: NDArray[np.int64]
    loads: NDArray[np.float64]
    arrived: int
    waiting: int
    held: int = 0
    offered: int = 0

    @property
    def imbalance(self) -> float:
        """The heaviest of the loads over their mean; 1 where there are none."""
        mean = float(self.loads.mean())
        return float(self.loads.max()) / mean if mean > 0 else 1.0


@dataclass(frozen=True, slots=True)
class Waiting:
    """For how long a change has been wanted, which is all that a scaler remembers.

    Attributes:
        changed_s: When a plan was last put in force, or was tried to be.
        more_since_s: From when on more workers were wanted all the time; None, they are not.
        fewer_since_s: The same of fewer.
        fewer_to: The most that were wanted since then.
    """

    changed_s: float = 0.0
    more_since_s: float | None = None
    fewer_since_s: float | None = None
    fewer_to: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """What is to be done now.

    Attributes:
        workers: How many there are to be.
        rebuild: Whether the plan is to be built anew, where they stay as many.
    """

    workers: int
    rebuild: bool = False


class Scaler(Protocol):
    """Decides on the workers of a stage, period by period."""

    @property
    def least(self) -> int:
        """M, the workers at the start; there are never fewer."""

    @property
    def pool(self) -> int:
        """There are never more."""

    def decide(self, seen: Seen, waiting: Waiting) -> tuple[Decision, Waiting]:
        """What is to be done, and what is remembered for the next period if that is nothing."""
