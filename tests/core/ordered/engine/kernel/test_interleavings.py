"""The worker's algorithm under changes of threads anywhere in it: run by the interpreter, on the real memory."""

import itertools
import sys
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.ordered.chain.bound import BoundChain, bind
from adapt.core.ordered.chain.chain import COUNTED, Chain, Operator, Punctuations
from adapt.core.ordered.chain.names import FunctionName, Heuristic, OperatorKind, Parallelism, Reorder, WorkQueue
from adapt.core.ordered.engine import threads
from adapt.core.ordered.engine.kernel import worker as kernel
from adapt.core.ordered.engine.reference import WorkersRun
from adapt.core.ordered.engine.settings import RunSettings
from tests.core.ordered.chains import bound, counting, partitioned, stateful, stateless
from tests.core.ordered.engine.kernel.plain_kernel import plain_worker
from tests.core.ordered.walk import walked
from tests.tiers import SOAK

SCHEMES = [
    (Reorder.CLAIM, WorkQueue.HYBRID),
    (Reorder.CLAIM, WorkQueue.PARTITIONED),
    (Reorder.RETRY, WorkQueue.HYBRID),
    (Reorder.RETRY, WorkQueue.PARTITIONED),
    (Reorder.LOCK, WorkQueue.HYBRID),
    (Reorder.LOCK, WorkQueue.PARTITIONED),
]

CHOICES = [
    each
    for each in itertools.product((1, 5), (Heuristic.CT, Heuristic.QST))
    if SOAK or (each[0] == 1) == (each[1] is Heuristic.CT)
]
"""Sizes of chunks with heuristics: in the short tier each size and each heuristic once."""


@pytest.fixture(autouse=True)
def interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Threads change places about every 10 microseconds: a few tens of instructions."""
    monkeypatch.setattr(kernel, "work", plain_worker())
    monkeypatch.setattr(kernel, "now_ns", time.monotonic_ns)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def run(chain: BoundChain, settings: RunSettings) -> WorkersRun:
    return threads.run_by_workers(chain, settings, pace=1, keep=5)


def assert_ordered(chain: BoundChain, settings: RunSettings) -> WorkersRun:
    serial = walked(chain, keep=5)
    done = run(chain, settings)
    assert done.egress == serial.egress, settings
    assert [sum(tally.partition_loads) for tally in done.operators if tally.partition_loads.any()] == [
        tally.inputs for tally in done.operators if tally.partition_loads.any()
    ]
    assert not any(tally.overlaps or tally.disorders for tally in done.operators)
    assert [[word % 2**64 for word in row] for row in done.kept.tolist()] == [list(row) for row in serial.kept]
    return done


@pytest.mark.parametrize(("reorder", "work_queue"), SCHEMES)
@pytest.mark.parametrize(("chunk", "heuristic"), CHOICES)
def test_the_egress_is_that_of_the_serial_run(
    reorder: Reorder, work_queue: WorkQueue, chunk: int, heuristic: Heuristic
) -> None:
    chain = bound(
        [stateless("a", 1.5), partitioned("b", 4), stateless("c", 0.4), counting("d", 3), stateful("e")], 80, 9
    )
    for workers, ring in itertools.product((1, 3), (8, 32)):
        settings = RunSettings(
            workers, reorder, work_queue, heuristic, ring, queue_capacity=16, chunk=chunk, mark_every=7, checked=True
        )
        assert_ordered(chain, settings)


@pytest.mark.parametrize("reorder", Reorder)
@pytest.mark.parametrize("how", [Parallelism.REPLICATED, Parallelism.MICRO_BATCH, Parallelism.PIPELINE])
def test_every_scheme_gives_the_egress_of_the_serial_run(how: Parallelism, reorder: Reorder) -> None:
    chain, batch = baskets(60), 9 * (how is Parallelism.MICRO_BATCH)
    for workers, ring in ((2, 4), (5, 16)):
        settings = RunSettings(
            workers,
            reorder,
            ring_buffer=ring,
            queue_capacity=16,
            mark_every=7,
            checked=True,
            parallelism=how,
            batch=batch,
        )
        assert_ordered(chain, settings)


def test_every_timed_tuple_leaves_once_even_where_all_are_dropped() -> None:
    chain = bound([stateless("a"), partitioned("b", 4), stateless("none", 0.0), stateful("c")], 60)
    done = assert_ordered(chain, RunSettings(workers=2, ring_buffer=8, queue_capacity=8, mark_every=7, checked=True))
    marks = done.marks
    assert len(marks.fed) == 9
    assert ((marks.fed > 0) & (marks.fed <= marks.entered) & (marks.entered <= marks.left)).all()
    assert done.egress.tuples == 0
    assert [tally.inputs for tally in done.operators] == [60, 60, 60, 0]
    assert len(marks.processing_s()) == 7


def baskets(rows: int) -> BoundChain:
    """Large baskets of an hour, whose pairs are counted at each full hour; more partitions than a queue has places."""
    named = {
        "hours": Operator("hours", OperatorKind.STATELESS, function=FunctionName.HOUR),
        "pairs": Operator("pairs", OperatorKind.PARTITIONED, "key", 3, function=FunctionName.BASKET_PAIRS),
        "counts": Operator("counts", OperatorKind.PARTITIONED, COUNTED, 20, function=FunctionName.WINDOW_TOP_100),
        "top": Operator("top", OperatorKind.STATEFUL, function=FunctionName.WINDOW_TOP_100),
    }
    times = np.sort(np.random.default_rng(1).integers(0, 3 * 3_600_000_000, rows))
    columns = {"ts": pa.array(times), "key": pa.array(np.arange(rows) % 2), "item": pa.array(np.arange(rows) % 37)}
    return bind(Chain(tuple(named.values()), Punctuations(every_us=3_600_000_000)), columns)


@pytest.mark.parametrize(("reorder", "work_queue"), SCHEMES)
def test_windows_end_for_all_partitions_where_the_stream_says(reorder: Reorder, work_queue: WorkQueue) -> None:
    chain = baskets(90)
    for workers, chunk, ring in ((1, 1, 16), (3, 4, 8)):
        settings = RunSettings(
            workers, reorder, work_queue, ring_buffer=ring, queue_capacity=16, chunk=chunk, mark_every=7, checked=True
        )
        done = assert_ordered(chain, settings)
        assert done.egress.tuples > 100
        assert (done.marks.left > 0).all()


def test_tuples_of_a_busy_partition_are_left_to_who_is_inside() -> None:
    chain = bound([partitioned("one", 1)], 300)
    done = assert_ordered(chain, RunSettings(workers=4, checked=True))
    assert done.operators[0].partition_loads.tolist() == [300]


def test_a_full_work_queue_stops_who_sends_and_not_the_run() -> None:
    chain = bound([stateless("many", 6.0), stateful("all")], 40)
    done = assert_ordered(
        chain,
        RunSettings(
            workers=2,
            ring_buffer=4,
            queue_capacity=4,
            heuristic=Heuristic.ET,
            checked=True,
        ),
    )
    assert done.operators[0].blocked > 0


def test_the_ring_is_never_fuller_than_it_is_long() -> None:
    chain = bound([stateless("a"), partitioned("b", 8)], 200)
    done = assert_ordered(chain, RunSettings(workers=4, ring_buffer=8, chunk=3))
    assert all(0 < tally.fullest <= 8 for tally in done.operators)
