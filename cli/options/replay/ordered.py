"""Options of `adapt replay ordered`."""

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, ClassVar

from adapt.cli.options.amounts import seconds
from adapt.cli.options.groups import setting
from adapt.core.errors import UsageError
from adapt.core.ordered.chain.names import (
    Backend,
    Heuristic,
    Parallelism,
    Reorder,
    Spacing,
    WorkQueue,
)
from adapt.core.ordered.engine.settings import RunSettings
from adapt.core.units.settings import Range, same, settings, values_of
from adapt.traces.locations.location import location

if TYPE_CHECKING:
    from adapt.core.ordered.replay.arrivals import Arrivals, LatencyTarget
    from adapt.traces.store.trace import Trace

_SHARES = "0.5,0.7,0.9"
"""Shares of the sustainable rate to run at."""

_BATCH = 1_000
"""Most rows of a micro-batch."""


@dataclass(frozen=True, slots=True)
class WorkerOptions:
    """How many workers run the chain, and what runs them."""

    workers: str | None = setting(
        None,
        "Numbers of workers. Default: 1, 2, 4 and so on up to the cores of this machine. With auto, the model searches"
        " the number beyond which more workers add less than 5 % of throughput.",
        "1,2,4|auto",
        shown=False,
    )
    backend: Backend | None = setting(
        None,
        "Real threads, or a model of them. Default: threads if every worker can have its own core, else sim.",
        shown=False,
    )

    repeats: int = setting(
        5, "Runs of threads with each number of workers; the median is shown.", "N", needs="--backend threads"
    )

    @property
    def are_searched(self) -> bool:
        """Whether the number of workers is searched."""
        return self.workers == "auto"

    def counts(self, cores: int) -> tuple[int, ...]:
        """Distinct numbers of workers, ascending.

        By default powers of two; 1 if they are searched.
        """
        if self.are_searched:
            return (1,)
        if self.workers is None:
            return tuple(dict.fromkeys([*(1 << power for power in range(cores.bit_length())), cores]))
        try:
            return tuple(sorted({int(part) for part in self.workers.split(",")}))
        except ValueError:
            raise UsageError(
                f"--workers takes auto or a list of integers such as 1,2,4,8 (got {self.workers!r})"
            ) from None


@dataclass(frozen=True, slots=True)
class InputOptions:
    """Which rows enter, of which inputs."""

    inputs: list[str] | None = setting(
        None, "Trace of a further input of the chain; repeatable.", "NAME=TRACE", "--input"
    )
    rows: int | None = setting(None, "Replay only the first N rows.", "N")

    def opened(self) -> "dict[str, Trace]":
        """Traces of further inputs by name."""
        from adapt.traces.store.trace import open_trace

        opened: dict[str, Trace] = {}
        for each in self.inputs or ():
            name, found, path = each.partition("=")
            if not found or not name or not path:
                raise UsageError(f"--input takes NAME=TRACE, such as weather=weather.trace (got {each!r})")
            if name in opened:
                raise UsageError(f"--input {name} is given twice; join the traces of an input with `adapt ingest`")
            opened[name] = open_trace(location(path))
        return opened


@dataclass(frozen=True, slots=True)
class ArrivalOptions:
    """How fast rows arrive; by default, all are there at the start."""

    PANEL: ClassVar[str] = "Arrivals; by default all rows are there at the start"
    rate: str | None = setting(None, "Average rate of arrivals, or a list.", "ROWS/S")
    offered: str | None = setting(
        None,
        "Load: rate of arrivals over the capacity, which is measured first.",
        "RATIO",
    )
    sustainable: bool = setting(
        False,
        "Search the highest rate that workers sustain at the target latency, and run at shares of it. The shares come"
        " from --offered (default: 0.5,0.7,0.9).",
        None,
        "--sustainable",
    )
    target_latency: str = setting(
        "10x",
        "Highest p99 latency from arrival to output at a sustainable rate. A multiple such as 10x is of that at a"
        " fifth of the capacity.",
        "TIME|RATIOx",
        needs="--sustainable",
    )
    speedup: float | None = setting(None, "Rows arrive by the trace: trace seconds per second.", "RATIO")
    spacing: Spacing | None = setting(
        None,
        "Spacing of arrivals with --rate, --offered or --sustainable. Default: poisson.",
        needs="--rate or --offered or --sustainable",
    )

    def arrivals(self) -> "tuple[Arrivals, ...]":
        """How rows arrive, by ascending rate; empty by default."""
        from adapt.core.ordered.replay.arrivals import Arrivals

        loads = _SHARES if self.sustainable and self.offered is None else self.offered
        named = {"--rate": self.rate, "--offered": loads, "--speedup": self.speedup}
        given = [name for name, value in named.items() if value is not None]
        fixed = [name for name in given if name != "--offered"]
        if self.sustainable and fixed:
            raise UsageError(f"{fixed[0]} sets the rate of arrivals, which --sustainable searches; omit one")
        if len(given) > 1:
            raise UsageError(f"{given[0]} and {given[1]} both set the rate of arrivals; omit one")
        spacing = self.spacing or Spacing.POISSON
        if self.rate is not None:
            return tuple(Arrivals(rate=each, spacing=spacing) for each in _ascending("--rate", self.rate, "5000,8000"))
        if loads is not None:
            over = "sustained" if self.sustainable else "offered"
            shares = _ascending("--offered", loads, "0.5,0.9")
            return tuple(Arrivals(**{over: each}, spacing=spacing) for each in shares)
        if self.speedup is not None:
            return (Arrivals(speedup=_above_0("--speedup", self.speedup)),)
        return ()

    def target(self) -> "LatencyTarget":
        """Highest latency at a sustainable rate."""
        from adapt.core.ordered.replay.arrivals import LatencyTarget

        text = self.target_latency
        if not text.endswith("x"):
            return LatencyTarget(seconds("--target-latency", text))
        try:
            return LatencyTarget(times=float(text.removesuffix("x")))
        except ValueError:
            raise UsageError(f"--target-latency takes a time or a multiple such as 5ms or 10x (got {text!r})") from None


@settings("parallelism", head="parallelism")
class ParallelismOptions:
    """Which workers enter which operator."""

    parallelism: Parallelism = same(RunSettings, "parallelism")
    degrees: tuple[int, ...] | None = same(RunSettings, "degrees", default=None)
    batch: int | None = same(RunSettings, "batch", default=None, range=Range(1))


@settings("heuristic", head="heuristic")
class HeuristicOptions:
    """Which operator a worker takes next."""

    UNLESS: ClassVar[str] = "--parallelism micro-batch"
    heuristic: Heuristic = same(RunSettings, "heuristic")
    ct_window_ms: float = same(RunSettings, "ct_window_ms")
    qst_limit: float = same(RunSettings, "qst_limit")
    lp_minimum: int = same(RunSettings, "lp_minimum")


@settings("runtime", help="Buffers, queues and time slices of workers.")
class BufferOptions:
    """Buffers, queues and time slices."""

    slice_us: float = same(RunSettings, "slice_us")
    ring_buffer: int = same(RunSettings, "ring_buffer")
    queue_capacity: int = same(RunSettings, "queue_capacity")
    chunk: int | None = same(RunSettings, "chunk")
    mark_every: int | None = same(RunSettings, "mark_every", default=None, range=Range(1))


@settings()
class RuntimeOptions:
    """How workers share work, and how outputs are put back in order."""

    reorder: Reorder = same(RunSettings, "reorder")
    work_queue: WorkQueue = same(RunSettings, "work_queue")
    scheduling: HeuristicOptions = HeuristicOptions()
    parallel: ParallelismOptions = ParallelismOptions()
    buffers: BufferOptions = BufferOptions()

    def settings(self) -> RunSettings:
        """The settings of a run."""
        batch, degrees = self.parallel.batch, self.parallel.degrees
        if batch is None:
            batched = self.parallel.parallelism is Parallelism.MICRO_BATCH
            batch = min(_BATCH, self.buffers.queue_capacity) if batched else 0
        given = values_of(self.buffers) | values_of(self.scheduling)
        given |= {"batch": batch, "degrees": degrees or (), "mark_every": self.buffers.mark_every or 0}
        return RunSettings(
            parallelism=self.parallel.parallelism,
            reorder=self.reorder,
            work_queue=self.work_queue,
            **given,
        )


def _ascending(option: str, text: str, example: str) -> list[float]:
    """Distinct numbers above 0, ascending."""
    try:
        numbers = {float(part) for part in text.split(",")}
    except ValueError:
        raise UsageError(f"{option} takes numbers such as {example} (got {text!r})") from None
    return sorted(_above_0(option, number) for number in numbers)


def _above_0(option: str, number: float) -> float:
    if not 0 < number < inf:
        raise UsageError(f"{option} must be above 0 (got {number:g})")
    return number
