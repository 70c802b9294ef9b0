"""Random histories of a stage in processes: rows, moves, rescales."""

from dataclasses import dataclass, field

import numpy as np

from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.names import Migrating
from adapt.core.stage.conditions.settings import Costs, Network, StageSettings
from adapt.core.stage.control.workers import Migration, Scaling
from adapt.core.stage.movement.controller import Move
from adapt.core.stage.simulate import Actors, Simulated
from reality.processes.launch import LoopbackWorkers
from reality.processes.running import run_in_processes
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

    kind: type = LoopbackWorkers
    started: list = field(default_factory=list)

    def __call__(self, settings):
        self.started.append(self.kind(settings))
        return self.started[-1]

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
        if chance.random() < 0.2:
            live = [each for each in Migrating if each is not Migrating.RESTART]  # processes refuse that
            migration = Migration(Migrating(chance.choice(live)), int(chance.integers(1, 5)))
            placement = AnyPlacement(partitions, chance)
            scaling = Scaling(AnyScaler(int(chance.integers(1, n + 1)), n, chance), placement, 0.02, migration)
            return cls(settings, rows, due_s, Actors(scaling=scaling))
        return cls(settings, rows, due_s, Actors(AnyMoves(chance)))

    @property
    def source(self):
        producers = (self.groups % self.settings.workers).astype(np.int32)
        halves = np.array_split(np.arange(len(self.groups)), 2)
        chunk = Chunk(self.groups.astype(np.int32), producers, self.due_s)
        return Rows(lambda: (chunk.taken(half) for half in halves))

    def run(self, launched) -> Simulated:
        return run_in_processes(self.settings, self.source, None, self.actors, interval_s=0.1, launch=launched)


def check(history, done) -> None:
    """All rows are processed and all moves end; the order in each key was checked by the run."""
    assert done.census.whole
    assert done.census.processed == len(history.groups)
    assert all("restarted" in moved.times_s for moved in done.moves)
