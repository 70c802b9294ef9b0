"""Size of the simulations, and the runs that several figures share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from adapt.core.ordered.chain.names import Heuristic, Reorder, WorkQueue
from adapt.core.ordered.engine.settings import Contention, RunSettings
from paper.experiments import Results
from paper.ordered.measured import Argument, Pipeline, Ran, Simulated, every
from paper.ordered.pipelines import PARTITIONS, QUERIES, query

JITTER = 0.3
"""Random share of each cost."""

KAPPA_US = 0.3
"""Default kappa of Figures 8 and 11."""

LONG_QUEUE = 1 << 16
"""Capacity of the queries' work queues: practically unlimited, as in the paper."""

PIPELINED = ("Q1", "Q2", "Q3", "Q4")
"""Queries whose partitioned operators have more partitions than workers."""

QST_SIZES = (50.0, 500.0, 5000.0, 50_000.0)
"""C of the QST heuristic."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Size of the simulations.

    Attributes:
        seeds: Seeds from 0.
        rows: Input tuples of a query.
        few_rows: Input tuples of a single operator.
        queries: Names of the queries in Table 1.
        workers: Numbers of workers in figures that vary them, including 1.
        most: Number of workers in the other figures.
        kappas_us: Values of kappa for the sensitivity of Figure 8.
        slices_us: Time slices for Figure 8.
        windows_ms: CT windows for Figure 8.
        sizes: Values of C for Figure 8.
        sigmas: Values of sigma in Figure 9.
        costs_us: Costs in Figure 10.
        thread_slices_us: Time slices for threads, among them 100.
        repeats: Runs of threads.
        is_quick: Whether this is a rehearsal.
    """

    seeds: int = 5
    rows: int = 300_000
    few_rows: int = 60_000
    queries: tuple[str, ...] = tuple(QUERIES)
    workers: tuple[int, ...] = (1, 2, 4, 8, 12, 16, 20)
    most: int = 16
    kappas_us: tuple[float, ...] = (0.0, 0.02, 0.05, 0.1, 0.2, 0.3)
    slices_us: tuple[float, ...] = (10.0, 100.0, 1000.0, 10_000.0)
    windows_ms: tuple[float, ...] = (0.5, 5.0, 20.0, 100.0)
    sizes: tuple[float, ...] = QST_SIZES
    sigmas: tuple[float, ...] = (0.1, 0.2, 0.3, 0.5, 1.0, 3.0)
    costs_us: tuple[float, ...] = (10.0, 100.0, 1000.0, 10_000.0)
    thread_slices_us: tuple[float, ...] = (0.1, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
    repeats: int = 5
    is_quick: bool = False

    @classmethod
    def quick(cls) -> "Scope":
        """A rehearsal: two seeds, short streams, only needed values."""
        return cls(
            seeds=2,
            rows=6000,
            few_rows=3000,
            queries=("Q1", "Q2", "Q15"),
            workers=(1, 8, 16),
            kappas_us=(0.02, 0.3),
            slices_us=(100.0, 10_000.0),
            windows_ms=(0.5, 20.0),
            sizes=(50.0, 50_000.0),
            sigmas=(0.1, 3.0),
            costs_us=(10.0, 1000.0),
            thread_slices_us=(0.1, 100.0, 1000.0),
            repeats=2,
            is_quick=True,
        )

    def with_seeds(self, most: int) -> "Scope":
        """The same with fewer seeds.

        Their results are part of the full scope.
        """
        return replace(self, seeds=min(self.seeds, most))

    def runs(
        self, pipeline: Pipeline, settings: RunSettings, contention: Contention, gap_us: float = 0.0
    ) -> list[Simulated]:
        """Runs of a pipeline, one per seed."""
        timed = replace(settings, mark_every=every(pipeline.rows))
        return [Simulated(pipeline, timed, contention, gap_us, seed) for seed in range(self.seeds)]

    def query_runs(
        self,
        name: str,
        workers: int,
        kappa_us: float = KAPPA_US,
        heuristic: Heuristic = Heuristic.CT,
        work_queue: WorkQueue = WorkQueue.HYBRID,
        reorder: Reorder = Reorder.RETRY,
        contention: Contention | None = None,
        settings: RunSettings | None = None,
        **arguments: Argument,
    ) -> list[Simulated]:
        """Runs of a query, one per seed.

        The partitioned queue has a partition per worker, the hybrid one 100.
        """
        partitions = workers if work_queue is WorkQueue.PARTITIONED else PARTITIONS
        pipeline = Pipeline.of(query, self.rows, name=name, partitions=partitions, **arguments)
        chosen = replace(
            settings or RunSettings(),
            workers=workers,
            heuristic=heuristic,
            work_queue=work_queue,
            reorder=reorder,
            queue_capacity=LONG_QUEUE,
        )
        return self.runs(pipeline, chosen, contention or Contention(JITTER, kappa_us))


def ran(results: Results, runs: Sequence[Simulated]) -> list[Ran]:
    """Results, one per seed."""
    return [Ran.from_data(results[run]) for run in runs]
