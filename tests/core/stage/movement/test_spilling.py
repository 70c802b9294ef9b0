from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.arrivals import Drawn
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.movement.spilling import Memory, MemoryChange, Spilling
from adapt.core.stage.simulate import Actors, simulate
from tests.core.stage.engine.test_running_stage import BY_CONTENT, in_order, small
from tests.core.stage.movement.test_protocol import AnyMoves
from tests.core.stage.stages import memories, stages, stream


@given(st.data(), stages(BY_CONTENT), st.integers(0, 300), st.integers(0, 2**20), st.booleans())
def test_a_stream_is_processed_to_its_end_with_whatever_memory(data, of, rows, seed, moving):
    memory = data.draw(memories(of, 0.03))
    controller = AnyMoves(seed) if moving else None
    run = simulate(of, stream(of, rows, 0.02, seed), None, Actors(controller, memory), interval_s=0.05, journal=10**3)
    assert sorted(run.journal["number"].tolist()) == list(range(rows))
    assert in_order(run.journal)
    assert run.intervals[-1].spilled == 0


@given(st.data(), stages(BY_CONTENT))
def test_what_is_in_memory_fits_once_the_rest_is_written(data, of):
    stage = Stage(of, Drawn())
    spilling = Spilling(stage, data.draw(memories(of, 0.0)))
    sizes = of.state_sizes() * of.costs.tuple_bytes
    for until in np.linspace(0.1, 0.15, 20):
        stage.run(float(until))
        partitions = stage.arrays["partition"]
        in_memory = np.where(partitions["on_disk"] == 0, sizes, 0)
        assert (np.bincount(partitions["owner"], in_memory, of.workers) <= spilling.limits + sizes.max()).all()
        assert all(spilling.used(worker) <= spilling.limits[worker] for worker in range(of.workers))
        assert stage.arrays.world["on_disk"] == np.count_nonzero(partitions["on_disk"])


def test_writing_takes_a_seek_and_the_bandwidth():
    """Two partitions of 2 MB and memory for one: 2 MB at 20 MB/s after a seek of 5 ms."""
    of = small(state_tuples=25_000)
    memory = Memory(3e6, seek_sd_s=0.0, quantum_s=10.0)
    stage = Stage(of, Drawn())
    spilling = Spilling(stage, memory)
    stage.run(0.1)
    assert spilling.written == 0
    stage.run(0.106)
    assert spilling.written == 2  # one a worker
    assert stage.arrays["partition"]["on_disk"].tolist() == [1, 0, 1, 0]
    assert [spilling.used(worker) for worker in range(2)] == [2_000_000] * 2


def test_all_that_fits_stays_in_memory():
    of = small(state_tuples=25_000)
    with_memory = simulate(of, Drawn(), 0.2, Actors(memory=Memory(4e6)), journal=10**4)
    assert with_memory.journal.tobytes() == simulate(of, Drawn(), 0.2, journal=10**4).journal.tobytes()
    assert with_memory.intervals[-1].on_disk == 0


def test_memory_that_comes_back_brings_all_partitions_back():
    of = small(state_tuples=25_000)
    changes = (MemoryChange(0, 0.5, 2e6), MemoryChange(0, 1.5, 4e6))
    run = simulate(of, Drawn(), 5.0, Actors(memory=Memory(4e6, changes)))
    assert run.intervals[0].on_disk >= 1  # both, between writing one and reading the other
    assert run.intervals[-1].on_disk == 0
    assert run.intervals[-1].spilled == 0


@pytest.mark.parametrize(
    ("memory", "told"),
    [
        (Memory(1e5), "the largest partition, 800,000 bytes"),
        (Memory(1e9, (MemoryChange(0, 1.0, 1e5),)), "the largest partition"),
        (Memory(1e9, (MemoryChange(2, 1.0, 1e9),)), "a worker from 0 to 1"),
        (Memory(1e9, (MemoryChange(0, -1.0, 1e9),)), "a time of at least 0"),
    ],
)
def test_memory_that_cannot_be_is_refused(memory, told):
    with pytest.raises(BadInput, match=told):
        simulate(small(), Drawn(), 1.0, Actors(memory=memory))


def test_a_disk_needs_a_bandwidth():
    with pytest.raises(UsageError, match="bandwidth"):
        replace(Memory(), disk_bytes_per_s=0.0)
