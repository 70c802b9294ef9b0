"""Size of the experiments on ESJ."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from paper.esj.measured import CAPACITY, WINDOW_S, Sent, Shedding
from paper.experiments import Data, Results

WORKERS, POOL = 4, 8
"""M, and the most workers."""

AT_TAU_1 = CAPACITY / WINDOW_S
"""Tuples per second that fill one worker."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Size of the experiments.

    Attributes:
        seeds: Seeds from 0.
        taus: Values of tau1 at which messages are measured.
        is_quick: Whether this is a rehearsal.
    """

    seeds: int = 5
    taus: tuple[float, ...] = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    is_quick: bool = False

    @classmethod
    def quick(cls) -> "Scope":
        """A rehearsal: two seeds, two values of tau1."""
        return cls(2, (0.1, 0.6), is_quick=True)

    def with_seeds(self, most: int) -> "Scope":
        """The same with fewer seeds."""
        return replace(self, seeds=min(self.seeds, most))

    def each(self, one: Shedding | Sent) -> list[Shedding | Sent]:
        """An experiment with each seed."""
        return [replace(one, seed=seed) for seed in range(self.seeds)]


def rising(tau1: float, factor: float) -> Shedding:
    """A stage at tau1 whose rate rises for one phase."""
    rate = WORKERS * AT_TAU_1 * tau1
    return Shedding(WORKERS, (rate, factor * rate, rate), tau1=tau1)


def values(results: Results, runs: Sequence[Shedding | Sent], name: str = "shed") -> list[Data]:
    """One value of each run."""
    return [results[run][name] for run in runs]
