"""Runs of threads and of the model by slice and window."""

from collections.abc import Sequence
from dataclasses import dataclass
from time import process_time
from typing import ClassVar

import numpy as np

from adapt.core.ordered.calibrate.calibration import calibrate_engine
from adapt.core.ordered.calibrate.line import line_ns, middle_ns
from adapt.core.ordered.calibrate.machine import Machine
from adapt.core.ordered.chain.names import Heuristic
from adapt.core.ordered.engine.contention import Contention
from adapt.core.ordered.engine.costs_file import read_engine_profile, write_engine_profile
from adapt.core.ordered.engine.outcome import WorkersRun
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.functions.work import measured_pace
from adapt.core.ordered.model.model import run_model
from adapt.core.phrases import counted
from paper.experiments import Data
from paper.ordered.measured import every
from paper.ordered.pipelines import query

QUERY, LIGHTER = "Q1", 0.1
"""The query, and the factor on its costs: at 0.1 to 0.4 us a tuple, a short slice has few."""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Costs of the engine on this machine.

    Attributes:
        rows: Rows of each run of the calibration.
        repeats: Times that all of them run.
        workers: Most workers.
    """

    alone: ClassVar[bool] = True
    rows: int
    repeats: int
    workers: int

    @property
    def label(self) -> str:
        """Description of the measurement."""
        return f"costs of the ordered engine, {self.rows} rows, {counted(self.workers, 'worker')}"

    @property
    def needs(self) -> tuple["Calibrated", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """The profile as the text of its file."""
        made = calibrate_engine(Machine(self.rows, process_time), self.rows, self.workers, self.repeats)
        return write_engine_profile(made.profile)


@dataclass(frozen=True, slots=True)
class Sliced:
    """Runs of threads, and of the model with measured costs.

    Tuples are claimed one by one, so that a slice decides only how often a worker asks the scheduler.

    Attributes:
        calibrated: The costs.
        slice_us: Time slice.
        window_ms: Window of CT.
        workers: Number of workers.
        heuristic: Scheduling heuristic.
        rows: Input tuples.
        repeats: Runs of threads.
    """

    alone: ClassVar[bool] = True
    calibrated: Calibrated
    slice_us: float
    window_ms: float
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
    def needs(self) -> tuple[Calibrated, ...]:
        """The costs."""
        return (self.calibrated,)

    def measure(self, given: Sequence[Data]) -> Data:
        """Rate in tuples per second and median latency in milliseconds.

        Of each run of threads, whose rate is that of as many whole cores as workers, and of the model, in which a
        cache line takes as long between cores as it took beside these runs.
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
        pace, threads, lines = measured_pace(), [], [line_ns()]
        for _ in range(self.repeats):
            start_s = process_time()
            run = run_by_workers(chain, settings, pace)
            threads.append((self.rows * self.workers / (process_time() - start_s), _median_ms(run)))
            lines.append(line_ns())
        engine = read_engine_profile(given[0]).at_line(middle_ns(lines)).costs_at()
        modeled = run_model(chain, settings, Contention(), np.random.default_rng(0), engine=engine).run
        return {"threads": threads, "model": (self.rows / modeled.elapsed_s, _median_ms(modeled)), "lines_ns": lines}


def _median_ms(run: WorkersRun) -> float:
    return 1e3 * float(np.median(run.marks.processing_s()))
