"""Stages of the Flux paper with their disturbances.

There are 32 workers, or fewer for a rehearsal. In the experiments on load each has 64 partitions of 800 KB, and an
external process takes 57 % of a worker's CPU; in those on memory each has 128 partitions of 6 MB in 1 GB, and a worker
under memory pressure is left with 512 MB.

Source: Flux, sections 4 to 6.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import numpy as np

from adapt.core.stage.conditions.arrivals import Chunk, Drawn, Rows, Source
from adapt.core.stage.conditions.faults import Crash, ExternalLoad, FaultSchedule
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import Network, StageSettings, even_groups, even_owners
from adapt.core.stage.dag.settings import DagSettings, Edge
from adapt.core.stage.movement.controller import Controller
from adapt.core.stage.movement.spilling import Memory, MemoryChange
from adapt.core.stage.simulate import Actors, Simulated, simulate

WORKERS, GROUPS = 32, 16384
PARTITIONS_PER_WORKER, LARGE_PARTITIONS_PER_WORKER = 64, 128
FULL_PER_WORKER = 1 / 45.5e-6
"""Tuples per second of a worker of the undisturbed stage: 45 us to process and 0.5 us to produce each."""

FULL = WORKERS * FULL_PER_WORKER
"""Tuples per second of the undisturbed stage."""

KEPT = 75 / 175
"""Share of its CPU that a loaded worker keeps."""

DISTURBED_S = 5.0
"""Time at which load arrives or memory is lost within a run."""

LOADED_WORKER = 3
"""The worker that is disturbed, if only one is."""

COUNTS = (0, 1, 2, 4, 8, 16, 24, 32)
"""Numbers of workers that Figure 7 disturbs."""

MEMORY_BYTES, PRESSED_BYTES = 1e9, 512e6


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """A stage, its tuples and its memory, without a policy.

    Attributes:
        settings: Settings of the stage.
        seconds: Length of the run.
        source: Source of the tuples.
        memory: Limit of the state; default: no limit.
        idle_clock_s: Resolution at which consumers measure their waiting; 0 for exact.
        faults: Faults in addition to the disturbances of the settings.
        standby: Whether every partition has a twin on another worker.
    """

    settings: StageSettings
    seconds: float
    source: Source = field(default_factory=Drawn)
    memory: Memory | None = None
    idle_clock_s: float = 0.0
    faults: FaultSchedule | None = None
    standby: bool = False

    def run(self, controller: Controller | None = None, interval_s: float = 1.0) -> Simulated:
        """Simulate the stage; without a controller nothing moves."""
        return simulate(
            self.settings,
            self.source,
            self.seconds,
            Actors(controller, self.memory, self.faults, standby=self.standby, idle_clock_s=self.idle_clock_s),
            interval_s=interval_s,
        )


def unloaded(seconds: float = 4.0, seed: int = 0, workers: int = WORKERS) -> Scenario:
    """Undisturbed stage of the experiments on load."""
    return Scenario(_stage(seed, workers), seconds)


def transient_skew(router: Router, space: int, seed: int = 0, workers: int = WORKERS) -> Scenario:
    """Figure 3: load on each worker in turn for half a second.

    Args:
        router: Exchange or Flux.
        space: Buffer of each producer in tuples, in addition to the two packets of a connection; 0 or more for
            Exchange.
        seed: Random seed of service times and tuples.
        workers: Number of workers, n.
    """
    stage = replace(_stage(seed, workers), router=router)
    if router is Router.EXCHANGE:
        network = stage.network
        network = Network(connection_tuples=network.connection_tuples + space // workers)
        stage = replace(stage, network=network)
    else:
        stage = replace(stage, buffer_tuples=space)
    visits = tuple(ExternalLoad(worker, worker / 2, (worker + 1) / 2) for worker in range(workers))
    return Scenario(replace(stage, disturbances=visits), workers / 2)


def one_loaded(seconds: float = 25.0, seed: int = 0, workers: int = WORKERS) -> Scenario:
    """Figure 6: load arrives on one worker."""
    return Scenario(_loaded(_stage(seed, workers), [LOADED_WORKER], DISTURBED_S), seconds)


def several_loaded(count: int, seconds: float = 25.0, seed: int = 0, workers: int = WORKERS) -> Scenario:
    """Figure 7: random workers are loaded from the start."""
    return Scenario(_loaded(_stage(seed, workers), _some(count, workers, seed)), seconds)


def few_hot(
    loaded: int = 0,
    seconds: float = 60.0,
    seed: int = 0,
    workers: int = WORKERS,
    *,
    hashed: bool = True,
    idle_clock_s: float = 0.01,
) -> Scenario:
    """Figure 8: 80/20 skew, and load on the hottest workers.

    The paper does not say how groups map to partitions, nor how waiting is measured.

    Args:
        loaded: Number of loaded workers, including the hottest.
        seconds: Length of the run.
        seed: Random seed of the stage, of the hash of groups, and of the other loaded workers.
        workers: Number of workers, n.
        hashed: Whether groups are hashed to partitions; otherwise partitions have consecutive groups.
        idle_clock_s: Resolution at which consumers measure their waiting.
    """
    shares = np.diff((np.arange(GROUPS + 1) / GROUPS) ** (np.log(0.8) / np.log(0.2)))
    chance = np.random.default_rng(seed)
    owners = chance.permutation(even_owners(workers, PARTITIONS_PER_WORKER))
    partition_of = (
        chance.permutation(even_groups(GROUPS, len(owners)))
        if hashed
        else np.asarray(np.arange(GROUPS) * len(owners) // GROUPS, np.int32)
    )
    hottest = int(owners[np.argmax(np.bincount(partition_of, shares))])
    others = [worker for worker in chance.permutation(workers).tolist() if worker != hottest]
    stage = StageSettings(workers, owners, partition_of, seed=seed)
    return Scenario(_loaded(stage, [hottest, *others][:loaded]), seconds, Drawn(shares), idle_clock_s=idle_clock_s)


def pressed(count: int = 1, seconds: float = 75.0, seed: int = 0, workers: int = WORKERS) -> Scenario:
    """Figures 9 and 10: workers lose half of their memory.

    Also the second experiment on memory. One is `LOADED_WORKER`; others are chosen by the seed.
    """
    short = [LOADED_WORKER] if count == 1 else _some(count, workers, seed)
    return Scenario(_large_state(seed, workers), seconds, memory=_memory(short))


def mixed(loaded: int = 1, short: int = 1, seconds: float = 90.0, seed: int = 0, workers: int = WORKERS) -> Scenario:
    """Large state; load on some workers, memory loss on others.

    The paper's experiments on mixed load are in its unpublished long version.

    Args:
        loaded: Number of loaded workers.
        short: Number of other workers that lose memory.
        seconds: Length of the run.
        seed: Random seed of the stage and of the choice of workers.
        workers: Number of workers, n.
    """
    chosen = _some(loaded + short, workers, seed)
    stage = _loaded(_large_state(seed, workers), chosen[:loaded], DISTURBED_S)
    return Scenario(stage, seconds, memory=_memory(chosen[loaded:]))


def crashed(
    standby: bool = True, dies: bool = True, seconds: float = 20.0, seed: int = 0, workers: int = WORKERS
) -> Scenario:
    """A worker dies for good.

    Beyond the paper, which names process pairs as a direction.

    Args:
        standby: Whether every partition has a twin.
        dies: Whether the worker dies; if not, this shows the cost of twins.
        seconds: Length of the run.
        seed: Random seed of the stage.
        workers: Number of workers, n.
    """
    faults = FaultSchedule((Crash(LOADED_WORKER, DISTURBED_S),)) if dies else None
    return Scenario(_stage(seed, workers), seconds, faults=faults, standby=standby)


def two_in_a_row(workers: int = 8, selectivity: float = 1.0, seed: int = 0) -> DagSettings:
    """Two stages that share their workers' CPUs.

    Every fourth worker is loaded from 1 s on.

    Beyond the paper, which leaves several operators on the same machines as an open question.

    Args:
        workers: Number of workers, n.
        selectivity: Tuples of the second stage per tuple of the first.
        seed: Random seed of both stages.
    """
    first = _loaded(_stage(seed, workers), range(workers // 4), 1.0)
    return DagSettings((first, replace(first, seed=seed + 1000)), (Edge(0, 1, selectivity),))


@dataclass(frozen=True, slots=True)
class Drift:
    """A Zipf stream whose hot keys change over time.

    Attributes:
        exponent: Zipf exponent.
        hot: Number of top ranks that move from group to group.
        held_s: Time that a rank stays with a group, at the full rate of the stage.
    """

    exponent: float = 0.7
    hot: int = 64
    held_s: float = 20.0

    def stream(self, rows: int, seed: int, workers: int = WORKERS) -> Rows:
        """Rows of the stream, as fast as the stage takes them."""
        return Rows(partial(self._chunks, rows, seed, workers))

    def _chunks(self, rows: int, seed: int, workers: int, chunk: int = 2**18) -> Iterator[Chunk]:
        ends = np.cumsum((1.0 + np.arange(GROUPS)) ** -self.exponent)
        ends /= ends[-1]
        chance = np.random.default_rng([seed, 0])
        group_of = chance.permutation(GROUPS)
        held = self.held_s * workers * FULL_PER_WORKER
        since = chance.random(self.hot)
        holders = chance.integers(0, GROUPS, (self.hot, int(rows / held) + 2))
        for first in range(0, rows, chunk):
            size = min(chunk, rows - first)
            chance = np.random.default_rng([seed, 1, first])
            ranks = np.searchsorted(ends, chance.random(size), "right")
            groups = group_of[ranks]
            at = np.flatnonzero(ranks < self.hot)
            groups[at] = holders[ranks[at], ((first + at) / held + since[ranks[at]]).astype(np.int64)]
            yield Chunk(groups, chance.integers(0, workers, size))


def drifting(drift: Drift | None = None, seconds: float = 40.0, seed: int = 0, workers: int = WORKERS) -> Scenario:
    """Drifting hot keys: a policy must keep moving.

    A hasty one moves the wrong keys.
    """
    rows = (drift or Drift()).stream(int(1.05 * seconds * workers * FULL_PER_WORKER), seed, workers)
    return Scenario(_stage(seed, workers), seconds, rows, idle_clock_s=0.01)


def capacity_bound(count: int, workers: int = WORKERS) -> float:
    """Tuples per second with all remaining CPU, by number of loaded workers."""
    return FULL_PER_WORKER * (workers - count + count * KEPT)


class Interval(Protocol):
    """Measurements of an interval of a run."""

    @property
    def start_s(self) -> float:
        """Start of the interval."""

    @property
    def end_s(self) -> float:
        """End of the interval."""

    @property
    def processed(self) -> int:
        """Tuples processed."""

    @property
    def throughput(self) -> float:
        """Tuples per second."""


class Run(Protocol):
    """A run, or its stored measurements."""

    @property
    def intervals(self) -> Sequence[Interval]:
        """Intervals in order, without gaps."""


def mean_rate(run: Run, from_s: float = 0.0, to_s: float = np.inf) -> float:
    """Tuples per second between two times."""
    within = [one for one in run.intervals if one.start_s >= from_s - 1e-9 and one.end_s <= to_s + 1e-9]
    return sum(one.processed for one in within) / sum(one.end_s - one.start_s for one in within)


def felt_s(run: Run, disturbed_s: float = DISTURBED_S, share: float = 0.95, full: float = FULL) -> float | None:
    """Start of the first interval below a share of the full rate.

    Counted from a disturbance; None if there is none.
    """
    low = (one.start_s for one in run.intervals if one.start_s >= disturbed_s and one.throughput < share * full)
    return next(low, None)


def seconds_below(run: Run, share: float, from_s: float = 0.0, full: float = FULL) -> float:
    """Seconds below a share of the full rate, after a time."""
    return sum(
        one.end_s - one.start_s for one in run.intervals if one.start_s >= from_s and one.throughput < share * full
    )


def ping_pongs(run: Simulated) -> int:
    """Moves that bring a partition back to a worker it has left."""
    left: set[tuple[int, int]] = set()
    back = 0
    for moved in run.moves:
        move = moved.move
        back += (move.partition, move.receiver) in left
        left.add((move.partition, move.donor))
    return back


def _stage(seed: int, workers: int) -> StageSettings:
    owners = even_owners(workers, PARTITIONS_PER_WORKER)
    return StageSettings(workers, owners, even_groups(GROUPS, len(owners)), seed=seed)


def _large_state(seed: int, workers: int) -> StageSettings:
    owners = even_owners(workers, LARGE_PARTITIONS_PER_WORKER)
    return StageSettings(workers, owners, even_groups(GROUPS, len(owners)), state_tuples=75_000, seed=seed)


def _loaded(stage: StageSettings, workers: Sequence[int], from_s: float = 0.0) -> StageSettings:
    return replace(stage, disturbances=tuple(ExternalLoad(worker, from_s, np.inf) for worker in workers))


def _memory(workers: Sequence[int]) -> Memory:
    return Memory(MEMORY_BYTES, tuple(MemoryChange(worker, DISTURBED_S, PRESSED_BYTES) for worker in workers))


def _some(count: int, workers: int, seed: int) -> list[int]:
    return [int(worker) for worker in np.random.default_rng(seed).choice(workers, count, replace=False)]
