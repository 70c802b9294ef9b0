"""Histories of a small stage, to check rebalancing policies on.

A fluid model: each partition needs a share of a worker's time, moves take effect at once, and a worker that needs more
than all its time processes less of each partition.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from adapt.core.lab.answers import Impossible, checked_moves
from adapt.core.lab.suite import History, Subject, Trial
from adapt.core.lab.view import view_of_round
from adapt.core.stage.movement.controller import Move, Observation

PERIOD_S = 1.0
ROWS = 10_000
"""Rows that a worker processes in a period."""

STATE_BYTES = 1_000_000
"""Mean state of a partition."""

ROUNDS = 120
"""Rounds at still load; in the last quarter nothing may move."""

Plan = Callable[[Observation], Sequence[Move]]


@dataclass(slots=True, eq=False)
class Cluster:
    """Workers with partitions, at one time."""

    workers: int
    work: NDArray[np.float64]  # share of a worker's time that each partition needs, shape (partitions,)
    owners: NDArray[np.int64]  # worker of each partition, shape (partitions,)
    state: NDArray[np.int64]  # state of each partition in bytes, shape (partitions,)
    limit: float = np.inf  # memory of a worker in bytes
    down: set[int] = field(default_factory=set)  # workers that are down
    at_s: float = 0.0  # time

    def observed(self) -> Observation:
        """Statistics of the last period, of live workers by rank."""
        up = [each for each in range(self.workers) if each not in self.down]
        ranks = {number: rank for rank, number in enumerate(up)}
        needed = np.bincount(self.owners, self.work, self.workers)
        busy = np.minimum(1.0, needed)
        done = self.work * (busy / np.maximum(needed, 1e-12))[self.owners]
        return Observation(
            collected_s=np.full(len(up), PERIOD_S),
            idle_s=PERIOD_S * (1 - busy[up]),
            processed=np.rint(ROWS * done).astype(np.int64),
            owners=np.array([ranks[each] for each in self.owners.tolist()], np.int32),
            state_bytes=self.state.copy(),
            on_disk=self._on_disk(),
            unprocessed=np.zeros(len(self.work), np.int64),
            available_bytes=np.full(len(up), self.limit),
            at_s=self.at_s,
            in_flight=np.rint(ROWS * (self.work - done)).astype(np.int64),
            numbers=tuple(up) if self.down else (),
            in_all=self.workers if self.down else 0,
        )

    def crash(self, worker: int) -> None:
        """Take a worker down; those with the fewest partitions take over."""
        self.down.add(worker)
        for partition in np.flatnonzero(self.owners == worker).tolist():
            counts = np.bincount(self.owners, minlength=self.workers).astype(np.float64)
            counts[sorted(self.down)] = np.inf
            self.owners[partition] = int(np.argmin(counts))

    def decide(self, plan: Plan, *, fits: bool = False) -> str:
        """A round: the moves of a policy, carried out, in words.

        Args:
            fits: Whether moves must fit in the memory of their receivers.
        """
        observed = self.observed()
        answer = plan(observed)
        self.at_s += PERIOD_S
        numbers = observed.numbers or tuple(range(self.workers))
        named = {}
        for move in answer:
            if move.partition in named:
                raise Impossible(f"at {observed.at_s:g} s moves partition {move.partition} twice")
            named[move.partition] = numbers[move.receiver] if 0 <= move.receiver < len(numbers) else move.receiver
        view = view_of_round(observed)
        moves = checked_moves(view, named)
        free = view.free_bytes.copy()
        for partition, to in moves.items():
            free[to] -= self.state[partition]
            if fits and free[to] < 0:
                raise Impossible(
                    f"at {observed.at_s:g} s moves partition {partition} of {self.state[partition]:,} bytes to worker"
                    f" {to}, which has {view.free_bytes[to]:,.0f} bytes left"
                )
        said = [f"partition {one} from worker {self.owners[one]} to {to}" for one, to in moves.items()]
        for partition, to in moves.items():
            self.owners[partition] = to
        return f"moves {', '.join(said)}" if said else ""

    def _on_disk(self) -> NDArray[np.bool_]:
        """Partitions beyond the memory of their worker, the last ones first."""
        on_disk: NDArray[np.bool_] = np.zeros(len(self.state), np.bool_)
        for worker in range(self.workers if np.isfinite(self.limit) else 0):
            own = np.flatnonzero(self.owners == worker)
            on_disk[own[np.cumsum(self.state[own]) > self.limit]] = True
        return on_disk


def cluster(seed: int, workers: int, partitions: int, utilization: float, room: float = np.inf) -> Cluster:
    """A cluster with uneven loads, and most partitions on the first worker.

    Args:
        utilization: Mean utilization.
        room: Memory of all workers over the state of all partitions.
    """
    random = np.random.default_rng(seed)
    work = random.lognormal(0.0, 0.5, partitions)
    owners = (np.arange(partitions) % (workers + 1)) % workers
    state = random.integers(STATE_BYTES // 2, 3 * STATE_BYTES // 2, partitions)
    return Cluster(
        workers, work * utilization * workers / work.sum(), owners, state, room * float(state.sum()) / workers
    )


def still(seed: int) -> History:
    """The same load in every round."""

    def run(plan: Plan) -> Iterable[str]:
        stage = cluster(seed, workers=8, partitions=64, utilization=0.7)
        return (stage.decide(plan) for _ in range(ROUNDS))

    return run


def changing(seed: int, workers: int, partitions: int) -> History:
    """Loads that change: uneven, idle, one hot partition, overload."""

    def run(plan: Plan) -> Iterable[str]:
        stage, random = cluster(seed, workers, partitions, 0.6), np.random.default_rng(seed)
        kinds = cycle(("uneven", "idle", "hot", "overload", "one"))
        for at in range(60):
            if at % 6 == 0:
                _change(stage, next(kinds), random)
            yield stage.decide(plan)

    return run


def _change(stage: Cluster, kind: str, random: np.random.Generator) -> None:
    """Give partitions other loads."""
    work = random.lognormal(0.0, 1.0, len(stage.work))
    if kind == "hot":
        work[random.integers(len(work))] = 9 * work.sum()
    if kind == "one":
        work = np.eye(1, len(work), int(random.integers(len(work))))[0]
    mean = {"idle": 0.0, "overload": 1.5}.get(kind, 0.6)
    stage.work = work * mean * stage.workers / work.sum()


def crashing(seed: int) -> History:
    """Workers go down, several at once too, and come back."""

    def run(plan: Plan) -> Iterable[str]:
        stage, random = cluster(seed, workers=5, partitions=30, utilization=0.6), np.random.default_rng(seed)
        for at in range(80):
            if at % 10 == 3 and len(stage.down) < stage.workers - 2:
                stage.crash(int(random.choice([each for each in range(stage.workers) if each not in stage.down])))
            if at % 20 == 19:
                stage.down.clear()
            if at % 25 == 0:
                _change(stage, "uneven", random)
            yield stage.decide(plan)

    return run


def limited(room: float, *, fits: bool) -> History:
    """Uneven loads with little memory, or with enough for all."""

    def run(plan: Plan) -> Iterable[str]:
        stage, random = cluster(3, workers=4, partitions=24, utilization=0.6, room=room), np.random.default_rng(3)
        for at in range(60):
            if at % 15 == 0:
                _change(stage, "uneven", random)
            yield stage.decide(plan, fits=fits)

    return run


def large() -> History:
    """Many workers and partitions."""

    def run(plan: Plan) -> Iterable[str]:
        stage = cluster(1, workers=64, partitions=4096, utilization=0.7)
        return (stage.decide(plan) for _ in range(5))

    return run


def moves_subject(name: str, make: Callable[[], Plan]) -> Subject:
    """A rebalancing policy with its histories.

    Args:
        make: Makes a policy for one run.
    """
    sizes = ((2, 1), (2, 16), (3, 5), (6, 48), (8, 8))
    return Subject(
        name=name,
        make=make,
        possible=Trial("moves are possible", tuple(changing(at, *size) for at, size in enumerate(sizes))),
        rests=Trial("rests at still load", tuple(map(still, range(3)))),
        crashes=Trial("survives crashes", tuple(map(crashing, range(3)))),
        large=Trial("decides in time", (large(),)),
        memory=(limited(1.3, fits=True), limited(1.3, fits=False), limited(np.inf, fits=False)),
    )
