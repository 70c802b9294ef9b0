"""Queues of engines against independent models: recursions in NumPy, and events in SimPy."""

from bisect import bisect_right
from collections import deque

import numpy as np
import pytest
import simpy

from adapt.core.errors import UsageError
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.names import QueueingName, Router
from adapt.core.stage.conditions.settings import Costs, Network, Queueing, StageSettings, even_groups, even_owners
from adapt.core.stage.engine.series import together
from adapt.core.stage.movement.controller import Move
from adapt.core.stage.simulate import Actors, simulate

WORKERS = 4
LATENCY_S = 2**-14
FREE = Costs(produce_s=0.0)


def stage(queueing, partitions_per_worker=1, **changes):
    partitions = WORKERS * partitions_per_worker
    given = {"network": Network(latency_s=LATENCY_S), "costs": FREE, **changes}
    owners, groups = even_owners(WORKERS, partitions_per_worker), even_groups(partitions, partitions)
    return StageSettings(WORKERS, owners, groups, queueing=queueing, **given)


class Stream:
    """Rows with skewed groups, bursty arrivals and their own costs."""

    def __init__(self, rows, partitions, load, seed=0):
        chance = np.random.default_rng(seed)
        weights = 1.0 / np.arange(1, partitions + 1)
        self.groups = chance.choice(partitions, rows, p=weights / weights.sum())
        self.cost_s = chance.lognormal(-0.5, 1.0, rows) * 1e-3
        busiest = max(self.cost_s[self.groups == group].sum() for group in range(partitions))
        gaps = chance.exponential(1.0, rows)
        self.due_s = np.cumsum(gaps) * busiest / load / gaps.sum()
        self.producers = chance.integers(0, WORKERS, rows)

    def rows(self, chunk=997):
        def chunks():
            for first in range(0, len(self.groups), chunk):
                part = slice(first, first + chunk)
                yield Chunk(self.groups[part], self.producers[part], self.due_s[part], self.cost_s[part])

        return Rows(chunks)


def ends(run, rows):
    """When each row was processed."""
    assert len(run.journal) == rows
    found = np.empty(rows)
    found[run.journal["number"]] = run.journal["at"]
    return found


def lindley(due_s, cost_s):
    """When each row of one queue is processed: W' = max(0, W + S - T)."""
    wait_s = np.zeros(len(due_s))
    for at in range(1, len(due_s)):
        wait_s[at] = max(0.0, wait_s[at - 1] + cost_s[at - 1] - (due_s[at] - due_s[at - 1]))
    return due_s + wait_s + cost_s


@pytest.mark.parametrize("load", [0.7, 1.5])
def test_kafkas_partitions_follow_lindleys_recursion(load):
    given = Stream(20_000, WORKERS, load)
    run = simulate(stage(Queueing(QueueingName.KAFKA)), given.rows(), journal=20_000)
    found = ends(run, 20_000)
    for group in range(WORKERS):
        of = given.groups == group
        assert found[of] == pytest.approx(lindley(given.due_s[of] + LATENCY_S, given.cost_s[of]), abs=1e-7)


def test_a_worker_reads_the_partitions_of_its_log_as_one_queue():
    given = Stream(5_000, 3 * WORKERS, 1.4)
    run = simulate(stage(Queueing(QueueingName.KAFKA), 3), given.rows(), journal=5_000)
    found = ends(run, 5_000)
    for worker in range(WORKERS):
        of = given.groups // 3 == worker
        assert found[of] == pytest.approx(lindley(given.due_s[of] + LATENCY_S, given.cost_s[of]), abs=1e-7)


class Moving:
    """Moves partitions of worker 0 to others, and back."""

    def __init__(self):
        self.rounds = 0

    def collection_s(self, _):
        return 0.15

    def plan(self, observed):
        self.rounds += 1
        moved = [Move(partition, int(observed.owners[partition]), self.rounds % WORKERS) for partition in (0, 1)]
        return [move for move in moved if move.donor != move.receiver]


@pytest.mark.parametrize(
    "queueing",
    [
        Queueing(QueueingName.KAFKA, fetch_rows=20),
        Queueing(QueueingName.FLINK, channel_rows=50, checkpoint_s=0.1),
        Queueing(QueueingName.SPARK, batch_overhead_s=0.01),
    ],
    ids=lambda one: one.engine.value,
)
def test_rows_of_partitions_that_move_keep_their_order_and_none_is_lost(queueing):
    given = Stream(5_000, 3 * WORKERS, 1.4)
    network = Network(latency_s=LATENCY_S, connection_tuples=30)
    of = stage(queueing, 3, network=network, buffer_tuples=120, state_tuples=100)
    run = simulate(of, given.rows(), actors=Actors(Moving()), journal=5_000, interval_s=0.1)
    found = ends(run, 5_000)
    assert len(run.moves) > 10
    assert run.census.whole
    for group in range(3 * WORKERS):
        parts = [given.groups == group]
        if queueing.engine is QueueingName.FLINK:
            parts = [parts[0] & (given.producers == producer) for producer in range(WORKERS)]
        for part in parts:
            assert (np.diff(found[part]) > 0).all()


@pytest.mark.parametrize("engine", [QueueingName.FLUX, QueueingName.FLINK, QueueingName.KAFKA])
def test_lag_is_the_rows_that_have_arrived_and_wait(engine):
    given = Stream(5_000, WORKERS, 0.9)
    run = simulate(stage(Queueing(engine)), given.rows(), journal=5_000, interval_s=10 * given.due_s[-1])
    waiting = np.arange(1, 5_001) - np.searchsorted(np.sort(run.journal["at"]), given.due_s)
    assert max(one.lag for one in run.intervals) == waiting.max()


def test_a_worker_with_two_logs_reads_them_in_fetches():
    given = Stream(5_000, 3 * WORKERS, 2.0)
    once = Moving()
    once.plan = lambda observed: [] if observed.owners[0] == 1 else [Move(0, 0, 1)]
    of = stage(Queueing(QueueingName.KAFKA, fetch_rows=20), 3, network=Network(connection_tuples=30))
    run = simulate(of, given.rows(), actors=Actors(once), journal=5_000)
    (moved,) = run.moves
    journal = run.journal[(run.journal["worker"] == 1) & (run.journal["at"] > moved.times_s["restarted"])]
    lasts = np.diff(np.flatnonzero(np.diff(journal["producer"]) != 0))
    assert (lasts[:10] == 20).all()


def test_logs_in_memory_are_bounded_and_then_the_source_waits():
    given = Stream(20_000, WORKERS, 2.0)
    run = simulate(stage(Queueing(QueueingName.KAFKA, log_rows=600)), given.rows(), journal=20_000, interval_s=0.05)
    assert 300 < max(int(one.pools.sum()) for one in run.intervals) <= 600
    assert max(one.waited_s for one in run.intervals) > 0.1
    assert sorted(run.journal["number"].tolist()) == list(range(20_000))


def micro_batches(given, trigger_s, overhead_s, most):
    """Start and end of each micro-batch, and the latency of each row: a recursion over batches."""
    at, first, last = 0.0, 0, len(given.due_s)
    batches, latency_s = [], np.empty(last)
    while first < last:
        end = min(bisect_right(given.due_s, at), first + most)
        if end == first:
            behind = given.due_s[first] - at
            at = at + (np.ceil(behind / trigger_s) * trigger_s if trigger_s else behind)
            continue
        of = slice(first, end)
        busy_s = np.bincount(given.groups[of], given.cost_s[of], WORKERS).max()
        done = at + overhead_s + LATENCY_S + busy_s
        batches.append((at, done))
        latency_s[of] = done - given.due_s[of]
        at, first = max(done, at + trigger_s), end
    return batches, latency_s


@pytest.mark.parametrize(
    ("trigger_s", "most", "load"), [(0.0, 2**20, 0.7), (0.5, 2**20, 0.4), (0.0, 300, 1.3), (0.25, 400, 0.9)]
)
def test_micro_batches_follow_a_recursion_in_which_the_slowest_worker_ends_each(trigger_s, most, load):
    given = Stream(5_000, WORKERS, load)
    queueing = Queueing(QueueingName.SPARK, trigger_s=trigger_s, batch_overhead_s=0.02, batch_rows=most)
    of = stage(queueing, network=Network(latency_s=LATENCY_S, connection_tuples=5_000))
    run = simulate(of, given.rows(), interval_s=0.1)
    batches, latency_s = micro_batches(given, trigger_s, 0.02, most)
    assert len(run.batches) == len(batches)
    assert np.array([one[:2] for one in run.batches]) == pytest.approx(np.array(batches), abs=1e-6)
    assert sum(one[2] for one in run.batches) == 5_000
    total = together([one.total for one in run.intervals])
    assert total.sum_s == pytest.approx(latency_s.sum(), rel=1e-9)
    assert total.max_s == pytest.approx(latency_s.max(), abs=1e-6)
    assert total.share_below_s(0.5) == pytest.approx(np.quantile(latency_s, 0.5), rel=0.05)


class Channels:
    """Flink's channels as SimPy processes: credits, bounded send queues, barriers in line with rows."""

    def __init__(self, given, credits, most, pool, every_s=None):
        self.world = simpy.Environment()
        self.given, self.credits, self.most, self.pool = given, credits, most, pool
        self.sending = [[deque() for _ in range(WORKERS)] for _ in range(WORKERS)]  # by producer, worker
        self.inbox = [[deque() for _ in range(WORKERS)] for _ in range(WORKERS)]  # by worker, producer
        self.sent = [[0] * WORKERS for _ in range(WORKERS)]
        self.room = [self.world.event() for _ in range(WORKERS)]
        self.arrived = [self.world.event() for _ in range(WORKERS)]
        self.ends, self.left = np.empty(len(given.due_s)), len(given.due_s)
        self.aligned, self.checkpoints, self.every_s = [], [], every_s
        for number in range(WORKERS):
            self.world.process(self.produce(number))
            self.world.process(self.consume(number))
        if every_s:
            self.world.process(self.coordinate())
        self.world.run()

    def wake(self, events, number):
        woken, events[number] = events[number], self.world.event()
        woken.succeed()

    def flush(self, producer, worker):
        """Send what credits allow; barriers need none."""
        line = self.sending[producer][worker]
        while line and (line[0] is None or self.sent[producer][worker] < self.credits):
            item = line.popleft()
            self.sent[producer][worker] += item is not None
            self.world.process(self.deliver(producer, worker, item))

    def deliver(self, producer, worker, item):
        yield self.world.timeout(LATENCY_S)
        self.inbox[worker][producer].append(item)
        self.wake(self.arrived, worker)

    def produce(self, number):
        for row in np.flatnonzero(self.given.producers == number).tolist():
            while True:
                counts = [sum(item is not None for item in line) for line in self.sending[number]]
                if sum(counts) < self.pool and max(counts) < self.most:
                    break
                yield self.room[number]
            if self.given.due_s[row] > self.world.now:
                yield self.world.timeout(self.given.due_s[row] - self.world.now)
            self.sending[number][self.given.groups[row]].append(row)
            self.flush(number, self.given.groups[row])

    def consume(self, worker):
        turn, stopped = 0, set()
        while self.left:
            for producer in range(WORKERS):
                line = self.inbox[worker][producer]
                if line and line[0] is None and producer not in stopped:
                    line.popleft()
                    stopped.add(producer)
            if len(stopped) == WORKERS:
                stopped = set()
                self.aligned.append(worker)
                if len(self.aligned) == WORKERS:
                    self.checkpoints.append(self.world.now)
                    self.aligned = []
            ready = [one % WORKERS for one in range(turn, turn + WORKERS)]
            ready = [one for one in ready if one not in stopped and self.inbox[worker][one]]
            if not ready:
                yield self.arrived[worker]
                continue
            producer, turn = ready[0], (ready[0] + 1) % WORKERS
            row = self.inbox[worker][producer].popleft()
            self.sent[producer][worker] -= 1
            self.flush(producer, worker)
            self.wake(self.room, producer)
            yield self.world.timeout(self.given.cost_s[row])
            self.ends[row] = self.world.now
            self.left -= 1

    def coordinate(self):
        for number in range(1, 10**6):
            yield self.world.timeout(number * self.every_s - self.world.now)
            if not self.left:
                return
            for producer in range(WORKERS):
                for worker in range(WORKERS):
                    self.sending[producer][worker].append(None)
                    self.flush(producer, worker)


@pytest.mark.parametrize("every_s", [None, 0.5])
@pytest.mark.parametrize("load", [0.8, 1.4])
def test_flinks_channels_are_those_of_an_independent_model(load, every_s):
    given = Stream(4_000, WORKERS, load)
    queueing = Queueing(QueueingName.FLINK, channel_rows=40, checkpoint_s=every_s)
    network = Network(latency_s=LATENCY_S, connection_tuples=20)
    run = simulate(stage(queueing, network=network, buffer_tuples=60), given.rows(), journal=4_000)
    expected = Channels(given, 20, 40, 60, every_s)
    found = np.array([end_s for _, end_s in run.checkpoints])
    assert ends(run, 4_000) == pytest.approx(expected.ends, abs=1e-6)
    assert found == pytest.approx(np.array(expected.checkpoints[: len(found)]), abs=1e-6)
    assert len(found) >= (3 if every_s else 0)


def test_aligned_barriers_stall_and_unaligned_ones_do_not():
    given = Stream(4_000, WORKERS, 1.4)
    runs = {}
    for name, changes in {"none": {"checkpoint_s": None}, "aligned": {}, "unaligned": {"aligned": False}}.items():
        queueing = Queueing(QueueingName.FLINK, **{"checkpoint_s": 0.2, "channel_rows": 200, **changes})
        runs[name] = simulate(stage(queueing, buffer_tuples=500), given.rows(), journal=4_000)
    assert runs["unaligned"].journal.tobytes() == runs["none"].journal.tobytes()
    assert runs["aligned"].journal.tobytes() != runs["none"].journal.tobytes()
    assert max(end - start for start, end in runs["aligned"].checkpoints) > 10 * LATENCY_S
    longest = LATENCY_S + given.cost_s.max()
    assert max(end - start for start, end in runs["unaligned"].checkpoints) <= longest + 1e-9


def test_a_pause_for_a_checkpoint_costs_each_worker_its_time():
    given = Stream(2_000, WORKERS, 1.4)
    finished_s = []
    for pause_s in (0.0, 0.01):
        queueing = Queueing(QueueingName.FLINK, checkpoint_s=0.2, aligned=False, checkpoint_pause_s=pause_s)
        run = simulate(stage(queueing), given.rows())
        finished_s.append(run.finished_s)
        count = len(run.checkpoints)
    assert finished_s[1] - finished_s[0] == pytest.approx(0.01 * count, abs=0.011)


def test_a_hot_worker_delays_others_in_a_full_pool_but_not_in_logs():
    given = Stream(20_000, WORKERS, 1.5)
    p50_s = {}
    for engine in (QueueingName.FLUX, QueueingName.FLINK, QueueingName.KAFKA):
        run = simulate(stage(Queueing(engine, channel_rows=100), buffer_tuples=240), given.rows())
        p50_s[engine] = together([one.total for one in run.intervals]).share_below_s(0.5)
    assert p50_s[QueueingName.KAFKA] < 0.8 * min(p50_s[QueueingName.FLUX], p50_s[QueueingName.FLINK])


def test_what_only_flux_has_is_refused_with_other_queues():
    with pytest.raises(UsageError, match="use router flux"):
        stage(Queueing(QueueingName.KAFKA), router=Router.EXCHANGE)
    with pytest.raises(UsageError, match="fetch_rows must be at least 1"):
        Queueing(QueueingName.KAFKA, fetch_rows=0)
    with pytest.raises(UsageError, match="checkpoint_s must be above 0"):
        Queueing(QueueingName.FLINK, checkpoint_s=0.0)
    with pytest.raises(UsageError, match="excludes crashes"):
        Queueing(QueueingName.SPARK).check((1,), None)
