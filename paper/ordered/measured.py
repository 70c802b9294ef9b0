"""Experiments on pipelines: runs of the model of the engine."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.engine.reference import WorkersRun
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.model.model import run_model
from paper.experiments import Data
from paper.ordered.pipelines import PIPELINES, retail, retail_costs

Argument: TypeAlias = int | float | str
"""Parameters of a pipeline, except its size and seed."""

_MARKS = 4000
"""Approximate number of timed tuples in a run."""


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline: the name and arguments of the function that builds it.

    Attributes:
        name: Name of the function.
        arguments: Arguments by name, sorted by name.
        rows: Input tuples.
    """

    name: str
    arguments: tuple[tuple[str, Argument], ...]
    rows: int

    @classmethod
    def of(cls, made: Callable[..., BoundChain], rows: int, **arguments: Argument) -> "Pipeline":
        """Arguments by name."""
        return cls(made.__name__, tuple(sorted(arguments.items())), rows)

    def bound(self, seed: int) -> BoundChain:
        """The chain with its input."""
        return PIPELINES[self.name](rows=self.rows, seed=seed, **dict(self.arguments))

    @property
    def costs_us(self) -> tuple[float, ...] | None:
        """Stated costs of a chain whose functions run; None for those of its operators."""
        return retail_costs(str(dict(self.arguments)["name"])) if self.name == retail.__name__ else None

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(f'{name} {value}' for name, value in self.arguments)})"


@dataclass(frozen=True, slots=True)
class Simulated:
    """A run of the model.

    Attributes:
        pipeline: The pipeline.
        settings: Settings of the run.
        contention: Contention between workers.
        gap_us: Time between arrivals; 0 if all tuples are there at the start.
        seed: Random seed of keys, costs and outputs.
    """

    alone: ClassVar[bool] = False
    pipeline: Pipeline
    settings: RunSettings
    contention: Contention
    gap_us: float
    seed: int

    @property
    def label(self) -> str:
        """Description of the run."""
        chosen = self.settings
        return (
            f"{self.pipeline}, {chosen.workers} workers, {chosen.heuristic}, {chosen.work_queue}, {chosen.reorder},"
            f" seed {self.seed}"
        )

    @property
    def needs(self) -> tuple["Simulated", ...]:
        """No other experiments."""
        return ()

    def measure(self, given: Sequence[Data]) -> Data:  # noqa: ARG002
        """Run the model; the result is the data of a `Ran`."""
        chain = self.pipeline.bound(self.seed)
        random = np.random.default_rng([self.seed, 1])
        arrivals_ns = np.arange(len(chain.tuples)) * round(self.gap_us * 1000) if self.gap_us else None
        how = self.settings, self.contention, random, self.pipeline.costs_us
        ran = run_model(chain, *how, arrivals_ns=arrivals_ns)
        return asdict(Ran.of(len(chain.tuples), ran.run))


@dataclass(frozen=True, slots=True)
class Ran:
    """Measurements of a run.

    Attributes:
        rate: Input tuples per second, over the whole run.
        latency_ms: Mean processing latency of the timed tuples between the 20th and the 80th percentile of the run.
        p99_ms: Its 99th percentile.
        end_to_end_ms: Mean latency including the wait before the first operator.
        shares: Share of the workers' time by operator.
        cost_us: Worker time per tuple on the first operator, including waiting.
        fullest: Most tuples in the ring buffer of any operator.
        blocked: Share of the workers' time in which they were blocked.
    """

    rate: float
    latency_ms: float
    p99_ms: float
    end_to_end_ms: float
    shares: list[float]
    cost_us: float
    fullest: int
    blocked: float

    @classmethod
    def of(cls, rows: int, run: WorkersRun) -> "Ran":
        """Measurements of a run with this many input tuples."""
        busy = [tally.busy_ns for tally in run.operators]
        first = run.operators[0]
        latency = run.marks.processing_s()
        return cls(
            rate=rows / run.elapsed_s,
            latency_ms=_mean_ms(latency),
            p99_ms=1e3 * float(np.quantile(latency, 0.99)),
            end_to_end_ms=_mean_ms(run.marks.end_to_end_s()),
            shares=[each / sum(busy) for each in busy],
            cost_us=first.busy_ns / first.inputs / 1e3,
            fullest=max(tally.fullest for tally in run.operators),
            blocked=sum(tally.waited_ns for tally in run.operators) / sum(busy),
        )

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> "Ran":
        """Measurements from JSON data."""
        return cls(**data)


def every(rows: int) -> int:
    """Every how many tuples one is timed."""
    return max(rows // _MARKS, 1)


def _mean_ms(seconds: NDArray[np.float64]) -> float:
    return 1e3 * float(seconds.mean())
