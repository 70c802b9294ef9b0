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

    def __init__(self, arrays: Arrays, sites: int) -> None:
        """No consumer has a job."""
        self._arrays = arrays
        self._jobs: list[deque[Job]] = [deque() for _ in range(sites)]
        self._unread: list[deque[Action]] = [deque() for _ in range(sites)]

    def add(self, site: int, job: Job) -> None:
        """Give a consumer a job, behind those that it has."""
        self._jobs[site].append(job)
        if len(self._jobs[site]) == 1:
            self._post(site)

    def when_read(self, site: int, action: Action) -> None:
        """Do something when a consumer reads its messages: now, or when the job that it does is done."""
        if self._jobs[site]:
            self._unread[site].append(action)
        else:
            action()

    def finish(self, site: int) -> None:
        """A consumer has done its first job: it reads its messages, then turns to the next."""
        job = self._jobs[site].popleft()
        while self._unread[site]:
            self._unread[site].popleft()()
        job.done()
        if self._jobs[site] and self._arrays["site"]["job"][site] == 0:
            self._post(site)

    def forget(self, site: int) -> None:
        """A consumer dies with its jobs and messages."""
        self._jobs[site].clear()
        self._unread[site].clear()

    def _post(self, site: int) -> None:
        """Put a consumer's next job before it."""
        record = self._arrays["site"][site]
        job = self._jobs[site][0]
        record["job"], record["job_io"], record["job_cpu"] = 1, job.io_s, job.cpu_s
        wake(self._arrays.worlds, site)
