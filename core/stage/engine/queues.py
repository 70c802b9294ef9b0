"""Queues of other engines: logs, micro-batches and checkpoints."""

from collections import deque
from collections.abc import Callable
from dataclasses import astuple, dataclass
from functools import partial
from heapq import heappop, heappush
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from adapt.core.stage.conditions.arrivals import Feed
from adapt.core.stage.conditions.names import QueueingName
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.engine.kernel.connections import arrive_alone, send_barriers
from adapt.core.stage.engine.kernel.orders import start, wake
from adapt.core.stage.engine.kernel.routing import end_batch
from adapt.core.stage.records.arrays import NONE, Arrays
from adapt.core.stage.records.world import POOLED, STAMP

Action: TypeAlias = Callable[[], None]
"""A scheduled action."""


class Agenda:
    """Event queue ordered by (time, insertion)."""

    def __init__(self) -> None:
        """An empty queue."""
        self._entries: list[tuple[float, int, Action]] = []
        self._entered = 0

    @property
    def next_s(self) -> float:
        """Time of the next action; infinite if the queue is empty."""
        return self._entries[0][0] if self._entries else np.inf

    def at(self, time_s: float, action: Action) -> None:
        """Schedule an action."""
        heappush(self._entries, (time_s, self._entered, action))
        self._entered += 1

    def take(self) -> Action:
        """Remove and return the next action."""
        return heappop(self._entries)[2]


@dataclass(frozen=True, slots=True)
class Job:
    """Work besides tuples: disk seconds, then CPU seconds, then an action."""

    io_s: float
    cpu_s: float
    done: Action


class Jobs:
    """Job queue of each consumer, and actions of messages not yet read."""

    def __init__(self, arrays: Arrays, workers: int) -> None:
        """Start with empty queues."""
        self._arrays = arrays
        self._jobs: list[deque[Job]] = [deque() for _ in range(workers)]
        self._unread: list[deque[Action]] = [deque() for _ in range(workers)]

    def add(self, worker: int, job: Job) -> None:
        """Queue a job at a consumer."""
        self._jobs[worker].append(job)
        if len(self._jobs[worker]) == 1:
            self._post(worker)

    def when_read(self, worker: int, action: Action) -> None:
        """Run an action now, or after the current job of a consumer."""
        if self._jobs[worker]:
            self._unread[worker].append(action)
        else:
            action()

    def finish(self, worker: int) -> None:
        """Finish the current job: read messages, then start the next job."""
        job = self._jobs[worker].popleft()
        while self._unread[worker]:
            self._unread[worker].popleft()()
        job.done()
        if self._jobs[worker] and self._arrays["worker"]["job"][worker] == 0:
            self._post(worker)

    def forget(self, worker: int) -> None:
        """Drop jobs and messages of a crashed consumer."""
        self._jobs[worker].clear()
        self._unread[worker].clear()

    def _post(self, worker: int) -> None:
        """Hand a consumer its next job."""
        record = self._arrays["worker"][worker]
        job = self._jobs[worker][0]
        record["job"], record["job_io"], record["job_cpu"] = 1, job.io_s, job.cpu_s
        wake(self._arrays.worlds, worker)


_FIRST_PLACES = 64


class Stage(Protocol):
    """What queues need of a running stage."""

    settings: StageSettings
    arrays: Arrays
    agenda: Agenda
    feed: Feed | None

    @property
    def now_s(self) -> float:
        """Current simulated time."""

    @property
    def drained(self) -> bool:
        """Whether all tuples are processed."""

    def after(self, delay_s: float, action: Action, /) -> None:
        """Run an action after a delay."""

    def do(self, worker: int, job: Job, /) -> None:
        """Queue a job at a consumer."""

    def read_ahead(self) -> None:
        """Read more rows of the stream."""


class Queues:
    """Queues of Flux: the engine needs no help."""

    def __init__(self) -> None:
        """Start without micro-batches and checkpoints."""
        self.batches: list[tuple[float, float, int]] = []
        """Start, end and rows of each micro-batch."""
        self.checkpoints: list[tuple[float, float]] = []
        """Start and end of each checkpoint."""

    def begin(self) -> None:
        """Prepare the queues before any tuple is read."""

    def answer(self) -> None:
        """Do what the compiled engine has called for."""


class SharedPlaces(Queues):
    """Places for buffered tuples, given to producers when they need them."""

    def __init__(self, stage: Stage, most: int) -> None:
        """Start without places.

        Args:
            most: Places of all producers together; beyond, they wait.
        """
        super().__init__()
        self._stage = stage
        self._most = most
        self._given = 0

    def begin(self) -> None:
        """Give each producer its first places."""
        for producer in range(self._stage.settings.workers):
            self._give(producer, _FIRST_PLACES)

    def answer(self) -> None:
        """Give places to producers without any: as many again as they have."""
        producers = self._stage.arrays["producer"]
        for producer in np.flatnonzero((producers["hungry"] == 2) & (producers["free"] == NONE)).tolist():
            self._give(producer, max(_FIRST_PLACES, int(producers["held"][producer])))

    def _give(self, producer: int, places: int) -> None:
        arrays = self._stage.arrays
        end = min(self._given + places, self._most)
        if end == self._given:
            arrays.world["shared"] = 0
            return
        if end > len(arrays["pooled"]):
            enlarged = np.zeros(min(self._most, max(end, 2 * len(arrays["pooled"]))), POOLED)
            enlarged[: self._given] = arrays["pooled"][: self._given]
            arrays.put("pooled", enlarged)
        links = np.arange(self._given + 1, end + 1)
        links[-1] = NONE
        arrays["pooled"]["link"][self._given : end] = links
        arrays["producer"]["free"][producer] = self._given
        self._given = end


class Batches(SharedPlaces):
    """Micro-batches, one after the other."""

    def __init__(self, stage: Stage) -> None:
        """Start before the first micro-batch."""
        super().__init__(stage, stage.settings.queueing.log_rows)
        self._started_s = 0.0
        self._rows = 0

    def begin(self) -> None:
        """Start the first micro-batch."""
        super().begin()
        self._stage.after(0.0, self._trigger)

    def answer(self) -> None:
        """End a processed micro-batch, and start the next."""
        super().answer()
        if self._rows and self._stage.arrays.world["batch_left"] == 0:
            end_batch(self._stage.arrays.worlds)
            self.batches.append((self._started_s, self._stage.now_s, self._rows))
            self._rows = 0
            self._stage.agenda.at(self._on_trigger(self._stage.now_s), self._trigger)

    def _on_trigger(self, from_s: float) -> float:
        """The first trigger from a time on; a late one comes at once."""
        every_s = self._stage.settings.queueing.trigger_s
        return max(from_s, self._started_s + every_s)

    def _trigger(self) -> None:
        """Take the rows that have arrived, oldest first, or wait for one."""
        stage, of = self._stage, self._stage.settings.queueing
        arrays, now_s = stage.arrays, stage.now_s
        feed = stage.feed
        assert feed is not None
        while True:
            producers = arrays["producer"]
            left = producers["rows_end"] - producers["row"]
            spans = [slice(first, end) for first, end in zip(producers["row"], producers["rows_end"], strict=True)]
            rows = np.concatenate([arrays["row"][span] for span in spans])
            due = rows["due"] <= now_s
            if feed.ended or int(due.sum()) >= of.batch_rows or feed.horizon > now_s:
                break
            stage.read_ahead()
        if not due.any():
            if len(rows) or not feed.ended:
                at_s = float(rows["due"].min()) if len(rows) else feed.horizon
                if of.trigger_s:
                    at_s = now_s + of.trigger_s * np.ceil((at_s - now_s) / of.trigger_s)
                stage.agenda.at(max(at_s, np.nextafter(now_s, np.inf)), self._trigger)
            return
        of_rows = np.repeat(np.arange(len(left)), left)[due]
        if len(of_rows) > of.batch_rows:
            ages = rows["due" if feed.timed else "number"][due]
            of_rows = of_rows[np.argpartition(ages, of.batch_rows - 1)[: of.batch_rows]]
        self._started_s, self._rows = now_s, len(of_rows)
        admits = np.bincount(of_rows, minlength=len(left))
        stage.after(of.batch_overhead_s, partial(self._run, admits))

    def _run(self, admits: NDArray[np.int64]) -> None:
        arrays = self._stage.arrays
        arrays["producer"]["admits"] = admits
        arrays.world["batch_left"] = self._rows
        if len(arrays["stamp"]) < self._rows:
            arrays.put("stamp", np.empty(self._rows, STAMP))
        start(arrays.worlds)


class Checkpoints(SharedPlaces):
    """Bounded buffers, and checkpoints by barriers."""

    def __init__(self, stage: Stage) -> None:
        """Start without a checkpoint."""
        settings = stage.settings
        super().__init__(stage, settings.workers * settings.buffer_tuples)
        self._started_s = 0.0
        self._aligning: set[int] = set()
        self._waiting: set[int] = set()

    def begin(self) -> None:
        """Schedule the first checkpoint."""
        super().begin()
        every_s = self._stage.settings.queueing.checkpoint_s
        if every_s is not None:
            self._stage.after(every_s, self._trigger)

    def answer(self) -> None:
        """Let workers whose barriers have all arrived take their part."""
        super().answer()
        missing = self._stage.arrays["barrier"]["missing"]
        aligned = [worker for worker in sorted(self._aligning) if missing[worker] == 0]
        self._aligning.difference_update(aligned)
        self._take_part(aligned)

    def _trigger(self) -> None:
        stage, workers = self._stage, self._stage.settings.workers
        if stage.drained:
            return
        self._started_s, self._waiting = stage.now_s, set(range(workers))
        latency_s = stage.settings.network.latency_s
        if stage.settings.queueing.aligned:
            self._aligning = set(self._waiting)
            send_barriers(stage.arrays.worlds)
            alone = np.flatnonzero(stage.arrays["channel"]["ahead"] == 0).tolist()
            stage.after(latency_s, partial(self._arrive, alone))
        else:
            stage.after(latency_s, lambda: self._take_part(sorted(self._waiting)))

    def _arrive(self, channels: list[int]) -> None:
        """Barriers arrive of channels that had no tuples."""
        for channel in channels:
            arrive_alone(self._stage.arrays.worlds, channel)
        for worker in range(self._stage.settings.workers):
            wake(self._stage.arrays.worlds, worker)

    def _take_part(self, workers: list[int]) -> None:
        pause_s = self._stage.settings.queueing.checkpoint_pause_s
        for worker in workers:
            self._stage.do(worker, Job(pause_s, 0.0, partial(self._done, worker)))

    def _done(self, worker: int) -> None:
        self._waiting.discard(worker)
        if not self._waiting:
            every_s = self._stage.settings.queueing.checkpoint_s or 0.0
            self.checkpoints.append((self._started_s, self._stage.now_s))
            self._stage.agenda.at(max(self._stage.now_s, self._started_s + every_s), self._trigger)


def queues_of(stage: Stage) -> Queues:
    """The queues of a stage that need help from Python."""
    queueing = stage.settings.queueing
    if queueing.engine is QueueingName.FLUX:
        return Queues()
    if queueing.engine is QueueingName.KAFKA:
        return SharedPlaces(stage, queueing.log_rows)
    return Batches(stage) if queueing.engine is QueueingName.SPARK else Checkpoints(stage)


@dataclass(frozen=True, slots=True)
class Census:
    """Number of tuples in each place, out of all generated ones."""

    generated: int
    processed: int
    at_consumers: int
    in_connections: int
    in_pools: int
    spilled: int
    at_twins: int = 0
    lost: int = 0
    shed: int = 0

    @property
    def whole(self) -> bool:
        """Whether every tuple is in exactly one place."""
        generated, *places = astuple(self)
        return bool(generated == sum(places))
