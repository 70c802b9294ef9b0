"""How much is simulated, and the runs that several figures share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from adapt.core.flux.policies.names import FluxPolicy
from paper.experiments import Results
from paper.flux.measured import COLLECTION_S, Argument, Ran, StageRun, TandemRun
from paper.flux.scenarios import FULL_PER_WORKER, WORKERS

OTHER_COLLECTION_S = 0.05
"""By the other one."""


@dataclass(frozen=True, slots=True)
class Scope:
    """How much is simulated.

    Attributes:
        seeds: Seeds from 0.
        workers: n.
        spaces: Tuples that a producer has room for, in Figure 3.
        counts: Workers that are loaded, in Figure 7; from 0 to n.
        collections_s: Least collection times, in Figure 8.
        beyond_collections_s: Those of them for policies past the paper and for other readings of it.
        hot_loaded: Workers that are loaded beside none, in Figure 8.
        pressed: Workers that lose half of their memory, in the second experiment on memory.
        mixes: Workers that are loaded, and others that lose half of their memory.
        settling_s: How long a stage runs in which load is balanced.
        static_s: How long it runs where nothing moves.
        hot_s: How long, in Figure 8.
        spilling_s: How long, where one worker loses memory.
        pressed_s: How long, where several do.
        mixed_s: How long, where load comes too.
        crash_s: How long, where a worker dies.
        drift_s: How long, where hot keys drift.
        drift_collections_s: Least collection times, there.
        tandem_workers: n of two stages in a row.
        tandem_s: How long these run.
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
        """A rehearsal: two seeds, four workers, and of each range what the claims ask for."""
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
        """The same with so many seeds at most; what is simulated for them is part of the whole."""
        return replace(self, seeds=min(self.seeds, most))

    @property
    def full(self) -> float:
        """Tuples a second of the undisturbed stage."""
        return self.workers * FULL_PER_WORKER

    def runs(
        self,
        scenario: str,
        policy: FluxPolicy = FluxPolicy.NONE,
        collection_s: float = COLLECTION_S,
        interval_s: float = 1.0,
        **arguments: Argument,
    ) -> list[StageRun]:
        """A stage under a policy, once a seed."""
        given = tuple(sorted({**arguments, "workers": self.workers}.items()))
        return [
            StageRun(scenario, given, policy, 0.0 if policy is FluxPolicy.NONE else collection_s, seed, interval_s)
            for seed in range(self.seeds)
        ]

    def tandems(self, control: str, policy: FluxPolicy, collection_s: float = COLLECTION_S) -> list[TandemRun]:
        """Two stages in a row, once a seed; their second half counts."""
        lasting = self.tandem_s, self.tandem_s / 2
        return [
            TandemRun(self.tandem_workers, 1.0, control, policy, collection_s, *lasting, seed)
            for seed in range(self.seeds)
        ]


def ran(results: Results, runs: Sequence[StageRun]) -> list[Ran]:
    """What they did, one a seed."""
    return [Ran.from_data(results[run]) for run in runs]
