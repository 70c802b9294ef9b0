"""Histories of a small pool of workers, to check scaling policies on."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from adapt.core.lab.answers import checked_workers
from adapt.core.lab.suite import History, Subject, Trial
from adapt.core.stage.control.workers import PartitionsSeen, Seen

PERIOD_S = 1.0
ROWS = 1_000
"""Rows that a worker processes in a period."""

WAITING = 200
"""Rows that wait where workers keep up."""

PERIODS = 80
"""Periods at still load; in the last quarter the answer may not change."""

Wanted = Callable[[Seen], int]


@dataclass(slots=True, eq=False)
class Pool:
    """Workers at one time, with the work that they are offered."""

    most: int  # number of workers in the pool
    partitions: int
    workers: int  # number of active workers
    at_s: float = 0.0  # time
    processed: NDArray[np.int64] = field(init=False)

    def __post_init__(self) -> None:
        self.processed = np.zeros(self.partitions, np.int64)

    def decide(self, wanted: Wanted, work: float, waiting: int) -> str:
        """The change of a period, in words.

        The answer is followed within the pool.

        Args:
            work: Offered work, in workers.
            waiting: Rows that wait.
        """
        before = self.workers
        answer = checked_workers(wanted(self._seen(work, waiting)))
        self.workers = min(answer, self.most)
        return "" if self.workers == before else f"wants {answer} instead of {before} workers"

    def _seen(self, work: float, waiting: int) -> Seen:
        m = self.workers
        self.at_s += PERIOD_S
        busy_s = np.full(m, min(1.0, work / m) * PERIOD_S)
        processed = np.rint(busy_s * ROWS).astype(np.int64)
        owners = np.arange(self.partitions) % m
        self.processed = self.processed + (processed[owners] // np.bincount(owners, minlength=m)[owners])
        now = PartitionsSeen(
            pool=self.most,
            owners=owners.astype(np.int32),
            processed=self.processed,
            queued=np.full(self.partitions, waiting // self.partitions),
            state_bytes=np.full(self.partitions, 1_000_000),
        )
        return Seen(
            at_s=self.at_s,
            collected_s=PERIOD_S,
            workers=m,
            busy_s=busy_s,
            processed=processed,
            loads=busy_s.copy(),
            arrived=round(work * ROWS),
            waiting=waiting,
            partitions=lambda: now,
        )


def still(work: float) -> History:
    """The same arrivals and the same rows waiting in every period."""

    def run(wanted: Wanted) -> Iterable[str]:
        pool = Pool(16, 64, workers=8)
        return (pool.decide(wanted, work, WAITING) for _ in range(PERIODS))

    return run


def changing(seed: int, most: int) -> History:
    """Work that rises, falls, stops and exceeds the pool."""

    def run(wanted: Wanted) -> Iterable[str]:
        pool, random = Pool(most, 4 * most, workers=1), np.random.default_rng(seed)
        for level in (0.3, 0.0, 0.9, 3.0, 0.1, *random.uniform(0, 2, 5).tolist()):
            for at in range(6):
                backlog = max(0.0, level - 1) * at * most * ROWS
                yield pool.decide(wanted, level * most, round(backlog) + (WAITING if level else 0))

    return run


def shrinking() -> History:
    """Workers disappear without being asked for, down to one, and come back."""

    def run(wanted: Wanted) -> Iterable[str]:
        pool = Pool(8, 32, workers=8)
        for at in range(40):
            if at % 5 == 3:
                pool.workers = max(1, pool.workers - 3)
            if at % 20 == 19:
                pool.workers = pool.most
            yield pool.decide(wanted, 3.3, WAITING)

    return run


def large() -> History:
    """Many workers and partitions."""

    def run(wanted: Wanted) -> Iterable[str]:
        pool = Pool(512, 32_768, workers=256)
        return (pool.decide(wanted, 200.0, WAITING) for _ in range(5))

    return run


def scaling_subject(name: str, make: Callable[[], Wanted]) -> Subject:
    """A scaling policy with its histories.

    Args:
        make: Makes a policy for one run.
    """
    return Subject(
        name=name,
        make=make,
        possible=Trial("answers are possible", tuple(changing(seed, most) for seed, most in enumerate((1, 4, 32)))),
        rests=Trial("rests at still load", tuple(map(still, (0.0, 3.3, 12.0)))),
        crashes=Trial("survives crashes", (shrinking(),)),
        large=Trial("decides in time", (large(),)),
    )
