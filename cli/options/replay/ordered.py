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
    OrderedWorkQueue,
    Parallelism,
    Reorder,
    Spacing,
    WorkQueue,
)
from adapt.traces.locations.location import location

if TYPE_CHECKING:
    from adapt.core.ordered.engine.settings import RunSettings
    from adapt.core.ordered.replay.arrivals import Arrivals
    from adapt.core.ordered.replay.sustainable import LatencyTarget
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
    min_time: str = setting("0.1s", "Least CPU time of each of five runs that measure an operator's cost.", "0.1s")

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
        from adapt.core.ordered.replay.sustainable import LatencyTarget

        text = self.target_latency
        if not text.endswith("x"):
            return LatencyTarget(seconds("--target-latency", text))
        try:
            return LatencyTarget(times=float(text.removesuffix("x")))
        except ValueError:
            raise UsageError(f"--target-latency takes a time or a multiple such as 5ms or 10x (got {text!r})") from None


@dataclass(frozen=True, slots=True)
class ParallelismOptions:
    """Which workers enter which operator."""

    OPTION: ClassVar[str] = "--parallelism"
    HEAD: ClassVar[str] = "parallelism"
    parallelism: Parallelism = setting(
        Parallelism.DYNAMIC,
        "Which workers enter which operator, and when. With dynamic, any, as the heuristic says; with replicated, each"
        " replica of an operator has its own worker, and tuples are split statically over the replicas; with"
        " micro-batch, all workers run a batch through one operator before the next one starts; with pipeline, each"
        " operator has one worker.",
    )
    degree: str | None = setting(
        None,
        "Replicas of every operator, or a list with one number for each. Default: as many as workers. Stateful"
        " operators always have one, and partitioned ones at most one for each partition.",
        "4|1,4,1",
        of=(Parallelism.REPLICATED,),
    )
    batch: int | None = setting(
        None,
        "Most rows of a batch. It takes what has arrived. Default: 1000.",
        "ROWS",
        min=1,
        of=(Parallelism.MICRO_BATCH,),
    )

    @property
    def degrees(self) -> tuple[int, ...]:
        """Replicas of operators; empty for as many as workers."""
        if self.degree is None:
            return ()
        try:
            return tuple(int(part) for part in self.degree.split(","))
        except ValueError:
            raise UsageError(
                f"--parallelism degree takes a number or a list such as 1,4,1 (got {self.degree!r})"
            ) from None


@dataclass(frozen=True, slots=True)
class HeuristicOptions:
    """Which operator a worker takes next."""

    OPTION: ClassVar[str] = "--heuristic"
    HEAD: ClassVar[str] = "heuristic"
    UNLESS: ClassVar[str] = "--parallelism micro-batch"
    heuristic: Heuristic = setting(Heuristic.CT, "Scheduling heuristic: which operator a worker takes next.")
    window: str = setting(
        "20ms",
        "Window in which worker time is counted.",
        "20ms",
        of=(Heuristic.CT, Heuristic.CT_LITERAL),
    )
    limit: int = setting(500, "Total of all queues to aim for, C.", "TUPLES", of=(Heuristic.QST,), min=1)
    minimum: int = setting(
        1, "Tuples in its work queue from which on an operator is considered.", "TUPLES", of=(Heuristic.LP,)
    )


@dataclass(frozen=True, slots=True)
class BufferOptions:
    """Buffers, queues and time slices."""

    OPTION: ClassVar[str] = "--runtime"
    HELP: ClassVar[str] = "Buffers, queues and time slices of workers."
    slice: str = setting(
        "100us",
        "How long a worker stays with an operator; with chunk auto at least 5us.",
        "100us",
    )
    ring_buffer: int = setting(4096, "Reorder buffer per operator, in tuples; a power of two.", "TUPLES")
    queue_capacity: int = setting(4096, "Work queue per operator, in tuples; a power of two.", "TUPLES")
    chunk: str = setting(
        "auto",
        "Most tuples that a worker claims at once, 1 to 1024. With auto, a chunk takes no longer than a slice. A worker"
        " never waits for a chunk to fill. The model takes auto as 1 unless rows arrive at a rate.",
        "N|auto",
    )
    mark_every: int | None = setting(
        None,
        "Measure the latency of one row in N. Default: about 10,000 rows in total.",
        "N",
        min=1,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RuntimeOptions:
    """How workers share work, and how outputs are put back in order."""

    reorder: Reorder = setting(
        Reorder.CLAIM,
        "Reorder buffer: how outputs are put back in order. With claim (lock-free), a worker reserves room in the ring"
        " buffer before it starts; with retry (lock-free, as in the paper), it retries until there is room, in a ring"
        " buffer that is made larger where it could hang; lock uses one lock per operator.",
    )
    work_queue: OrderedWorkQueue = setting(
        OrderedWorkQueue.HYBRID,
        "How workers share the tuples of a partitioned operator. With hybrid, a master queue hands out tuples, and "
        "those"
        " of a busy partition are delegated to its worker; with partitioned, a worker owns the queue of a partition"
        " while it processes it.",
        unless="--parallelism replicated",
    )
    scheduling: HeuristicOptions
    parallel: ParallelismOptions
    buffers: BufferOptions

    def settings(self) -> "RunSettings":
        """The settings of a run."""
        from adapt.core.ordered.engine.settings import RunSettings

        of, parallelism, scheduling = self.buffers, self.parallel.parallelism, self.scheduling
        batch = self.parallel.batch
        if batch is None:
            batch = min(_BATCH, of.queue_capacity) if parallelism is Parallelism.MICRO_BATCH else 0
        return RunSettings(
            parallelism=parallelism,
            degrees=self.parallel.degrees,
            batch=batch,
            reorder=self.reorder,
            work_queue=WorkQueue(self.work_queue.value),
            heuristic=scheduling.heuristic,
            ring_buffer=of.ring_buffer,
            queue_capacity=of.queue_capacity,
            chunk=_chunk(of.chunk),
            slice_us=_us_above_0("--runtime slice", of.slice),
            ct_window_ms=_us_above_0("--heuristic window", scheduling.window) / 1000,
            qst_limit=scheduling.limit,
            lp_minimum=scheduling.minimum,
            mark_every=of.mark_every or 0,
        )


def _chunk(text: str) -> int | None:
    """The most tuples of a chunk; None for `auto`."""
    if text == "auto":
        return None
    if not text.isdecimal():
        raise UsageError(f"--runtime chunk must be auto or a number of tuples (got {text!r})")
    return int(text)


def _us_above_0(option: str, text: str) -> float:
    us = _microseconds(option, text)
    if not us:
        raise UsageError(f"{option} must be above 0 (got {text!r})")
    return us


def _microseconds(option: str, text: str) -> float:
    return round(seconds(option, text) * 1e6, 9)


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
