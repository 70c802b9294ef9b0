"""The threaded engine: its output equals that of the serial run for all settings."""

import itertools
import os
from dataclasses import replace
from functools import cache, partial

import numba
import numpy as np
import pyarrow as pa
import pytest

from adapt.core.atomics import load_atomic
from adapt.core.compiled import AtAddress, record_at
from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain, BoundOperator, bind
from adapt.core.ordered.chain.chain import Chain
from adapt.core.ordered.chain.columns import Words
from adapt.core.ordered.chain.names import FunctionName, Heuristic, OperatorKind, PartitionBy, Reorder, WorkQueue
from adapt.core.ordered.engine import memory
from adapt.core.ordered.engine.kernel import worker as kernel
from adapt.core.ordered.engine.kernel.claiming import chunk_of
from adapt.core.ordered.engine.kernel.layout import GOES_ON, HEADER, STALLED, operator_at
from adapt.core.ordered.engine.kernel.reorder_buffer import rest
from adapt.core.ordered.engine.kernel.schedule import quota_of
from adapt.core.ordered.engine.memory import Memory, Sizes
from adapt.core.ordered.engine.reference import SerialRun, WorkersRun, run_serially
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.functions.own import FUNCTIONS
from adapt.core.ordered.functions.work import count
from adapt.core.ordered.model.model import run_model
from tests.core.ordered.chains import bound, counting, partitioned, stateful, stateless

soak = pytest.mark.skipif(not os.environ.get("ADAPT_SOAK"), reason="long; set ADAPT_SOAK=1")

CHAINS = {
    "stateless": (stateless("a", 1.3),),
    "one output": (stateless("a"),),
    "partitioned": (partitioned("b", 64),),
    "all kinds": (stateless("a", 1.2), partitioned("b", 16), counting("c", 5), stateless("d", 0.5), stateful("e")),
}
SCHEMES = [
    (Reorder.CLAIM, WorkQueue.HYBRID),
    (Reorder.CLAIM, WorkQueue.PARTITIONED),
    (Reorder.RETRY, WorkQueue.HYBRID),
    (Reorder.RETRY, WorkQueue.PARTITIONED),
    (Reorder.LOCK, WorkQueue.HYBRID),
    (Reorder.LOCK, WorkQueue.PARTITIONED),
]
RINGS = (16, 64, 512, 4096)
WORKERS = (1, 2, 4, 8)
CHUNKS = (1, 8, 1, 16)
TUPLES = 100_000 if os.environ.get("ADAPT_SOAK") else 40_000
"""Many times the largest ring buffer."""


@cache
def chain_of(name: str, tuples: int) -> tuple[BoundChain, SerialRun]:
    chain = bound(CHAINS[name], tuples, keys=500)
    return chain, run_serially(chain)


def assert_ordered(name: str, settings: RunSettings, tuples: int = 100_000) -> WorkersRun:
    chain, serial = chain_of(name, tuples)
    done = run_by_workers(chain, settings, pace=1)
    assert done.egress == serial.egress, settings
    assert tuple(tally.inputs for tally in done.operators) == serial.inputs, settings
    assert not any(tally.overlaps or tally.disorders for tally in done.operators), settings
    return done


@pytest.mark.parametrize(("reorder", "work_queue"), SCHEMES)
@pytest.mark.parametrize("workers", WORKERS)
def test_the_egress_is_that_of_the_serial_run(reorder: Reorder, work_queue: WorkQueue, workers: int) -> None:
    turn = SCHEMES.index((reorder, work_queue)) + WORKERS.index(workers)
    for at, (ring, chunk) in enumerate(zip(RINGS, CHUNKS, strict=True)):
        name = list(CHAINS)[(turn + at) % len(CHAINS)]
        heuristic = list(Heuristic)[(turn + 2 * at) % len(Heuristic)]
        settings = RunSettings(workers, reorder, work_queue, heuristic, ring, chunk=chunk, checked=True)
        assert_ordered(name, settings, TUPLES)


@soak
@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize(("reorder", "work_queue"), SCHEMES)
def test_long_runs_give_the_egress_of_the_serial_run(name: str, reorder: Reorder, work_queue: WorkQueue) -> None:
    for workers, ring in itertools.product(WORKERS, (32, 4096)):
        assert_ordered(
            name, RunSettings(workers, reorder, work_queue, ring_buffer=ring, checked=True), tuples=3_000_000
        )


@pytest.mark.parametrize("work_queue", [WorkQueue.HYBRID, WorkQueue.PARTITIONED])
def test_one_worker_with_many_partitions_and_a_small_ring_finishes(work_queue: WorkQueue) -> None:
    done = assert_ordered("partitioned", RunSettings(ring_buffer=64, work_queue=work_queue))
    assert done.operators[0].fullest <= 64


@pytest.mark.parametrize("name", ["one output", "partitioned"])
def test_a_chunk_is_claimed_at_once_and_split_by_partition_inside(name: str) -> None:
    for chunk in (1, 64, 1024):
        done = assert_ordered(name, RunSettings(chunk=chunk), tuples=10_240)
        assert done.operators[0].in_use.sum() == 10_240 // chunk


class _Left(Exception):
    """All rows that had arrived have left."""


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("chunk", [None, 1024])
def test_rows_leave_without_waiting_for_a_chunk_to_fill(name: str, workers: int, chunk: int | None) -> None:
    """The last row arrives in an hour; a worker that waited for it would hold the others until then."""
    chain = bound(CHAINS[name], 101, keys=5)
    arrivals_ns = np.append(np.arange(100) * 1000, 3_600 * 10**9)
    expected, left = run_serially(replace(chain, tuples=chain.tuples[:100])).egress.tuples, list[Words]()

    def take(rows: Words) -> None:
        left.append(rows)
        if sum(map(len, left)) == expected:
            raise _Left

    with pytest.raises(_Left):
        run_by_workers(chain, RunSettings(workers, chunk=chunk), pace=1, taken=take, arrivals_ns=arrivals_ns)


@numba.njit
def _next_chunk(address: int, claimable: int) -> int:
    header = record_at(address, HEADER, 0)
    return chunk_of(header, claimable, quota_of(header, operator_at(header, 0)))


@pytest.mark.parametrize(
    ("cost_ns", "chunk", "workers", "expected"),
    [
        (1_000, None, 1, 100),
        (10_000, None, 1, 10),
        (10**6, None, 1, 1),
        (10, None, 1, 1024),
        (10, None, 4, 751),
        (1_000, 64, 1, 64),
        (1_000, 1024, 1, 1024),
    ],
)
def test_a_chunk_ends_after_a_slice_unless_its_size_is_given(
    cost_ns: int, chunk: int | None, workers: int, expected: int
) -> None:
    """A chunk is sent when it ends, so this bounds how long a tuple waits for the others of its chunk."""
    memory = Memory(chain_of("one output", 100)[0], RunSettings(workers, chunk=chunk, slice_us=100), 1, 0)
    memory.operators[0]["inputs"], memory.operators[0]["time_ns"] = 1000, 1000 * cost_ns
    assert _next_chunk(memory.address, 3000) == expected


@pytest.mark.parametrize("workers", [1, 2, 8])
def test_retry_with_partitioned_work_queues_gets_a_ring_buffer_with_which_no_worker_waits(workers: int) -> None:
    settings = RunSettings(workers, Reorder.RETRY, WorkQueue.PARTITIONED, ring_buffer=64, queue_capacity=256)
    done = assert_ordered("all kinds", settings)
    partitioned_ones = [bool(len(tally.partition_loads) > 1) for tally in done.operators]
    assert [tally.ring_buffer for tally in done.operators] == [256 if each else 64 for each in partitioned_ones]
    assert all(tally.retries == 0 for tally, each in zip(done.operators, partitioned_ones, strict=True) if each)


@pytest.mark.parametrize("backend", ["threads", "model"])
def test_half_of_that_ring_buffer_can_hang(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One worker owns the first partition, and row 0, which is to be sent first, is in the other."""
    chain = bind(Chain((partitioned("b", 2, by=PartitionBy.RANGE),)), {"key": pa.array([1] + [0] * 15)})
    settings = RunSettings(1, Reorder.RETRY, WorkQueue.PARTITIONED, ring_buffer=8, queue_capacity=16)
    run = partial(run_by_workers, chain, settings, pace=1)
    if backend == "model":
        run = partial(run_model, chain, settings, Contention(), np.random.default_rng(1))
    run()
    monkeypatch.setattr(memory, "sizes_of", lambda *_: [Sizes(16, 8)])
    with pytest.raises(RuntimeError, match="stalled; tuples that arrived, were claimed, were sent, by operator: 'b'"):
        run()


def test_timed_tuples_enter_and_leave_in_their_order() -> None:
    marks = assert_ordered("all kinds", RunSettings(workers=2, mark_every=100)).marks
    assert len(marks.left) == 1000
    assert (marks.fed > 0).all()
    assert (marks.fed <= marks.entered).all()
    assert (marks.entered <= marks.left).all()
    assert (np.diff(marks.left) >= 0).all()
    assert len(marks.processing_s()) == len(marks.end_to_end_s()) == 600


def test_a_worker_that_dies_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled_work = kernel.work

    def dying(header: int, worker: int) -> None:
        if worker == 1:
            raise MemoryError("of worker 1")
        compiled_work(header, worker)

    monkeypatch.setattr(kernel, "work", dying)
    with pytest.raises(MemoryError, match="of worker 1"):
        run_by_workers(chain_of("stateless", 100_000)[0], RunSettings(workers=3), pace=1)


def fails(words: int, partition: int, given: int, outputs: int) -> int:
    return -1


FAILS = AtAddress("int64(int64, int64, int64, int64)", fails)


def test_a_function_that_fails_fails_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FUNCTIONS, FunctionName.COUNT, lambda bound: replace(count(bound), compiled=FAILS))
    with pytest.raises(RuntimeError, match="the function of operator 'c' failed"):
        run_by_workers(chain_of("all kinds", 100_000)[0], RunSettings(workers=3), pace=1)


def test_a_run_in_which_no_tuple_moves_ends_and_says_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_for_state(bound: BoundOperator) -> int:
        return 0 if bound.operator.kind is OperatorKind.STATEFUL else 9

    monkeypatch.setattr(memory, "_most", none_for_state)
    with pytest.raises(RuntimeError, match=r"the run stalled; .*'e' \(64, 0, 0\)"):
        run_by_workers(chain_of("all kinds", 100_000)[0], RunSettings(workers=3, queue_capacity=64), pace=1)


def test_a_worker_that_does_not_run_does_not_make_a_run_stall() -> None:
    """However often the others look for work in vain; a run stalls when all of them do."""

    @numba.njit
    def rests(address: int, workers: int, times: int) -> int:
        header = record_at(address, HEADER, 0)
        moved, since, counted = np.full(workers, -1), np.zeros(workers, np.int64), np.full(workers, -1)
        for _ in range(times):
            for worker in range(workers):
                moved[worker], since[worker], counted[worker] = rest(
                    header, moved[worker], since[worker], counted[worker], 0
                )
        return load_atomic(header, "stop")

    held = Memory(chain_of("one output", 100)[0], RunSettings(3), 1, 0)
    held.header["patience"] = 20
    assert rests(held.address, 2, 500) == GOES_ON
    assert rests(held.address, 3, 500) == STALLED
    held.release()


def test_a_run_that_would_take_too_much_memory_is_refused() -> None:
    with pytest.raises(UsageError, match="need more than 16 GiB; make them smaller"):
        run_by_workers(bound((partitioned("b", 1 << 16),), 10), RunSettings(2, queue_capacity=1 << 16, chunk=1), pace=1)


@pytest.mark.parametrize(("reorder", "work_queue"), SCHEMES)
def test_rows_enter_at_their_arrival_times_and_the_output_is_in_order(reorder: Reorder, work_queue: WorkQueue) -> None:
    chain, serial = chain_of("all kinds", 20_000)
    random = np.random.default_rng(5)
    arrivals_ns = np.cumsum(random.exponential(1000, len(chain.tuples))).astype(np.int64)
    settings = RunSettings(3, reorder, work_queue, ring_buffer=512, queue_capacity=512, mark_every=7)
    done = run_by_workers(chain, settings, pace=1, arrivals_ns=arrivals_ns)
    assert done.egress == serial.egress
    marks = done.marks
    assert np.diff(marks.fed).tolist() == np.diff(arrivals_ns[::7]).tolist()
    assert (marks.fed + marks.lag <= marks.entered).all()
    assert (marks.entered <= marks.left).all()
    assert (marks.lag >= 0).all()
    assert len(marks.lag) == len(marks.fed)


def test_a_pause_of_the_arrivals_is_no_stall(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "_PATIENCE", 10)
    chain, serial = chain_of("one output", 100)
    arrivals_ns = np.repeat([0, 10**8], 50)
    assert run_by_workers(chain, RunSettings(2), pace=1, arrivals_ns=arrivals_ns).egress == serial.egress


def test_a_slice_too_short_for_more_has_one_tuple():
    settings = RunSettings(chunk=1, slice_us=0.001)
    assert [tally.slices for tally in assert_ordered("one output", settings, 5000).operators] == [5000]
