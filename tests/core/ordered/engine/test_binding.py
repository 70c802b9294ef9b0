"""Parallelization schemes: who serves what, on threads and in the model, against rules worked out by hand."""

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.names import Heuristic, Parallelism, Reorder, WorkQueue
from adapt.core.ordered.engine.memory import barred, degrees_of, replicas_of_workers, workers_used
from adapt.core.ordered.engine.reference import run_serially
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.ordered.model.model import run_model
from tests.core.ordered.chains import bound, counting, partitioned, stateful, stateless

REPLICATED, PIPELINE = Parallelism.REPLICATED, Parallelism.PIPELINE
MICRO_BATCH = Parallelism.MICRO_BATCH


def mixed(tuples: int = 3000) -> BoundChain:
    return bound([stateless("a"), partitioned("b", 16), stateful("c"), counting("d", 3)], tuples)


def served(chain: BoundChain, settings: RunSettings) -> tuple[np.ndarray, np.ndarray]:
    """Tuples by worker and operator, on threads and in the model."""
    threads = run_by_workers(chain, settings, pace=1)
    assert threads.egress == run_serially(chain).egress, settings
    model = run_model(chain, settings, Contention(), np.random.default_rng(1), costs_us=(1.0,) * len(chain.operators))
    return threads.served, model.run.served


def dealt(chain: BoundChain, degrees: tuple[int, ...], workers: int) -> np.ndarray:
    """Tuples by worker and operator: replica r of the n-th operator has those of serial number or partition r."""
    counts, number = np.zeros((workers, len(degrees)), np.int64), 0
    for at, (each, degree) in enumerate(zip(chain.operators, degrees, strict=True)):
        keys = np.arange(len(chain.tuples))
        if each.partitions > 1:
            keys = np.repeat(
                np.arange(each.partitions), run_by_workers(chain, RunSettings(), pace=1).operators[at].partition_loads
            )
        for replica in range(degree):
            counts[number % workers, at] += (keys % degree == replica).sum()
            number += 1
    return counts


@pytest.mark.parametrize(
    ("workers", "given", "degrees"),
    [
        (1, (), (1, 1, 1, 1)),
        (2, (), (2, 2, 1, 2)),
        (3, (2,), (2, 2, 1, 2)),
        (4, (3, 1, 9, 2), (3, 1, 1, 2)),
        (5, (), (5, 5, 1, 3)),
    ],
)
def test_each_replica_serves_its_tuples_on_threads_as_in_the_model(
    workers: int, given: tuple[int, ...], degrees: tuple[int, ...]
) -> None:
    chain, settings = mixed(), RunSettings(workers, parallelism=REPLICATED, degrees=given)
    assert degrees_of(chain.operators, settings) == degrees
    threads, model = served(chain, settings)
    assert threads.tolist() == model.tolist() == dealt(chain, degrees, workers).tolist()


@pytest.mark.parametrize("workers", [1, 2, 3, 4, 9])
def test_a_pipeline_has_one_worker_per_operator_and_uses_no_more(workers: int) -> None:
    threads, model = served(mixed(), RunSettings(workers, parallelism=PIPELINE))
    used = min(workers, 4)
    binding = [[3000 * (at % used == worker) for at in range(4)] for worker in range(used)]
    assert threads.tolist() == model.tolist() == binding


def test_workers_without_a_replica_are_not_used() -> None:
    chain = bound([stateful("a"), partitioned("b", 2)], 10)
    settings = RunSettings(8, parallelism=REPLICATED)
    assert workers_used(chain, settings) == 3
    assert replicas_of_workers(chain, RunSettings(3, parallelism=REPLICATED)).tolist() == [[0, -1], [-1, 0], [-1, 1]]
    assert barred(chain, RunSettings(3, parallelism=REPLICATED)).tolist() == [0b10, 0b01, 0b01]
    assert barred(chain, RunSettings(3)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("how", Parallelism)
@pytest.mark.parametrize("reorder", Reorder)
def test_no_scheme_hangs_with_tiny_rings_and_queues_and_many_or_few_workers(how: Parallelism, reorder: Reorder) -> None:
    chain = bound([stateless("a", 3.0), partitioned("b", 16), stateless("c", 0.4), stateful("d", 2.0)], 40)
    serial = run_serially(chain).egress
    batch = {"batch": 2} if how is MICRO_BATCH else {}
    for workers in (1, 3, 32):
        settings = RunSettings(
            workers, reorder, ring_buffer=1, queue_capacity=2, parallelism=how, checked=True, **batch
        )
        done = run_by_workers(chain, settings, pace=1)
        assert done.egress == serial, settings
        assert not any(tally.overlaps or tally.disorders for tally in done.operators)
        modeled = run_model(chain, settings, Contention(), np.random.default_rng(1), costs_us=(1.0, 2.0, 0.0, 1.0)).run
        assert modeled.operators[0].inputs == 40


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ({"batch": 5}, "batch needs parallelism micro-batch (got dynamic)"),
        ({"parallelism": MICRO_BATCH}, "batch must be from 1 to the work queue's 4096 tuples (got 0)"),
        ({"parallelism": MICRO_BATCH, "batch": 4097}, "(got 4097)"),
        ({"parallelism": MICRO_BATCH, "batch": 5, "heuristic": Heuristic.LP}, "heuristic lp has no effect"),
        ({"degrees": (2,)}, "degrees needs parallelism replicated (got dynamic)"),
        ({"parallelism": REPLICATED, "degrees": (2, 0)}, "degrees must be at least 1 (got 2,0)"),
        ({"parallelism": REPLICATED, "work_queue": WorkQueue.PARTITIONED}, "work_queue partitioned has no effect"),
    ],
)
def test_settings_that_a_scheme_has_no_use_for_are_refused(more: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        RunSettings(2, **more)  # type: ignore[arg-type]
    assert told in str(refused.value)


def test_degrees_must_be_one_for_all_operators_or_one_for_each() -> None:
    settings = RunSettings(4, parallelism=REPLICATED, degrees=(1, 2, 3))
    with pytest.raises(UsageError, match=r"one for all operators or one for each of 4 \(got 3: 1,2,3\)"):
        run_by_workers(mixed(10), settings, pace=1)
