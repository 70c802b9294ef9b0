"""The model with arrivals against queueing theory and a plain event simulation."""

import heapq
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from adapt.core.ordered.chain.bound import BoundChain
from adapt.core.ordered.chain.chain import Operator
from adapt.core.ordered.chain.mixing import FOLD, MASK, mixed
from adapt.core.ordered.chain.names import Heuristic
from adapt.core.ordered.engine.reference import WorkersRun
from adapt.core.ordered.engine.settings import Contention, RunSettings
from adapt.core.ordered.model.model import run_model
from tests.core.ordered.chains import bound, partitioned, stateful, stateless

JITTER = 0.5
ROWS = 300

Times = NDArray[np.int64]


def arrivals(seed: int, mean_ns: float, rows: int = ROWS) -> Times:
    """Bursts and pauses: a third of the rows arrive together with the row before."""
    random = np.random.default_rng(seed)
    gaps = random.exponential(mean_ns, rows) * (random.random(rows) > 0.33)
    return np.cumsum(gaps).astype(np.int64)


def services_ns(operator: int, cost_us: float, rows: int = ROWS) -> list[int]:
    """What each tuple of an operator takes: the model's draws, SplitMix64 from the seed."""
    seed = int(np.random.default_rng(1).integers(2**62))
    words = [mixed((seed + 2 * operator + (serial + 1) * FOLD) & MASK) for serial in range(rows)]
    evens = [((word >> 11) + 0.5) / 2**53 for word in words]
    return [int(cost_us * 1000 * (1 - JITTER - JITTER * np.log(even)) + 0.5) for even in evens]


def modeled(
    operators: Sequence[Operator], costs_us: Sequence[float], times: Times, settings: RunSettings
) -> tuple[BoundChain, WorkersRun]:
    chain = bound(operators, len(times))
    random = np.random.default_rng(1)
    done = run_model(chain, settings, Contention(JITTER), random, costs_us=costs_us, arrivals_ns=times)
    assert done.run.marks.fed.tolist() == times.tolist()
    return chain, done.run


def lindley(times: Sequence[int], services: Sequence[int]) -> tuple[list[int], list[int]]:
    """Start and end of each customer of a queue with one server: Lindley's recursion."""
    starts, ends, free = list[int](), list[int](), 0
    for arrival, service in zip(times, services, strict=True):
        starts.append(max(arrival, free))
        free = starts[-1] + service
        ends.append(free)
    return starts, ends


@pytest.mark.parametrize("load", [0.3, 0.9, 1.5])
@pytest.mark.parametrize("queue", [8, 4096])
def test_one_worker_and_one_stateless_operator_follow_lindleys_recursion(load: float, queue: int) -> None:
    """Whether or not the work queue is full, since rows are timed from their arrival."""
    times = arrivals(3, 2000 / load)
    settings = RunSettings(1, mark_every=1, queue_capacity=queue)
    _, run = modeled([stateless("a")], [2.0], times, settings)
    starts, ends = lindley(times.tolist(), services_ns(0, 2.0))
    assert run.marks.entered.tolist() == starts
    assert run.marks.left.tolist() == ends


@pytest.mark.parametrize("workers", [2, 5])
@pytest.mark.parametrize("load", [0.5, 0.95])
def test_more_workers_are_the_servers_of_one_queue(workers: int, load: float) -> None:
    times = arrivals(4, 2000 / load / workers)
    _, run = modeled([stateless("a")], [2.0], times, RunSettings(workers, mark_every=1))
    free, starts, left = [0] * workers, list[int](), list[int]()
    for arrival, service in zip(times.tolist(), services_ns(0, 2.0), strict=True):
        starts.append(max(arrival, heapq.heappop(free)))
        heapq.heappush(free, starts[-1] + service)
        left.append(max(starts[-1] + service, left[-1] if left else 0))
    assert run.marks.entered.tolist() == starts
    assert run.marks.left.tolist() == left


def test_stateful_operators_with_a_worker_each_are_queues_in_tandem() -> None:
    times = arrivals(5, 2500)
    _, run = modeled([stateful("a"), stateful("b")], [2.0, 1.5], times, RunSettings(2, mark_every=1))
    starts, between = lindley(times.tolist(), services_ns(0, 2.0))
    _, ends = lindley(between, services_ns(1, 1.5))
    assert run.marks.entered.tolist() == starts
    assert run.marks.left.tolist() == ends


def test_partitions_with_a_worker_each_are_queues_side_by_side() -> None:
    times = arrivals(6, 1000)
    chain, run = modeled([partitioned("a", 4)], [2.0], times, RunSettings(4, mark_every=1))
    operator, services = chain.operators[0], services_ns(0, 2.0)
    of = np.array([operator.partition(row) for row in chain.tuples.tolist()])
    ends = np.zeros(ROWS, np.int64)
    for partition in range(4):
        here = np.flatnonzero(of == partition)
        ends[here] = lindley(times[here].tolist(), [services[at] for at in here])[1]
    assert run.marks.left.tolist() == np.maximum.accumulate(ends).tolist()


def simulated(times: Sequence[int], services: Sequence[Sequence[int]], workers: int) -> list[int]:
    """When each row leaves a chain of stateless operators whose workers take a tuple of the last operator with any.

    Plain events: an arrival, or the end of a tuple. Outputs of an operator go on in serial order.
    """
    events = [(time, -1, row) for row, time in enumerate(times)]
    heapq.heapify(events)
    waiting: list[list[int]] = [[] for _ in services]
    done: list[set[int]] = [set() for _ in services]
    sent, idle, left = [0] * len(services), workers, [0] * len(times)
    while events:
        now, operator, row = heapq.heappop(events)
        if operator < 0:
            waiting[0].append(row)
        else:
            idle += 1
            done[operator].add(row)
            while sent[operator] in done[operator]:
                if operator + 1 < len(services):
                    waiting[operator + 1].append(sent[operator])
                else:
                    left[sent[operator]] = now
                sent[operator] += 1
        if events and events[0][0] == now:
            continue
        for at in reversed(range(len(services))):
            while idle and waiting[at]:
                idle -= 1
                first = waiting[at].pop(0)
                heapq.heappush(events, (now + services[at][first], at, first))
    return left


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("workers", [1, 3])
def test_a_chain_equals_a_plain_event_simulation(seed: int, workers: int) -> None:
    costs = (1000.0, 2000.0, 700.0)  # in nanoseconds so long that no two events coincide
    times = arrivals(seed, sum(costs) * 1000 / workers / 0.8)
    settings = RunSettings(workers, heuristic=Heuristic.LP, slice_us=0.001, mark_every=1)
    _, run = modeled([stateless(name) for name in "abc"], costs, times, settings)
    services = [services_ns(operator, cost) for operator, cost in enumerate(costs)]
    assert run.marks.left.tolist() == simulated(times.tolist(), services, workers)
