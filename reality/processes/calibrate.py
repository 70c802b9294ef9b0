"""Cost profile of a stage in worker processes on this machine."""

from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter

import numpy as np
import pyarrow as pa

from adapt.cli.options.replay.costs import CostOptions
from adapt.core.costs.calibration import Calibration
from adapt.core.costs.profile import CostSource, Profile, Restart, Transport
from adapt.core.elastic.policies.placements import Counting, PlannedPlacement
from adapt.core.errors import BadInput
from adapt.core.keys.key_text import key_to_text
from adapt.core.partitioning.build import Recipe
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.settings import StageSettings, even_groups
from adapt.core.stage.input.keyed_rows import BYTES, KEY, Reading
from adapt.core.stage.input.mini_partitions import KeyGroups, MiniPartitions
from adapt.core.stage.input.row_costs import amounts
from adapt.core.stage.movement.controller import Move, Observation, Round
from adapt.core.stage.simulate import Actors
from adapt.traces.store.trace import Trace, open_trace
from reality.processes.measured import MeasuredRows, Recorded, measured_rows, measured_state
from reality.processes.recorded import RecordedWorkers
from reality.processes.running import run_in_processes
from reality.samples import Samples, service_of_samples

LOAD = 0.3
"""Load of the busiest worker in the second run, over what it took in the first."""

SHARE = 4
"""The first run has this multiple of the rows of the second."""

STATE_BYTES = 1_000_000
"""State of every second partition while state is measured; the others have none."""

LEAST_S = 1.0
"""Shortest second run, so that there are some dozen moves."""

MOVE_S = 0.02
"""Time between two rounds of moves."""

TOGETHER = 5
"""In each of this many rounds, all partitions without state of a worker move together; else one partition."""

PARTITIONS = 16
"""Partitions of a worker."""

PLANS = 9
"""Plans that are built, for the median of their times."""


@dataclass(slots=True)
class _Moves:
    """Moves partitions to the next worker: one after another, or all without state."""

    following: int = 0
    rounds: int = 0

    def collection_s(self, previous: Round | None) -> float:  # noqa: ARG002
        return MOVE_S

    def plan(self, observed: Observation) -> list[Move]:
        owners, self.rounds = observed.owners, self.rounds + 1
        if self.rounds % TOGETHER:
            partitions = [self.following]
            self.following = (self.following + 1) % len(owners)
        else:
            donor = np.bincount(owners[::2]).argmax()
            partitions = (2 * np.flatnonzero(owners[::2] == donor)).tolist()
        owner = int(owners[partitions[0]])
        return [Move(partition, owner, (owner + 1) % observed.workers) for partition in partitions]


def calibrate_stage(path: Path, workers: int, rows: int = 20_000, seed: int = 0) -> Calibration:
    """Measure the costs of rows and moves on worker processes, which wait for a loopback service.

    The first rows of the trace run twice: as fast as the workers take them, for service times and transport; then a
    part of them at `LOAD`, while partitions move, for latency and state.

    Args:
        rows: Most rows that are measured.

    Raises:
        EnvironmentFailure: A process ends by itself.
        BadInput: The trace is damaged.
    """
    trace, costs = open_trace(path), CostOptions()
    placed = MiniPartitions(workers, PARTITIONS)
    settings = StageSettings(
        workers=workers,
        owners=placed.owners,
        partition_of=even_groups(workers * PARTITIONS, workers * PARTITIONS),
        costs=costs.costs(),
        seed=seed,
    )
    reading = Reading(placed, None, costs.row_costs(trace, seed))
    head = _head(trace, rows)
    groups = KeyGroups.from_columns([head.column(KEY)])
    reading = replace(reading, groups=groups, speedup=None)
    settings = replace(settings, partition_of=groups.partitions_by(reading.partitions))
    (chunk,) = reading.rows(lambda: [head.select(reading.columns)]).chunks()
    measured = measured_rows(_run(replace(settings, state_tuples=0), chunk))
    paced = _paced(chunk, measured.rate * LOAD, settings.seed)
    sizes = np.where(np.arange(settings.partitions) % 2, STATE_BYTES // settings.costs.tuple_bytes, 0)
    moved = _run(replace(settings, state_tuples=sizes), paced, Actors(_Moves()))
    waited_s = measured_rows(moved).waited_s
    service, means, classes = service_of_samples(_samples(head, reading, measured))
    profile = Profile(
        source=CostSource.STAGE,
        measured=f"{trace.path}: {len(measured.numbers):,} rows on {settings.workers} worker processes, work wait",
        service=service,
        keys=means,
        sizes=classes,
        transport=Transport(
            row_s=measured.transport_s,
            produce_s=0.0,
            latency_s=float(np.median(waited_s)) if len(waited_s) else None,
        ),
        state=replace(measured_state(moved), plan_s=_plan_s(settings, chunk)),
        restart=Restart(start_s=moved.start_s),
    )
    return Calibration(profile)


def _head(trace: Trace, rows: int) -> pa.RecordBatch:
    """The first rows of a trace."""
    taken, batches = 0, []
    for batch in trace.batches():
        batches.append(batch.slice(0, rows - taken))
        taken += len(batches[-1])
        if taken == rows:
            break
    if not taken:
        raise BadInput(f"{trace.path} has no rows to measure")
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _run(settings: StageSettings, chunk: Chunk, actors: Actors | None = None) -> Recorded:
    """Run rows in processes; returns what was sent and reported."""
    launched: list[RecordedWorkers] = []

    def launch(settings: StageSettings) -> RecordedWorkers:
        launched.append(RecordedWorkers(settings))
        return launched[-1]

    done = run_in_processes(settings, Rows(lambda: iter([chunk])), None, actors, launch=launch)
    return replace(launched[0].recorded, moves=[one for one in done.moves if "restarted" in one.times_s])


def _plan_s(settings: StageSettings, chunk: Chunk) -> float:
    """Median time to build a plan of the partitions, for one worker more or fewer."""
    placement, times_s = PlannedPlacement(Recipe(), settings.partitions, Counting()), []
    counted = settings.partition_of[chunk.groups]
    placement.count(counted, np.zeros(len(counted)), np.zeros(len(counted)))
    for workers in range(settings.workers, settings.workers + 1 + PLANS):
        began_s = perf_counter()
        placement.place(settings.workers - workers % 2)
        times_s.append(perf_counter() - began_s)
    return float(np.median(times_s[1:]))  # the first loads what is compiled


def _paced(chunk: Chunk, rate: float, seed: int) -> Chunk:
    """One in `SHARE` rows, at a rate or over `LEAST_S`."""
    part = chunk.part(0, max(1, len(chunk.groups) // SHARE))
    mean_s = max(1 / rate, LEAST_S / len(part.groups))
    gaps_s = np.random.default_rng(seed).exponential(mean_s, len(part.groups))
    return replace(part, due_s=np.cumsum(gaps_s))


def _samples(head: pa.RecordBatch, reading: Reading, measured: MeasuredRows) -> Samples:
    """Measured rows with their keys, bytes and costs."""
    rows = measured.numbers
    keys = [None if key is None else key_to_text(key) for key in head.column(KEY).take(pa.array(rows)).to_pylist()]
    sizes = amounts(head.column(BYTES))[rows] if BYTES in head.schema.names else None
    return Samples(measured.service_s, keys, sizes, None if reading.costs is None else measured.costs_s)
