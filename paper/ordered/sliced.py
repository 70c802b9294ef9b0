"""Runs of threads by slice and window."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time
from typing import ClassVar

import numpy as np

from adapt.core.ordered.chain.names import Heuristic
from adapt.core.ordered.engine.reference import WorkersRun
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.functions.work import measured_pace
from adapt.core.phrases import counted
from paper.experiments import Data
from paper.ordered.measured import every
from paper.ordered.pipelines import query

QUERY, LIGHTER = "Q1", 0.1
"""The query, and the factor on its costs: at 0.1 to 0.4 us a tuple, a short slice has few."""


@dataclass(frozen=True, slots=True)
class Sliced:
    """Runs of threads.

    Tuples are claimed one by one, so that a slice decides only how often a worker asks the scheduler.
    """

    alone: ClassVar[bool] = True
    slice_us: float
    window_ms: float  # of CT
    workers: int
    heuristic: Heuristic
    rows: int
    repeats: int

    @property
    def label(self) -> str:
        """Description of the runs."""
        chosen = f"slice {self.slice_us:g} us, window {self.window_ms:g} ms, {counted(self.workers, 'worker')}"
        return f"{QUERY}, {self.heuristic}, {chosen}"

    @property
    def needs(self) -> tuple["Sliced", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Rate in tuples per second and median latency in milliseconds of each run.

        The rate is that of as many whole cores as workers.
        """
        chain = query(QUERY, self.rows, 0, heavier=LIGHTER, threads=True)
        settings = RunSettings(
            self.workers,
            heuristic=self.heuristic,
            slice_us=self.slice_us,
            ct_window_ms=self.window_ms,
            chunk=1,
            mark_every=every(self.rows),
        )
        pace, threads = measured_pace(), []
        for _ in range(self.repeats):
            start_s = process_time()
            run = run_by_workers(chain, settings, pace)
            threads.append((self.rows * self.workers / (process_time() - start_s), _median_ms(run)))
        return {"threads": threads}


def _median_ms(run: WorkersRun) -> float:
    return 1e3 * float(np.median(run.marks.processing_s()))
