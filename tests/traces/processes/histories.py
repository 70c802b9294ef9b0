"""Random histories of a stage in processes: rows, moves, rescales, killed workers."""

from dataclasses import dataclass, field

import numpy as np

from adapt.core.stage.assembly import Actors
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.faults import Crash, FaultSchedule
from adapt.core.stage.conditions.names import Migrating
from adapt.core.stage.conditions.settings import Costs, Network, StageSettings
from adapt.core.stage.control.workers import Migration, Scaling
from adapt.core.stage.movement.controller import Move
from adapt.core.stage.processes.backend import InProcesses
from adapt.core.stage.simulate import Simulated, simulate
from adapt.traces.processes.launch import LoopbackWorkers
from tests.core.stage.control.test_elasticity import AnyPlacement, AnyScaler

SPAN_S = 0.4
ROWS = 1200


@dataclass
class AnyMoves:
    """Moves any partitions anywhere."""

    chance: np.random.Generator

    def collection_s(self, previous):
        return float(self.chance.uniform(0.002, 0.02))

    def plan(self, observed):
        picked = self.chance.permutation(len(observed.owners))[: self.chance.integers(0, 4)].tolist()
        owners = observed.owners[picked].tolist()
        receivers = self.chance.integers(1, observed.workers, len(picked)) + owners
        return [Move(*each) for each in zip(picked, owners, (receivers % observed.workers).tolist(), strict=True)]


@dataclass
class Launched:
    """Starts the processes of a stage, and knows them all."""

    work: str = "cpu"
    keys: tuple = ()
    kind: type = LoopbackWorkers
    started: list = field(default_factory=list)

    def __call__(self, settings):
        self.started.append(self.kind(settings, self.work, self.keys))
        return self.started[-1]

    @property
    def backend(self):
        return InProcesses(self)

    @property
    def all_ended(self):
        return all(process.poll() is not None for one in self.started for process in one._started)


@dataclass
class History:
    """A stage, its rows, and what happens to it."""

    settings: StageSettings
    groups: np.ndarray
    due_s: np.ndarray
    actors: Actors
    work: str = "cpu"

    @classmethod
    def drawn(cls, seed):
        """Anything, by seed: some keys hotter than others, all rows of a key from one producer."""
        chance = np.random.default_rng(seed)
        n = int(chance.integers(2, 5))
        partitions, groups = int(chance.integers(2, 13)), int(chance.integers(2, 60))
        settings = StageSettings(
            workers=n,
            owners=chance.integers(0, n, partitions).astype(np.int32),
            partition_of=chance.integers(0, partitions, groups).astype(np.int32),
            buffer_tuples=int(chance.integers(12, 80)),
            network=Network(
                connection_tuples=int(chance.integers(12, 30)), packet_tuples=int(chance.choice([1, 1, 5]))
            ),
            costs=Costs(service_s=float(chance.choice([1e-6, 5e-5])), service_sd_s=0.0),
            state_tuples=chance.integers(0, 2000, partitions),
            seed=seed,
        )
        rows = np.minimum(chance.zipf(1.4, ROWS), groups) - 1
        due_s = np.sort(chance.uniform(0, SPAN_S, ROWS))
        work = "wait" if chance.random() < 0.1 else "cpu"
        if chance.random() < 0.2:
            live = [each for each in Migrating if each is not Migrating.RESTART]  # processes refuse that
            migration = Migration(Migrating(chance.choice(live)), int(chance.integers(1, 5)))
            placement = AnyPlacement(partitions, chance)
            scaling = Scaling(AnyScaler(int(chance.integers(1, n + 1)), n, chance), placement, 0.02, migration)
            return cls(settings, rows, due_s, Actors(scaling=scaling), work)
        faults, standby = crashes(n, chance), bool(chance.random() < 0.5)
        return cls(settings, rows, due_s, Actors(AnyMoves(chance), faults=faults, standby=standby), work)

    @property
    def source(self):
        producers = (self.groups % self.settings.workers).astype(np.int32)
        halves = np.array_split(np.arange(len(self.groups)), 2)
        chunk = Chunk(self.groups.astype(np.int32), producers, self.due_s)
        return Rows(lambda: (chunk.taken(half) for half in halves))

    def run(self, launched) -> Simulated:
        launched.work = self.work
        return simulate(
            *(self.settings, self.source, None, self.actors),
            interval_s=0.1,
            journal=len(self.groups),
            backend=launched.backend,
        )


def crashes(workers, chance):
    """Up to three, some of workers that come back; one worker is always there."""
    faults = []
    for _ in range(int(chance.integers(0, 4))):
        worker, at_s = int(chance.integers(1, workers)), float(chance.uniform(0.02, SPAN_S))
        back_s = at_s + float(chance.uniform(0.01, 0.2)) if chance.random() < 0.7 else np.inf
        if all(one.worker != worker or one.back_s < at_s for one in faults):
            faults.append(Crash(worker, at_s, back_s))
    faults.sort(key=lambda one: one.at_s)
    kept = [one for at, one in enumerate(faults) if all(one.worker != other.worker for other in faults[:at])]
    return FaultSchedule(tuple(kept), float(chance.uniform(0.005, 0.05)))


def check(history, done) -> None:
    """Nothing is doubled or out of order in a key, and what is not lost is processed."""
    rows = len(history.groups)
    assert done.census.whole
    assert done.census.processed + done.census.lost == rows
    assert len(done.journal) == done.census.processed
    for group in range(len(history.settings.partition_of)):
        numbers = done.journal["number"][done.journal["group"] == group]
        given = np.flatnonzero(history.groups == group)
        assert (np.diff(numbers) > 0).all()
        assert np.isin(numbers, given).all()
        if not done.census.lost:
            assert numbers.tolist() == given.tolist()
    crashed = bool(done.crashes)
    assert not done.census.lost or (crashed and not history.actors.standby)
    assert done.keys_checked is not None
    if not any(one.lost_state_bytes or one.lost_groups for one in done.crashes):
        assert done.keys_checked == len(np.unique(history.groups))
    whole = [moved for moved in done.moves if "restarted" in moved.times_s]
    assert crashed or len(whole) == len(done.moves)
