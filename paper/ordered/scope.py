"""How much is simulated, and the runs that several figures share."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from adapt.core.ordered.chain.names import Heuristic, Reorder, WorkQueue
from adapt.core.ordered.engine.contention import Contention
from adapt.core.ordered.engine.settings import RunSettings
from paper.experiments import Results
from paper.ordered.measured import Argument, Pipeline, Ran, Simulated, every
from paper.ordered.pipelines import PARTITIONS, QUERIES, query

JITTER = 0.3
"""The share of each cost that is drawn."""

KAPPA_US = 0.3
"""kappa of Figure 8 and 11, where nothing else is said."""

LONG_QUEUE = 1 << 16
"""Work queues of the queries: as good as without a bound, as the paper's are."""

PIPELINED = ("Q1", "Q2", "Q3", "Q4")
"""The queries whose partitioned operators have more partitions than there are workers."""

QST_SIZES = (50.0, 500.0, 5000.0, 50_000.0)
"""C of the queue-size heuristic."""


@dataclass(frozen=True, slots=True)
class Scope:
    """How much is simulated.

    Attributes:
        seeds: Seeds from 0.
        rows: Tuples that enter a query.
        few_rows: That enter one operator.
        queries: By the names of Table 1.
        workers: Of the figures that vary them; 1 is there.
        most: Workers of the others.
        kappas_us: Of the sensitivity of Figure 8.
        slices_us: Of its settings.
        windows_ms: Likewise.
        sizes: C, likewise.
        sigmas: Of Figure 9.
        costs_us: Of Figure 10.
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
    is_quick: bool = False

    @classmethod
    def quick(cls) -> "Scope":
        """A rehearsal: two seeds, short streams, and of each range what the claims ask for."""
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
            is_quick=True,
        )

    def with_seeds(self, most: int) -> "Scope":
        """The same with so many seeds at most; what is simulated for them is part of the whole."""
        return replace(self, seeds=min(self.seeds, most))

    def runs(
        self, pipeline: Pipeline, settings: RunSettings, contention: Contention, gap_us: float = 0.0
    ) -> list[Simulated]:
        """A pipeline, once a seed, timed."""
        timed = replace(settings, mark_every=every(pipeline.rows))
        return [Simulated(pipeline, timed, contention, gap_us, seed) for seed in range(self.seeds)]

    def query_runs(
        self,
        name: str,
        workers: int,
        kappa_us: float = KAPPA_US,
        heuristic: Heuristic = Heuristic.CT,
        work_queue: WorkQueue = WorkQueue.HYBRID,
        reorder: Reorder = Reorder.CLAIM,
        contention: Contention | None = None,
        settings: RunSettings | None = None,
        **arguments: Argument,
    ) -> list[Simulated]:
        """A query, once a seed; the partitioned queue has a partition a worker, the hybrid one 100."""
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
    """What they did, one a seed."""
    return [Ran.from_data(results[run]) for run in runs]
