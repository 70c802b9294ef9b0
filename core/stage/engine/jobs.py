"""Jobs of consumers beside their tuples, and the messages that wait until a job is done."""

from collections import deque
from dataclasses import dataclass

from adapt.core.stage.engine.event_queue import Action
from adapt.core.stage.engine.kernel.orders import wake
from adapt.core.stage.records.arrays import Arrays


@dataclass(frozen=True, slots=True)
class Job:
    """Work of a consumer beside its tuples: seconds on its disk, then seconds of CPU, and what follows."""

    io_s: float
    cpu_s: float
    done: Action


class Jobs:
    """The jobs of each consumer in order, of which it does the first, and what follows from messages not yet read."""

    def __init__(self, arrays: Arrays, workers: int) -> None:
        """No consumer has a job."""
        self._arrays = arrays
        self._jobs: list[deque[Job]] = [deque() for _ in range(workers)]
        self._unread: list[deque[Action]] = [deque() for _ in range(workers)]

    def add(self, worker: int, job: Job) -> None:
        """Give a consumer a job, behind those that it has."""
        self._jobs[worker].append(job)
        if len(self._jobs[worker]) == 1:
            self._post(worker)

    def when_read(self, worker: int, action: Action) -> None:
        """Do something when a consumer reads its messages: now, or when the job that it does is done."""
        if self._jobs[worker]:
            self._unread[worker].append(action)
        else:
            action()

    def finish(self, worker: int) -> None:
        """A consumer has done its first job: it reads its messages, then turns to the next."""
        job = self._jobs[worker].popleft()
        while self._unread[worker]:
            self._unread[worker].popleft()()
        job.done()
        if self._jobs[worker] and self._arrays["worker"]["job"][worker] == 0:
            self._post(worker)

    def forget(self, worker: int) -> None:
        """A consumer dies with its jobs and messages."""
        self._jobs[worker].clear()
        self._unread[worker].clear()

    def _post(self, worker: int) -> None:
        """Put a consumer's next job before it."""
        record = self._arrays["worker"][worker]
        job = self._jobs[worker][0]
        record["job"], record["job_io"], record["job_cpu"] = 1, job.io_s, job.cpu_s
        wake(self._arrays.worlds, worker)
