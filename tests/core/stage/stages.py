"""Random small stages for properties."""

from dataclasses import replace

import numpy as np
from hypothesis import strategies as st

from adapt.core.stage.conditions.arrivals import Chunk, Drawn, Rows
from adapt.core.stage.conditions.faults import ExternalLoad, SlowDown
from adapt.core.stage.conditions.growth import NEITHER, Growth
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import Costs, Network, StageSettings
from adapt.core.stage.movement.spilling import Memory, MemoryChange


@st.composite
def disturbances(draw, workers):
    """At most one of each worker, some of them overlapping in time."""
    found = []
    for worker in range(workers):
        start = draw(st.floats(0, 0.02))
        end = start + draw(st.floats(1e-4, 0.02))
        match draw(st.sampled_from(["none", "load", "slow", "pause"])):
            case "load":
                found.append(ExternalLoad(worker, start, end, burst_s=draw(st.floats(1e-5, 1e-3))))
            case "slow":
                found.append(SlowDown(worker, start, end, draw(st.floats(0.1, 3))))
            case "pause":
                found.append(SlowDown(worker, start, end, 0.0))
    return tuple(found)


@st.composite
def stages(draw, routers=tuple(Router)):
    """Settings with everything small, and answers over short windows."""
    workers = draw(st.integers(2, 5))
    partitions = draw(st.integers(1, 12))
    groups = draw(st.integers(1, 30))
    chance = np.random.default_rng(draw(st.integers(0, 2**32)))
    return StageSettings(
        workers=workers,
        owners=chance.integers(0, workers, partitions).astype(np.int32),
        partition_of=chance.integers(0, partitions, groups).astype(np.int32),
        router=draw(st.sampled_from(routers)),
        buffer_tuples=draw(st.integers(1, 60)),
        network=Network(
            latency_s=draw(st.floats(0, 3e-4)),
            connection_tuples=draw(st.integers(12, 30)),
            packet_tuples=draw(st.sampled_from((1, 1, 5, 12))),
            link_bits_per_s=draw(st.sampled_from((None, None, 5e7))),
        ),
        costs=Costs(produce_s=draw(st.sampled_from([0.0, 5e-7, 2e-5]))),
        state_tuples=chance.integers(0, 300, partitions),
        window=draw(st.integers(1, 4)),
        disturbances=draw(disturbances(workers)),
        seed=draw(st.integers(0, 2**20)),
    )


@st.composite
def memories(draw, of, span_s):
    """Memory for one partition or a few, at workers that lose and regain some; a disk fast enough for short runs.

    Where state grows, some of it may be too little for a partition.
    """
    largest = float(of.state_sizes().max() * of.costs.tuple_bytes + 1) if of.growth is None else 5e3
    sizes = st.floats(largest, 4 * largest)
    changes = st.builds(MemoryChange, st.integers(0, of.workers - 1), st.floats(0, span_s), sizes)
    return Memory(
        worker_bytes=draw(sizes),
        changes=tuple(draw(st.lists(changes, max_size=4))),
        disk_bytes_per_s=draw(st.floats(2e7, 1e9)),
        seek_s=1e-4,
        seek_sd_s=1e-5,
        quantum_s=1e-3,
    )


@st.composite
def growths(draw, by_rows):
    """Any state that grows; without rows with times, from groups and numbers of rows alone."""
    group, row, last = draw(st.integers(0, 200)), draw(st.integers(0, 100)), draw(st.integers(0, 3))
    if not by_rows or draw(st.booleans()):
        return Growth(group, row, rows_per_group=last)
    return Growth(group, row, sized=draw(st.booleans()), window=draw(st.one_of(st.none(), st.integers(0, 10_000))))


def drawn(settings, zipf=0.0):
    """A source whose groups have Zipf shares."""
    return Drawn((1.0 + np.arange(len(settings.partition_of))) ** -zipf)


def stream(settings, rows, span_s, seed, chunk=10**9, timed=True):
    """Rows at random times, with random costs, in chunks of a size."""
    chance = np.random.default_rng(seed)
    due = np.sort(chance.uniform(0, span_s, rows))
    groups = chance.integers(0, len(settings.partition_of), rows)
    producers = chance.integers(0, settings.workers, rows)
    cost = chance.uniform(1e-6, 1e-4, rows)
    times = np.rint(due * 1e6).astype(np.int64)
    sizes = chance.integers(0, 500, rows)
    sides = chance.integers(NEITHER, 2, rows).astype(np.int8)

    def chunks():
        for first in range(0, rows, chunk):
            part = slice(first, first + chunk)
            yield Chunk(
                groups[part],
                producers[part],
                due[part] if timed else None,
                cost[part],
                times=times[part],
                sides=sides[part],
                sizes=sizes[part],
            )

    return Rows(chunks)


def undisturbed(settings):
    return replace(settings, disturbances=())
