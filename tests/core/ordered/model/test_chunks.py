"""Chunks of the model that adapt to the cost of tuples: cases worked by hand, and the serial run."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from adapt.core.ordered.chain.chain import Operator
from adapt.core.ordered.chain.names import Heuristic, Parallelism, Reorder, WorkQueue
from adapt.core.ordered.engine.reference import WorkersRun, run_serially
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.model.model import run_model
from tests.core.ordered.chains import bound, counting, partitioned, stateful, stateless

COST_US = 2.0


def modeled(times: list[int], settings: RunSettings, *operators: Operator, **more: Any) -> WorkersRun:
    chain = bound(operators or [stateless("a")], len(times))
    costs, random = [COST_US] * len(chain.operators), np.random.default_rng(1)
    of = {"arrivals_ns": np.array(times, np.int64), **more}
    return run_model(chain, replace(settings, adapts=True), Contention(), random, costs, **of).run


def left(times: list[int], **settings: Any) -> list[int]:
    return modeled(times, RunSettings(mark_every=1, **settings)).marks.left.tolist()


def test_the_outputs_of_a_chunk_leave_at_its_end() -> None:
    """The first slice has one tuple, since its cost is not known; then a chunk is what has arrived."""
    run = modeled([0, 500, 1000, 1500, 20_000], RunSettings(mark_every=1))
    assert run.marks.entered.tolist() == [0, 2000, 4000, 6000, 20_000]
    assert run.marks.left.tolist() == [2000, 8000, 8000, 8000, 22_000]


def test_a_chunk_takes_no_longer_than_a_slice() -> None:
    assert left([0] * 9, slice_us=6.0) == [2000, *[8000] * 3, *[14_000] * 3, *[18_000] * 2]


def test_a_given_chunk_is_kept() -> None:
    assert left([0] * 4, chunk=1) == [2000, 4000, 6000, 8000]
    assert left([0] * 4, chunk=2) == [4000, 4000, 8000, 8000]


def test_workers_leave_each_other_their_share_and_take_along_what_others_have_finished() -> None:
    """Of seven tuples, the first worker takes 7 // 2 + 1 = 4, the other one 3 // 2 + 1 = 2, and then the last one.

    When that one sends, at 6 and at 8 us, it takes along what the first one has finished of its chunk.
    """
    assert left([0] * 9, workers=2) == [2000, 2000, 6000, 6000, 8000, 10_000, 10_000, 10_000, 10_000]


def test_a_chunk_that_takes_little_of_a_slice_is_not_shared() -> None:
    """500 tuples take a slice, and 500 // 64 = 7 that part of one. The other worker sends what is finished."""
    assert left([0] * 9, workers=2, slice_us=1000.0) == [2000, 2000, *range(4000, 16_001, 2000)]


def test_a_slice_is_not_too_short_for_its_claims() -> None:
    assert left([0] * 6, slice_us=1.0) == left([0] * 6, slice_us=5.0) == [2000, *[6000] * 2, *[10_000] * 2, 12_000]
    assert left([0] * 3, slice_us=1.0, chunk=1) == [2000, 4000, 6000]


def test_a_lane_that_is_busy_gets_its_tuples_delegated() -> None:
    run = modeled([0] * 400, RunSettings(4, mark_every=1, slice_us=20.0), partitioned("a", 2))
    (tally,) = run.operators
    assert tally.delegated > 0
    assert tally.inputs == 400
    assert run.elapsed_s * 1e9 == pytest.approx(max(tally.partition_loads) * 2000, rel=0.15)


@pytest.mark.parametrize("reorder", Reorder)
@pytest.mark.parametrize("work_queue", [WorkQueue.HYBRID, WorkQueue.PARTITIONED])
@pytest.mark.parametrize("workers", [1, 2, 5])
def test_the_output_is_that_of_the_serial_run(reorder: Reorder, work_queue: WorkQueue, workers: int) -> None:
    operators = [stateless("a"), counting("b", 7), stateful("c"), counting("d", 3)]
    chain = replace(bound(operators, 1500), runs=True)
    times = np.cumsum(np.random.default_rng(3).exponential(2500 / workers, 1500)).astype(np.int64)
    for ring_buffer, heuristic in ((8, Heuristic.LP), (4096, Heuristic.CT)):
        settings = RunSettings(workers, reorder, work_queue, heuristic, ring_buffer, 64, mark_every=7, adapts=True)
        how = Contention(jitter=0.5), np.random.default_rng(2)
        done = run_model(chain, settings, *how, [0.5, 1.0, 0.2, 0.3], arrivals_ns=times).run
        assert done.egress == run_serially(chain).egress
        assert [tally.inputs for tally in done.operators] == [1500] * 4


@pytest.mark.parametrize("parallelism", [Parallelism.REPLICATED, Parallelism.PIPELINE, Parallelism.MICRO_BATCH])
def test_so_it_is_in_other_schemes(parallelism: Parallelism) -> None:
    chain = replace(bound([stateless("a"), counting("b", 7), stateful("c")], 800), runs=True)
    batch = 50 if parallelism is Parallelism.MICRO_BATCH else 0
    settings = RunSettings(3, parallelism=parallelism, batch=batch, adapts=True)
    times = np.arange(800) * 700
    random = np.random.default_rng(2)
    done = run_model(chain, settings, Contention(), random, [0.5, 1.0, 0.2], arrivals_ns=times).run
    assert done.egress == run_serially(chain).egress
