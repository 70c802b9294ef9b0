"""Size of the experiments, and the runs that several figures share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from paper.experiments import Data, Experiment, Results
from paper.fit.measured import Described, Planned
from paper.fit.networks import PAIRS

EPSILON = 0.05
"""Allowed error in Figure 10."""

MEAN_RATE = 5.0
"""lambda of Figure 10 (b), tuples/s."""

SOLVER, SOLVER_W, EXACT = "solver", "solver-w", "exact"
C_FIT = {"paper": "c-fit paper", "safe": "c-fit safe", "guaranteed": "c-fit guaranteed"}
"""Planners by grid."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Size of the experiments.

    Attributes:
        seeds: Seeds from 0.
        pairs: Costs of the chains of Figure 9, milliseconds, by ascending imbalance.
        points: Overloaded points to test plans at, with one or two inputs; half as many with more.
        mean_rates: lambda of Figure 11 (a), tuples/s.
        costs: Cost of the heavier chain in Figure 11 (c), milliseconds.
        branches: Numbers of branches in Figure 13.
        inputs: Numbers of inputs in Figure 14.
        cut_inputs: Numbers of inputs for the points that show where the cut fails; the first is 2.
        epsilons: Values of epsilon in Figure 14 (b); the first is that of Table 3.
        plans: Numbers of plans at which the expected error is recorded in Figure 14 (a).
        loads: Costs in Figure 15 (a), relative to those of the pair (64, 32).
        sent_epsilons: Values of epsilon in Figure 15 (a).
        selectivities: Selectivities of the operator that changes in Figure 15 (b).
        distances: Distances in Figures 15 (b) and (c).
        moved_ms: Cost that moves from parent to child, in Figure 15 (c).
        repeats: Most timed repeats of planning, for each seed.
        is_quick: Whether this is a rehearsal.
    """

    seeds: int = 5
    pairs: tuple[tuple[float, float], ...] = PAIRS
    points: int = 10_000
    mean_rates: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0)
    costs: tuple[float, ...] = (64.0, 56.0, 48.0, 40.0, 32.0, 24.0, 16.0)
    branches: tuple[int, ...] = (2, 4, 8, 16, 32)
    inputs: tuple[int, ...] = (2, 4, 8)
    cut_inputs: tuple[int, ...] = (2, 4, 8)
    epsilons: tuple[float, ...] = (0.1, 0.15, 0.2, 0.3)
    plans: tuple[int, ...] = tuple(2**power for power in range(15))
    loads: tuple[float, ...] = (1.0, 0.875, 0.75, 0.625, 0.5)
    sent_epsilons: tuple[float, ...] = (0.01, 0.02, 0.05, 0.1)
    selectivities: tuple[float, ...] = (0.95, 0.9, 0.8, 0.7, 0.5)
    distances: tuple[float, ...] = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
    moved_ms: tuple[float, ...] = (8.0, 16.0, 24.0)
    repeats: int = 20
    is_quick: bool = False

    @classmethod
    def quick(cls) -> "Scope":
        """A rehearsal: two seeds, few points, only needed values."""
        return cls(
            seeds=2,
            pairs=((48, 48), (64, 32)),
            points=600,
            mean_rates=(1.0, 5.0),
            costs=(64.0, 32.0),
            branches=(2, 8),
            cut_inputs=(2, 4),
            epsilons=(0.1, 0.2),
            plans=tuple(4**power for power in range(6)),
            loads=(1.0, 0.5),
            sent_epsilons=(0.05, 0.1),
            selectivities=(0.9, 0.5),
            distances=(0.0, 0.1, 0.5),
            repeats=1,
            is_quick=True,
        )

    def with_seeds(self, most: int) -> "Scope":
        """The same with fewer seeds.

        Their results are part of the full scope.
        """
        return replace(self, seeds=min(self.seeds, most))

    def planned(
        self, network: Described, planner: str, epsilon: float, mean_rate: float = 0.0, kept: int = 0, points: int = -1
    ) -> list[Planned]:
        """Runs of a planner on a network, one per seed.

        Points are stored for the first seed only.
        """
        drawn = self.points if points < 0 else points
        return [
            Planned(network, planner, epsilon, mean_rate, drawn, kept if seed == 0 else 0, self.repeats, seed)
            for seed in range(self.seeds)
        ]


def chained(reading: str, pair: tuple[float, float], inputs: int = 2) -> Described:
    """A network of Figure 9."""
    return Described.of("two_servers", reading=str(reading), heavy_ms=pair[0], light_ms=pair[1], inputs=inputs)


def found(results: Results, experiments: Sequence[Experiment]) -> list[Data]:
    """Results, one per experiment."""
    return [results[each] for each in experiments]
