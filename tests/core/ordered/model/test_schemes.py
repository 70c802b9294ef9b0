"""Parallelization schemes in the model, against closed forms."""

import math

import numpy as np
import pytest

from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.names import Parallelism, Reorder
from adapt.core.ordered.engine.reference import WorkersRun
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.model.model import run_model
from tests.core.ordered.chains import bound, partitioned, stateful, stateless

COSTS = (1.0, 3.0, 2.0)


def model(chain: BoundChain, settings: RunSettings, costs_us: tuple[float | None, ...]) -> WorkersRun:
    return run_model(chain, settings, Contention(), np.random.default_rng(1), costs_us=costs_us).run


@pytest.mark.parametrize("reorder", Reorder)
@pytest.mark.parametrize("queue", [8, 1024])
def test_a_pipeline_gives_a_row_every_time_of_its_most_expensive_stage(reorder: Reorder, queue: int) -> None:
    chain = bound([stateless("a"), partitioned("b"), stateful("c")], 500)
    settings = RunSettings(3, reorder, queue_capacity=queue, parallelism=Parallelism.PIPELINE)
    assert model(chain, settings, COSTS).elapsed_s * 1e6 == pytest.approx(499 * max(COSTS) + sum(COSTS))


@pytest.mark.parametrize(("workers", "busiest"), [(1, 6.0), (2, 3.0), (3, 3.0), (16, 3.0)])
def test_a_pipeline_with_fewer_workers_is_bound_by_the_busiest(workers: int, busiest: float) -> None:
    """Of two workers, one has the first and the third operator."""
    chain = bound([stateless("a"), stateless("b"), stateless("c")], 5000)
    settings = RunSettings(workers, parallelism=Parallelism.PIPELINE)
    assert model(chain, settings, COSTS).elapsed_s * 1e6 == pytest.approx(5000 * busiest, rel=0.02)


@pytest.mark.parametrize(("workers", "batch"), [(1, 1), (1, 64), (3, 64), (4, 7), (16, 100), (200, 100)])
def test_a_micro_batch_takes_the_sum_over_operators_of_its_rounds_of_workers(workers: int, batch: int) -> None:
    chain = bound([stateless("a"), stateful("b"), stateless("c")], 500)
    settings = RunSettings(workers, parallelism=Parallelism.MICRO_BATCH, batch=batch)
    sizes = [min(batch, 500 - first) for first in range(0, 500, batch)]
    by_hand = sum(
        math.ceil(rows / on) * us for rows in sizes for on, us in zip((workers, 1, workers), COSTS, strict=True)
    )
    assert model(chain, settings, COSTS).elapsed_s * 1e6 == pytest.approx(by_hand)


def test_a_row_waits_for_its_batch_at_every_operator() -> None:
    """Of one worker: row i of a batch of 50 enters after i, and leaves after all have passed the first operator."""
    chain = bound([stateless("a"), stateful("b")], 150)
    settings = RunSettings(mark_every=1, parallelism=Parallelism.MICRO_BATCH, batch=50)
    marks = model(chain, settings, (1.0, 3.0)).marks
    row = np.tile(np.arange(50), 3)
    assert ((marks.left - marks.entered) / 1000).tolist() == (50 * 1.0 + (row + 1) * 3.0 - row * 1.0).tolist()


def test_a_batch_takes_the_rows_that_have_arrived() -> None:
    """Rows arrive every 3 us, and one alone takes 4: the batches become larger."""
    chain, arrivals_ns = bound([stateful("a"), stateful("b")], 8), np.arange(8) * 3000
    settings = RunSettings(2, mark_every=1, parallelism=Parallelism.MICRO_BATCH, batch=100)
    done = run_model(
        chain, settings, Contention(), np.random.default_rng(1), costs_us=(2.0, 2.0), arrivals_ns=arrivals_ns
    ).run
    free, row, left = 0, 0, []
    while row < 8:
        free = max(free, 3 * row)
        rows = sum(3 * each <= free for each in range(row, 8))
        left += [free + 2 * rows + 2 * (each + 1) for each in range(rows)]
        free, row = left[-1], row + rows
    assert (done.marks.left / 1000).tolist() == left


def test_without_room_for_a_batch_the_next_operator_starts_early() -> None:
    chain = bound([stateless("a", 4.0), stateful("b")], 200)
    settings = RunSettings(2, queue_capacity=64, mark_every=1, parallelism=Parallelism.MICRO_BATCH, batch=64)
    done = model(chain, settings, (1.0, 1.0))
    assert done.operators[0].blocked > 0
    assert done.operators[1].inputs == 800


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_the_busiest_replica_bounds_a_static_split(workers: int) -> None:
    chain = bound([stateless("a", cost="cost")], 1000)
    done = model(chain, RunSettings(workers, parallelism=Parallelism.REPLICATED), (None,))
    costs_ns = chain.tuples[:, 0]
    busiest_ns = max(int(costs_ns[replica::workers].sum()) for replica in range(workers))
    assert done.elapsed_s * 1e9 == busiest_ns
    assert model(chain, RunSettings(workers), (None,)).elapsed_s * 1e9 < busiest_ns


def test_a_skewed_key_makes_one_replica_the_busiest() -> None:
    chain = bound([partitioned("b", 16)], 1000, skew=1.5)
    done = model(chain, RunSettings(4, parallelism=Parallelism.REPLICATED), (2.0,))
    loads = done.operators[0].partition_loads
    busiest = max(int(loads[replica::4].sum()) for replica in range(4))
    assert busiest > 1.3 * 1000 / 4
    assert done.elapsed_s * 1e6 == pytest.approx(2.0 * busiest)


def test_a_replica_ahead_of_the_others_stops_at_the_end_of_the_ring() -> None:
    """Rows 0, 2, 4 and so on take 10 us, the others 1: their replica is at most a ring of 8 ahead."""
    chain = bound([stateless("a", cost="cost")], 200)
    chain.tuples[:, 0] = np.where(np.arange(200) % 2, 1000, 10_000)
    done = model(chain, RunSettings(2, ring_buffer=8, mark_every=1, parallelism=Parallelism.REPLICATED), (None,))
    entered = done.marks.entered // 1000
    assert done.elapsed_s * 1e6 == 100 * 10
    # Odd row i may start once row i - 8 has left; row i - 9 and those before it have left by then.
    left = done.marks.left // 1000
    assert all(entered[row] >= left[row - 8] for row in range(9, 200, 2))
