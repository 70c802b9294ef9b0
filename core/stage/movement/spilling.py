"""Memory limits: partitions spill to disk and are read back in turn.

Source: Flux, section 6. Its local policy is in the unpublished long version; here the partition longest in memory is
written first, and input is served for a fifth of a second between two reads.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.compiled import compiled
from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.arrivals import Chunk
from adapt.core.stage.conditions.service_times import LEAST_MEANS
from adapt.core.stage.conditions.settings import StageSettings, of_workers
from adapt.core.stage.conditions.stage_settings import DiskSettings
from adapt.core.stage.engine.queues import Action, Job
from adapt.core.stage.engine.recent_rows import forget_spilled
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.records.arrays import UNUSED
from adapt.core.units.settings import same, settings
from adapt.core.values import duration

UNMEASURED = 1 / 128
"""Share of its limit by which the state of a worker may grow before it is measured again, where rows also expire."""


@dataclass(frozen=True, slots=True)
class MemoryChange:
    """A change of the memory limit of one worker."""

    worker: int
    at_s: float
    bytes: float


@settings()
class Memory:
    """Memory and disk of every worker."""

    worker_bytes: float = 1e9  # initial memory limit for state per worker
    changes: tuple[MemoryChange, ...] = ()  # later changes of single workers
    # disk bandwidth for reads and writes; one for all workers, or one per worker
    disk_bytes_per_s: float | tuple[float, ...] = 20e6
    seek_s: float = same(DiskSettings, "seek_s")  # normally distributed
    seek_sd_s: float = 0.2e-3  # standard deviation of the same
    quantum_s: float = same(DiskSettings, "quantum_s")

    def __post_init__(self) -> None:
        if not (np.min(self.disk_bytes_per_s) > 0 and self.seek_sd_s >= 0):
            raise UsageError("a disk needs a bandwidth above 0, and seek times of at least 0")
        if self.seek_s < LEAST_MEANS * self.seek_sd_s:
            raise UsageError(
                f"a disk needs a seek time of at least {LEAST_MEANS:g} times its standard deviation, so that none is "
                f"below 0 (got {self.seek_s:g} s and {self.seek_sd_s:g} s)"
            )


class Outgrown(BadInput):
    """State of a partition above the memory of every worker."""


def check_memory(settings: StageSettings, memory: Memory) -> None:
    """Check the memory limits of a stage."""
    needed = int(settings.state_sizes().max()) * settings.costs.tuple_bytes
    least = min([memory.worker_bytes, *(change.bytes for change in memory.changes)])
    if not least >= needed:
        raise BadInput(f"the memory of a worker must hold the largest partition, {needed:,} bytes (got {least:,.0f})")
    for change in memory.changes:
        if not (0 <= change.worker < settings.workers and change.at_s >= 0):
            raise BadInput(
                f"a memory change needs a worker from 0 to {settings.workers - 1} and a time of at least 0 s (got"
                f" worker {change.worker} at {change.at_s:g} s)"
            )


Task: TypeAlias = Callable[[Action], None]
"""A memory task of a worker; it calls its argument when finished."""


class Spilling:
    """Keeps the state of every worker within its memory limit.

    Disk accesses block the consumer; it reads messages between two accesses. A donor that waits for acknowledgements
    does not access its disk until it has them, since it need not write what it gives away.

    Stages that share their workers share memory and disk too: where all state exceeds the limit, the stage with the
    most of it in memory writes. They read in turn.
    """

    def __init__(self, stage: Stage, memory: Memory, others: "Sequence[Spilling]" = ()) -> None:
        """Start in memory, and spill partitions that do not fit.

        Args:
            others: Limits of other stages of these workers, which share memory and disk.
        """
        self._stage = stage
        self._memory = memory
        workers = stage.settings.workers
        self._all: list[Spilling] = [*others, self]
        for other in others:
            other._all.append(self)
        self.limits: NDArray[np.float64] = np.full(workers, float(memory.worker_bytes))
        check_memory(stage.settings, memory)
        owners = stage.settings.owners
        self._in_memory = [deque(np.flatnonzero(owners == worker).tolist()) for worker in range(workers)]
        self._on_disk: list[deque[int]] = [deque() for _ in range(workers)]
        self._tasks: list[deque[Task]] = [deque() for _ in range(workers)]
        self._turns: list[deque[Spilling]] = others[0]._turns if others else [deque() for _ in range(workers)]
        """Stages that wait to read, by worker: the first one is next, or reads."""
        self._backlog_done: dict[int, Action] = {}
        self._chance = np.random.default_rng([stage.settings.seed, 2])
        self.written = 0
        self.read = 0
        self._disks = of_workers("disk bandwidths", memory.disk_bytes_per_s, workers)
        stage.arrays["worker"]["spill"] = stage.settings.costs.tuple_bytes / self._disks
        stage.on_backlog_done = self._backlog_processed
        stage.on_grown = self.grown
        self.replicas: Callable[[int], list[int]] = lambda _: []
        """Partitions with their standby replica on a worker."""
        self.drop: Callable[[int], bool] = lambda _: False
        """Drops a replica of a worker; False if it has none to drop."""
        for change in memory.changes:
            stage.agenda.at(change.at_s, partial(self._change, change))
        for worker in range(workers):
            self._enqueue(worker, partial(self._fit, worker))
            self._measure(worker)

    def used(self, worker: int) -> int:
        """Bytes of state in the memory of a worker, with its replicas."""
        return int(self._stage.state_bytes()[[*self._in_memory[worker], *self.replicas(worker)]].sum())

    def has_room(self, worker: int, size: int) -> bool:
        """Whether a replica fits on a worker without spilled partitions."""
        return not self._on_disk[worker] and self.used(worker) + size <= self.limits[worker]

    def limit(self, worker: int) -> float:
        """Memory limit of a worker, for all stages on it."""
        return float(self.limits[worker])

    def available(self, worker: int) -> float:
        """Bytes of memory that other stages leave to this one."""
        return self.limit(worker) - sum(one.used(worker) for one in self._all if one is not self)

    def fit(self) -> None:
        """Spill or read back, after all state has changed."""
        for worker in range(self._stage.settings.workers):
            self._enqueue(worker, partial(self._fit, worker))

    def give(self, worker: int, partition: int, task: Task) -> None:
        """Run a task on a partition once it is in memory."""
        self._enqueue(worker, partial(self._fetch, worker, partition, task))

    def left(self, worker: int, partition: int) -> None:
        """Record the extraction of a partition."""
        self._in_memory[worker].remove(partition)
        self._measure(worker)

    def arrived(self, worker: int, partition: int) -> None:
        """Record the installation of a partition."""
        self._in_memory[worker].append(partition)
        self._measure(worker)
        self._enqueue(worker, partial(self._fit, worker))

    def crashed(self, worker: int) -> int:
        """Drop memory and disk of a crashed worker; counts lost tuples.

        With standby, the spilled input stays at the producers until it is sent again.
        """
        on_disk = list(self._on_disk[worker])
        lost = 0
        self._stage.arrays["partition"]["on_disk"][on_disk] = 0
        self._stage.arrays.world["on_disk"] -= len(on_disk)
        for partition in np.flatnonzero(self._stage.arrays["partition"]["owner"] == worker).tolist():
            lost += 0 if self._stage.standby else forget_spilled(self._stage.arrays, partition)
        for kept in (self._in_memory, self._on_disk):
            kept[worker].clear()
        self._tasks[worker].clear()
        self._end_turn(worker)
        self._backlog_done.pop(worker, None)
        self._measure(worker)
        return lost

    def _measure(self, worker: int) -> bool:
        """Give a worker the room that its memory has left; False if it has none."""
        free = int(min(self.limits[worker], UNUSED)) - sum(one.used(worker) for one in self._all)
        for one in self._all:
            record, growth = one._stage.arrays["worker"][worker], one._stage.settings.growth
            expires = growth is not None and growth.window is not None
            room = free // len(self._all)
            record["room"] = max(room, self.limits[worker] * UNMEASURED) if expires and free >= 0 else room
            record["full"] = 0 if free >= 0 else 2
        return free >= 0

    def grown(self, worker: int) -> None:
        """Write, or drop replicas of, what no longer fits."""
        if not self._measure(worker):
            self._enqueue(worker, partial(self._fit, worker))

    def _change(self, change: MemoryChange) -> None:
        self.limits[change.worker] = change.bytes
        self._enqueue(change.worker, partial(self._fit, change.worker))

    def _enqueue(self, worker: int, task: Task) -> None:
        self._tasks[worker].append(task)
        if len(self._tasks[worker]) == 1:
            task(partial(self._next, worker))

    def _next(self, worker: int) -> None:
        """Start the next task."""
        self._tasks[worker].popleft()
        if self._tasks[worker]:
            self._tasks[worker][0](partial(self._next, worker))

    def _fit(self, worker: int, through: Action) -> None:
        """Write one partition if the limit is exceeded, and repeat."""
        self._check_fits(worker)
        fits, largest = self._measure(worker), max(self._all, key=lambda one: one.used(worker))
        if fits or largest is not self:
            self._turn(worker)
            through()
            if not fits:
                largest._enqueue(worker, partial(largest._fit, worker))
        elif not self._stage.settled(worker):
            self._stage.when_settled(worker, lambda: self._enqueue(worker, partial(self._fit, worker)))
            through()
        elif self.drop(worker):
            self._fitted(worker, through)
        elif self._victim(worker) is None:  # its replicas are moving
            self._stage.after(self._memory.quantum_s, lambda: self._enqueue(worker, partial(self._fit, worker)))
            through()
        else:
            self._write(worker, partial(self._fitted, worker, through))

    def _fitted(self, worker: int, through: Action) -> None:
        self._enqueue(worker, partial(self._fit, worker))
        through()

    def _turn(self, worker: int) -> None:
        """Schedule a read of a spilled partition, if any."""
        if self._on_disk[worker] and self not in self._turns[worker]:
            self._turns[worker].append(self)
            if self._turns[worker][0] is self:
                self._begin_turn(worker)

    def _begin_turn(self, worker: int) -> None:
        """Read after input was served for a while."""
        self._stage.after(self._memory.quantum_s, lambda: self._enqueue(worker, partial(self._rotate, worker)))

    def _end_turn(self, worker: int) -> None:
        """Let the next stage read."""
        turns = self._turns[worker]
        was_first = bool(turns) and turns[0] is self
        if self in turns:
            turns.remove(self)
        if was_first and turns:
            turns[0]._begin_turn(worker)

    def _rotate(self, worker: int, through: Action) -> None:
        """Read the partition longest on disk, after making room, and process its spilled input."""
        if not self._on_disk[worker]:
            self._end_turn(worker)
            through()
            return
        if not self._stage.settled(worker):
            self._stage.when_settled(worker, lambda: self._enqueue(worker, partial(self._rotate, worker)))
            through()
            return
        coming = self._on_disk[worker][0]
        size = int(self._stage.state_bytes()[coming])
        needed = self.used(worker) + size
        while needed > self.available(worker) and self.drop(worker):
            needed = self.used(worker) + size
        if self._victim(worker) is not None and needed > self.available(worker):
            self._write(worker, lambda: self._rotate(worker, through))
        else:
            self._read(worker, coming, lambda: self._turned(worker, through))

    def _turned(self, worker: int, through: Action) -> None:
        self._end_turn(worker)
        self._turn(worker)
        through()

    def _fetch(self, worker: int, partition: int, task: Task, through: Action) -> None:
        if partition in self._on_disk[worker]:
            self._read(worker, partition, lambda: task(through))
        else:
            task(through)

    def _write(self, worker: int, done: Action) -> None:
        """Write the partition longest in memory."""
        victim = self._victim(worker)
        assert victim is not None, f"worker {worker} has nothing to write"
        self._in_memory[worker].remove(victim)

        def written() -> None:
            self._stage.arrays["partition"]["on_disk"][victim] = 1
            self._stage.arrays.world["on_disk"] += 1
            self._on_disk[worker].append(victim)
            self.written += 1
            done()

        self._stage.do(worker, Job(self._access_s(worker, int(self._stage.state_bytes()[victim])), 0.0, written))

    def _victim(self, worker: int) -> int | None:
        """The partition longest in memory that has state; None without any."""
        sizes = self._stage.state_bytes()
        return next((one for one in self._in_memory[worker] if sizes[one] > 0), None)

    def _check_fits(self, worker: int) -> None:
        """Check that some worker can hold each partition of this one, now that it has grown."""
        partition = max(self._in_memory[worker], key=self._stage.state_bytes().__getitem__, default=None)
        if self._stage.settings.growth is None or partition is None:
            return
        size, most = int(self._stage.state_bytes()[partition]), self.limits.max()
        if size > most:
            raise Outgrown(
                f"partition {partition} has grown to {size:,} bytes by {self._stage.now_s:g} s, but no worker has more"
                f" than {most:,.0f}; give workers more memory, keep less state, or use more partitions"
            )

    def _read(self, worker: int, partition: int, done: Action) -> None:
        """Read a partition and process its spilled input before any other."""
        record = self._stage.arrays["partition"][partition]
        spilled = int(record["spilled"]) * self._stage.settings.costs.tuple_bytes

        def read() -> None:
            record["on_disk"] = 0
            self._stage.arrays.world["on_disk"] -= 1
            self._on_disk[worker].remove(partition)
            self._in_memory[worker].append(partition)
            self.read += 1
            if not self._measure(worker) and (self._stage.settings.growth is not None or len(self._all) > 1):
                self._enqueue(worker, partial(self._fit, worker))
            self._backlog_done[worker] = done
            self._stage.process_backlog(worker, partition)

        size = int(self._stage.state_bytes()[partition]) + spilled
        self._stage.do(worker, Job(self._access_s(worker, size), 0.0, read))

    def _backlog_processed(self, worker: int) -> None:
        self._backlog_done.pop(worker)()

    def _access_s(self, worker: int, size: int) -> float:
        seek = max(0.0, float(self._chance.normal(self._memory.seek_s, self._memory.seek_sd_s)))
        return seek + size / float(self._disks[worker])


def check_room(chunks: Iterable[Chunk], settings: StageSettings, memory: Memory) -> None:
    """Check that some worker can hold each partition whose state grows.

    The rows of a partition that arrive within a window are all in its state once the last of them is processed,
    whatever the order, since none expires before. So this is the least that any run needs, if it loses no rows.
    """
    growth = settings.growth
    if growth is None:
        return
    most = max(memory.worker_bytes, *(change.bytes for change in memory.changes), 0.0)
    rows: NDArray[np.int64] = np.zeros(len(settings.partition_of), np.int64)
    held: NDArray[np.int64] = np.zeros(settings.partitions, np.int64)
    window = -1 if growth.window is None else growth.window
    kept: NDArray[np.int64] = np.empty((3, 0), np.int64)
    model = np.array([growth.group_bytes, growth.row_bytes, growth.rows_per_group, window], np.int64)
    read = 0
    for chunk in chunks:
        more = _columns(chunk, read, sized=growth.sized)
        if settings.join is not None and chunk.sides is not None:
            more = more[:, chunk.sides >= 0]
        first = kept.shape[1]
        kept = np.ascontiguousarray(np.concatenate([kept, more], axis=1))
        passed, worst = _fill(kept, first, settings.partition_of, model, rows, held, most)
        if worst >= 0:
            window_of = f" in a window of {duration(window / 1e6)}" if window >= 0 else ""
            raise BadInput(
                f"by row {read + worst + 1:,} partition {settings.partition_of[kept[1, first + worst]]} needs more than"
                f" {most:,.0f} bytes for its rows{window_of}, the most that any worker has; give workers more memory,"
                " keep less state, or use more partitions"
            )
        kept = kept[:, passed:] if window >= 0 else kept[:, :0]
        read += len(chunk.groups)


def _columns(chunk: Chunk, before: int, *, sized: bool) -> NDArray[np.int64]:
    """Times, groups and sizes, shape (3, rows)."""
    zeros = np.zeros(len(chunk.groups), np.int64)
    sizes = zeros if chunk.sizes is None or not sized else np.asarray(chunk.sizes, np.int64)
    if sizes.min(initial=0) < 0:
        raise BadInput(
            f"after row {before:,} a row has {sizes.min():,} bytes, but state cannot shrink as rows are added; fix"
            " column 'bytes'"
        )
    return np.stack([zeros if chunk.times is None else chunk.times, np.asarray(chunk.groups, np.int64), sizes])


@compiled
def _fill(
    kept: NDArray[np.int64],
    first: int,
    partition_of: NDArray[np.int32],
    model: NDArray[np.int64],
    rows: NDArray[np.int64],
    held: NDArray[np.int64],
    most: float,
) -> tuple[int, int]:
    """Add rows from `first` on; returns the first row still in the window, and the first that needs too much or -1."""
    group_bytes, row_bytes, rows_per_group, window = model
    passed = 0
    for row in range(first, kept.shape[1]):
        while window >= 0 and kept[0, passed] < kept[0, row] - window:
            group = kept[1, passed]
            rows[group] -= 1
            held[partition_of[group]] -= row_bytes + kept[2, passed] + (group_bytes if rows[group] == 0 else 0)
            passed += 1
        group = kept[1, row]
        if rows_per_group > 0 and rows[group] == rows_per_group:
            continue
        rows[group] += 1
        held[partition_of[group]] += row_bytes + kept[2, row] + (group_bytes if rows[group] == 1 else 0)
        if held[partition_of[group]] > most:
            return passed, row - first
    return passed, -1
