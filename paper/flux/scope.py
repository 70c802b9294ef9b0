"""Size of the simulations, and the runs that several figures share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from adapt.core.flux.policies.names import FluxPolicy
from paper.experiments import Results
from paper.flux.beyond import Compared
from paper.flux.measured import COLLECTION_S, Argument, Ran, StageRun, TandemRun
from paper.flux.scenarios import FULL_PER_WORKER, WORKERS

OTHER_COLLECTION_S = 0.05
"""delta_min, by the other reading."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Size of the simulations.

    Attributes:
        seeds: Seeds from 0.
        workers: Number of workers, n.
        spaces: Producer buffers in Figure 3, in tuples.
        counts: Numbers of loaded workers in Figure 7, from 0 to n.
        collections_s: Minimum collection times in Figure 8.
        beyond_collections_s: Those of them for policies beyond the paper and for other readings of it.
        hot_loaded: Numbers of loaded workers in Figure 8, besides 0.
        pressed: Numbers of workers that lose half of their memory, in the second experiment on memory.
        mixes: Numbers of loaded workers, and of others that lose half of their memory.
        settling_s: Length of runs that balance load.
        static_s: Length of runs without moves.
        hot_s: Length of runs in Figure 8.
        spilling_s: Length of runs in which one worker loses memory.
        pressed_s: Length of runs in which several do.
        mixed_s: Length of runs with load and memory loss.
        crash_s: Length of runs in which a worker dies.
        drift_s: Length of runs with drifting hot keys.
        drift_collections_s: Minimum collection times in those.
        tandem_workers: Number of workers of two stages in sequence.
        tandem_s: Length of their runs.
        is_quick: Whether this is a rehearsal.
    """

    seeds: int = 5
    workers: int = WORKERS
    spaces: tuple[int, ...] = (256, 1024, 2048, 4096)
    counts: tuple[int, ...] = (0, 1, 2, 4, 8, 16, 24, 32)
    collections_s: tuple[float, ...] = (0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0)
    beyond_collections_s: tuple[float, ...] = (0.025, 0.15)
    hot_loaded: int = 8
    pressed: tuple[int, ...] = (1, 4, 8, 16, 24, 32)
    mixes: tuple[tuple[int, int], ...] = ((1, 1), (4, 4))
    settling_s: float = 30.0
    static_s: float = 12.0
    hot_s: float = 60.0
    spilling_s: float = 75.0
    pressed_s: float = 150.0
    mixed_s: float = 150.0
    crash_s: float = 20.0
    drift_s: float = 40.0
    drift_collections_s: tuple[float, ...] = (0.05, 0.15, 0.5)
    tandem_workers: int = 8
    tandem_s: float = 120.0
    is_quick: bool = False

    @classmethod
    def quick(cls) -> "Scope":
        """A rehearsal: two seeds, four workers, only needed values."""
        return cls(
            seeds=2,
            workers=4,
            spaces=(256, 2048),
            counts=(0, 1, 2, 4),
            collections_s=(0.025, 0.15, 0.25, 1.0),
            beyond_collections_s=(0.025, 0.15),
            hot_loaded=1,
            pressed=(1, 2, 4),
            mixes=((1, 1),),
            settling_s=12.0,
            static_s=6.0,
            hot_s=5.0,
            spilling_s=35.0,
            pressed_s=35.0,
            mixed_s=30.0,
            crash_s=10.0,
            drift_s=8.0,
            drift_collections_s=(0.05, 0.15),
            tandem_workers=4,
            tandem_s=12.0,
            is_quick=True,
        )

    def with_seeds(self, most: int) -> "Scope":
        """The same with fewer seeds.

        Their results are part of the full scope.
        """
        return replace(self, seeds=min(self.seeds, most))

    @property
    def full(self) -> float:
        """Tuples per second of the undisturbed stage."""
        return self.workers * FULL_PER_WORKER

    def runs(
        self,
        scenario: str,
        policy: Compared = FluxPolicy.NONE,
        collection_s: float = COLLECTION_S,
        interval_s: float = 1.0,
        **arguments: Argument,
    ) -> list[StageRun]:
        """Runs of a stage with a policy, one per seed."""
        given = tuple(sorted({**arguments, "workers": self.workers}.items()))
        return [
            StageRun(scenario, given, policy, 0.0 if policy is FluxPolicy.NONE else collection_s, seed, interval_s)
            for seed in range(self.seeds)
        ]

    def tandems(self, control: str, policy: FluxPolicy, collection_s: float = COLLECTION_S) -> list[TandemRun]:
        """Runs of two stages in sequence, one per seed.

        The second half is measured.
        """
        lasting = self.tandem_s, self.tandem_s / 2
        return [
            TandemRun(self.tandem_workers, 1.0, control, policy, collection_s, *lasting, seed)
            for seed in range(self.seeds)
        ]


def ran(results: Results, runs: Sequence[StageRun]) -> list[Ran]:
    """Results, one per seed."""
    return [Ran.from_data(results[run]) for run in runs]
