"""Streams of the ordered runtime, and a plain event simulation of one queue with order."""

import heapq
from collections import deque

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.mechanisms.cost_model import Wanted
from adapt.core.mechanisms.ordered.stage import ASSUMED, chain_of, ordered_marks
from adapt.core.mechanisms.outcome import OUTCOME_COLUMNS, outcome_of_scenario, outcome_row
from adapt.core.mechanisms.scenario import Stream, simulated, staged
from adapt.core.ordered.chain.names import OrderedWorkQueue
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.settings import Costs, StageSettings, even_groups
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.core.stage.input.offered_load import Demand
from adapt.core.stage.input.speed import Speed

HYBRID, PARTITIONED = OrderedWorkQueue.HYBRID, OrderedWorkQueue.PARTITIONED
ROWS = 400


def stream_of(seed, load, workers, partitions, skew):
    """Partitions, arrivals and services in ns; a third of the rows arrive together."""
    random = np.random.default_rng(seed)
    weights = np.arange(1, partitions + 1) ** -skew
    of_rows = random.choice(partitions, ROWS, p=weights / weights.sum())
    services = (random.exponential(1e6, ROWS) + 1).astype(np.int64)
    gaps = random.exponential(1e6 / load / workers, ROWS) * (random.random(ROWS) > 0.33)
    return of_rows, np.cumsum(gaps).astype(np.int64), services


def stage_of(workers, partitions):
    groups = even_groups(partitions, partitions)
    owners = (np.arange(partitions) % workers).astype(np.int32)
    return StageSettings(workers, owners, groups, costs=Costs(produce_s=0.0))


def rows_of(of_rows, arrivals, services, cuts=(150,)):
    """The stream, cut into chunks."""

    def chunks():
        for part in zip(*(np.split(each, cuts) for each in (of_rows, arrivals, services)), strict=True):
            yield Chunk(part[0], np.zeros(len(part[0]), np.int32), part[1] / 1e9, part[2] / 1e9)

    return Rows(chunks)


def in_order(of_rows, arrivals, services, sizes):
    """Start, end and departure of each row.

    The idle worker of the lowest number takes the next row, or leaves it to who has its partition. `sizes` has times
    and numbers of active workers: one beyond them takes no row once it has none left in its partition.
    """
    rows = len(of_rows)
    start, end = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    waiting, mine, idle = deque(), {}, list(range(max(size for _, size in sizes)))
    active, scale, departure, arrival = 0, 0, 1, 2
    events = [(int(when), arrival, row, -1) for row, when in enumerate(arrivals)]
    events += [(int(when), scale, size, -1) for when, size in sizes]
    heapq.heapify(events)
    while events:
        now, kind, row, worker = heapq.heappop(events)
        if kind == scale:
            active = row
        elif kind == arrival:
            waiting.append(row)
        elif mine[of_rows[row]]:
            begun = mine[of_rows[row]].popleft()
            start[begun], end[begun] = now, now + services[begun]
            heapq.heappush(events, (int(end[begun]), departure, begun, worker))
        else:
            del mine[of_rows[row]]
            heapq.heappush(idle, worker)
        while idle and idle[0] < active and waiting:
            row = waiting.popleft()
            if of_rows[row] in mine:
                mine[of_rows[row]].append(row)
                continue
            mine[of_rows[row]] = deque()
            start[row], end[row] = now, now + services[row]
            heapq.heappush(events, (int(end[row]), departure, row, heapq.heappop(idle)))
    return start, end, np.maximum.accumulate(end)


AT_S = np.cumsum(np.random.default_rng(1).exponential(1 / 3000, 6000))
BATCH = pa.record_batch(
    {
        "ts": pa.array((AT_S * 1e6).astype(np.int64)),
        "key": pa.array(np.random.default_rng(2).integers(0, 300, len(AT_S)).astype(str)),
    }
)


def keyed(reading):
    return reading.rows(lambda: iter([BATCH]))


WANTED = Wanted(4, costs=Costs(1e-3, 2e-4, 0.5e-6), speed=Speed(speedup=1.0))
TERMS = WANTED.terms(Demand.from_chunks(keyed(Reading(MiniPartitions(4, 64))).chunks(), WANTED.uniform))
STREAM = Stream(keyed, lambda: pytest.fail("nothing is counted"), lambda _: None)


def cells_of(scenario, terms):
    """Stage, simulation and outcome of a scenario, by column."""
    stage = staged(scenario, terms, STREAM)
    done = simulated(scenario, terms, stage, terms.duration_s)
    row = outcome_row(outcome_of_scenario(scenario, stage, done), stage.bounds, stage)
    return stage, done, dict(zip((column.name for column in OUTCOME_COLUMNS), row, strict=True))


def marks_of(work_queue, rows, settings, contention=ASSUMED, scaling=None):
    """Times and worker of each row, and the numbers of workers if they are scaled."""
    chain, due_ns = chain_of(rows, settings)
    if scaling is None:
        return ordered_marks(work_queue, chain, settings, due_ns, contention)
    control = scaling.control(chain, due_ns)
    return ordered_marks(work_queue, chain, settings, control, contention), control.scaled
