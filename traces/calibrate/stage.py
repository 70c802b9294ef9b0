"""Cost profile of a stage in worker processes on this machine."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import pyarrow as pa

from adapt.core.costs.calibration import Calibration
from adapt.core.costs.profile import CostSource, Profile, Restart, Transport
from adapt.core.costs.samples import Samples, service_of_samples
from adapt.core.elastic.policies.placements import Counting, PlannedPlacement
from adapt.core.errors import BadInput
from adapt.core.keys.key_text import key_to_text
from adapt.core.partitioning.build import Recipe
from adapt.core.stage.assembly import Actors
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.settings import StageSettings
from adapt.core.stage.input.key_groups import KeyGroups
from adapt.core.stage.input.keyed_rows import BYTES, KEY, Reading
from adapt.core.stage.input.row_costs import amounts
from adapt.core.stage.movement.controller import Move, Observation, Round
from adapt.core.stage.processes.backend import InProcesses
from adapt.core.stage.processes.measured import MeasuredRows, Recorded, measured_rows, measured_state
from adapt.core.stage.simulate import simulate
from adapt.traces.processes.launch import CPU, WAIT
from adapt.traces.processes.recorded import RecordedWorkers
from adapt.traces.replay.backends import check_work
from adapt.traces.replay.operators import Operator
from adapt.traces.spark.progress import Progress, silent
from adapt.traces.store.trace import Trace

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


def calibrate_stage(
    trace: Trace, settings: StageSettings, reading: Reading, work: str, rows: int, progress: Progress = silent
) -> Calibration:
    """Measure the costs of rows and moves on worker processes.

    The first rows of the trace run twice: as fast as the workers take them, for service times and transport; then a
    part of them at `LOAD`, while partitions move, for latency and state.

    Args:
        settings: The stage; its state is replaced.
        reading: How rows become tuples.
        work: cpu, wait, or MODULE:FUNCTION.
        rows: Most rows that are measured.

    Raises:
        UsageError: The stage cannot run in processes, or the function fails.
        EnvironmentFailure: A process ends by itself.
        BadInput: The trace is damaged.
    """
    check_work(work, settings, Operator(), "--workers", {})
    progress("reading", 0, rows)
    head = _head(trace, rows)
    groups = KeyGroups.from_columns([head.column(KEY)])
    reading = replace(reading, groups=groups, speedup=None)
    settings = replace(settings, partition_of=groups.partitions_by(reading.partitions))
    (chunk,) = reading.rows(lambda: [head.select(reading.columns)]).chunks()
    keys = () if work in (CPU, WAIT) else groups.keys.to_pylist()
    progress("as fast as the workers take rows", 0, len(head))
    measured = measured_rows(_run(replace(settings, state_tuples=0), work, keys, chunk))
    progress("at a third of that rate, with moves", len(head), len(head) + len(head) // SHARE)
    paced = _paced(chunk, measured.rate * LOAD, settings.seed)
    sizes = np.where(np.arange(settings.partitions) % 2, STATE_BYTES // settings.costs.tuple_bytes, 0)
    moved = _run(replace(settings, state_tuples=sizes), work, keys, paced, Actors(_Moves()))
    waited_s = measured_rows(moved).waited_s
    service, means, classes = service_of_samples(_samples(head, reading, measured, work))
    profile = Profile(
        source=CostSource.STAGE,
        measured=f"{trace.path}: {len(measured.numbers):,} rows on {settings.workers} worker processes, work {work}",
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


def _run(
    settings: StageSettings, work: str, keys: Sequence[Any], chunk: Chunk, actors: Actors | None = None
) -> Recorded:
    """Run rows in processes; returns what was sent and reported."""
    launched: list[RecordedWorkers] = []

    def launch(settings: StageSettings) -> RecordedWorkers:
        launched.append(RecordedWorkers(settings, work, keys))
        return launched[-1]

    done = simulate(settings, Rows(lambda: iter([chunk])), None, actors, backend=InProcesses(launch))
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


def _samples(head: pa.RecordBatch, reading: Reading, measured: MeasuredRows, work: str) -> Samples:
    """Measured rows with their keys, bytes and costs."""
    rows = measured.numbers
    keys = [None if key is None else key_to_text(key) for key in head.column(KEY).take(pa.array(rows)).to_pylist()]
    sizes = amounts(head.column(BYTES))[rows] if BYTES in head.schema.names else None
    costed = reading.costs is not None and work in (CPU, WAIT)
    return Samples(measured.service_s, keys, sizes, measured.costs_s if costed else None)
