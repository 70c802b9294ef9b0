"""Jobs of consumers besides tuples, and the queue of timed actions."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TypeAlias

import numpy as np

from adapt.core.stage.engine.kernel.orders import wake
from adapt.core.stage.records.arrays import Arrays

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
