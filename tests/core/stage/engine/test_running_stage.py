from collections import defaultdict, deque
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.arrivals import Chunk, Drawn, Rows, alias_table
from adapt.core.stage.conditions.faults import ExternalLoad, SlowDown
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import Costs, Network, StageSettings, even_groups, even_owners
from adapt.core.stage.engine.running_stage import Stage
from adapt.core.stage.engine.series import together
from adapt.core.stage.simulate import simulate
from tests.core.stage.literal import Item, LiteralStage
from tests.core.stage.stages import drawn, stages, stream

BY_CONTENT = (Router.EXCHANGE, Router.FLUX)


def small(workers=2, partitions_per_worker=2, **changes):
    partitions = workers * partitions_per_worker
    return StageSettings(
        workers, even_owners(workers, partitions_per_worker), even_groups(partitions, partitions), **changes
    )


def in_order(journal):
    """Whether each producer's tuples of each partition were processed in their order, and none of them twice."""
    last = {}
    for entry in journal:
        flow = int(entry["producer"]), int(entry["partition"])
        if last.get(flow, -1) >= entry["number"]:
            return False
        last[flow] = int(entry["number"])
    return True


def serial_answers(journal, window):
    """The windowed sums of a serial run over the same tuples."""
    past = defaultdict(lambda: deque(maxlen=window))
    answers = []
    for entry in journal:
        past[int(entry["group"])].append(int(entry["number"]))
        answers.append(sum(past[int(entry["group"])]))
    return answers


@given(stages([Router.RIVER]), st.floats(0, 2), st.lists(st.floats(1e-5, 0.02), min_size=1, max_size=4))
def test_river_loses_no_tuple_and_overfills_no_place(of, zipf, pauses):
    stage = Stage(of, drawn(of, zipf))
    for until in np.cumsum(pauses):
        stage.run(float(until))
        assert stage.census().whole, stage.census()
        assert stage.arrays["producer"]["held"].max() <= of.held_tuples
        assert stage.arrays["connection"]["count"].max() <= of.network.connection_tuples
        assert stage.now_s == until


@given(stages(), st.integers(0, 400), st.integers(1, 50), st.integers(0, 2**20), st.booleans())
def test_a_stream_is_processed_to_its_end_however_it_is_cut(of, rows, chunk, seed, timed):
    whole, cut = (
        simulate(of, stream(of, rows, 0.01, seed, size, timed), interval_s=0.01, journal=10**3)
        for size in (10**9, chunk)
    )
    assert sorted(whole.journal["number"].tolist()) == list(range(rows))
    assert whole.journal.tobytes() == cut.journal.tobytes()
    if timed:
        queued = [[one.source_queue for one in run.intervals] for run in (whole, cut)]
        assert queued[0][: len(queued[1])] == queued[1][: len(queued[0])]


@given(st.integers(2, 4), st.integers(1, 40), st.integers(12, 20), st.integers(0, 2**20), st.floats(1e-3, 0.05))
@settings(max_examples=50)
def test_every_time_is_that_of_the_literal_stage(workers, buffer, credits, seed, span_s):
    """One partition a worker, so that the next tuple for a worker is the same whatever the cyclic order."""
    of = small(workers, 1, buffer_tuples=buffer, network=Network(connection_tuples=credits))
    source = stream(of, 600, span_s, seed)
    chunk = next(source.chunks())
    rows = [deque() for _ in range(workers)]
    for number, fields in enumerate(zip(chunk.groups, chunk.producers, chunk.due_s, chunk.cost_s, strict=True)):
        group, producer, due, cost = (field.item() for field in fields)
        rows[producer].append(Item(producer, number, group, due, cost))

    def pull(producer, now):
        if not rows[producer]:
            return None
        return rows[producer].popleft() if rows[producer][0].due <= now else rows[producer][0].due

    class Owners:
        partition = staticmethod(lambda group: group)
        worker = staticmethod(lambda partition: partition)

    literal = LiteralStage(workers, Owners, pull, buffer, credits).run(np.inf)
    journal = simulate(of, source, interval_s=0.05, journal=10**3).journal
    ours = sorted(zip(journal["at"], journal["worker"], journal["producer"], journal["number"], strict=True))
    assert [one[1:] for one in ours] == [one[1:] for one in sorted(literal.processed)]
    assert np.allclose([one[0] for one in ours], [one[0] for one in sorted(literal.processed)], rtol=0, atol=1e-12)


@given(
    st.lists(
        st.tuples(st.floats(0, 1e-3), st.floats(1e-5, 1e-3), st.sampled_from(["load", "slow", "pause"])), max_size=4
    ),
    st.floats(0, 3e-3),
    st.floats(1e-6, 3e-3),
)
def test_work_takes_as_long_as_what_is_left_of_the_cpu(gaps, begin, cost):
    """Against walking through every burst and every pause."""
    disturbances, at = [], 0.0
    for gap, lasting, kind in gaps:
        start, at = at + gap, at + gap + lasting
        kinds = {
            "load": ExternalLoad(0, start, at),
            "slow": SlowDown(0, start, at, 0.3),
            "pause": SlowDown(0, start, at, 0),
        }
        disturbances.append(kinds[kind])
    of = small(costs=Costs(produce_s=0), network=Network(latency_s=0), disturbances=tuple(disturbances))
    row = Chunk(np.array([0]), np.array([0]), np.array([begin]), np.array([cost]))
    finished = simulate(of, Rows(lambda: iter([row])), interval_s=0.1, journal=1).journal["at"][0]

    speeds = [(0.0, 1.0)]  # from when on
    for one in disturbances:
        if isinstance(one, SlowDown):
            speeds.append((one.start_s, one.speed))
        for burst in range(200) if isinstance(one, ExternalLoad) else ():
            cycle_s = one.start_s + burst * 175e-6
            speeds += [(min(at, one.end_s), speed) for at, speed in ((cycle_s, 1.0), (cycle_s + 75e-6, 0.0))]
        speeds.append((one.end_s, 1.0))
    time, left = begin, cost
    for (start, speed), (end, _) in pairwise([*speeds, (np.inf, 1.0)]):
        start, end = max(start, time), max(end, time)
        if speed * (end - start) >= left:
            time, left = start + left / speed, 0.0
            break
        time, left = end, left - speed * (end - start)
    assume(all(abs(time - at) > 1e-9 for at, _ in speeds))  # done just as a pause begins: rounding decides
    assert finished == pytest.approx(time, abs=1e-9)


def test_a_lone_tuple_takes_its_latency_and_its_cost():
    row = Chunk(np.array([3]), np.array([0]), np.array([0.5]), np.array([2e-3]))
    run = simulate(small(costs=Costs(produce_s=0)), Rows(lambda: iter([row])), journal=1)
    assert run.journal["at"][0] == pytest.approx(0.5 + 70e-6 + 2e-3, abs=1e-12)
    assert run.journal["worker"][0] == 1
    (interval,) = run.intervals
    assert interval.operator.mean_s == pytest.approx(2e-3)
    assert interval.total.mean_s == pytest.approx(2.07e-3)
    assert interval.idle[1] == pytest.approx(1 - 2e-3)
    assert interval.source_queue == 0


def test_what_cannot_keep_up_queues_at_the_source_and_is_reported():
    """100 tuples of 10 ms each for one worker, all due in the first 10 ms: 1 of them is done in 15 ms."""
    rows = 100
    chunk = Chunk(np.zeros(rows, int), np.zeros(rows, int), np.linspace(0, 0.01, rows), np.full(rows, 0.01))
    of = small(buffer_tuples=10, network=Network(connection_tuples=12), costs=Costs(produce_s=0))
    for size in (rows, 7):
        parts = [
            Chunk(
                chunk.groups[at : at + size],
                chunk.producers[at : at + size],
                chunk.due_s[at : at + size],
                chunk.cost_s[at : at + size],
            )
            for at in range(0, rows, size)
        ]
        run = simulate(of, Rows(lambda parts=parts: iter(parts)), interval_s=0.015)
        first, second = run.intervals[:2]
        assert first.processed == 1
        assert first.source_queue == rows - 10 - 12 - 2  # the second tuple is in service
        assert second.waited_s > 0
        assert [first.lag, second.lag] == [rows, rows - 1]
        assert run.census.processed == rows
        assert run.intervals[-1].source_queue == 0
        assert 0.7 / 2 < np.mean([one.behind for one in run.intervals]) < 0.8 / 2  # of one of two producers
        assert run.finished_s == pytest.approx(1.0, abs=1e-3)


def test_river_keeps_all_workers_busy_whatever_the_keys():
    of = small(4, 8, router=Router.RIVER)
    shares = np.array([1.0] + [0.0] * 31)
    run = simulate(of, Drawn(shares), 0.5)
    assert run.throughput == pytest.approx(4 / 45.5e-6, rel=0.01)
    by_content = simulate(replace(of, router=Router.FLUX), Drawn(shares), 0.5)
    assert by_content.throughput == pytest.approx(1 / 45.125e-6, rel=0.01)  # its worker makes a quarter of the tuples


def test_drawn_groups_follow_their_shares():
    of = small(2, 4, router=Router.RIVER)  # where none is held back for its key
    shares = np.array([1, 2, 3, 4, 5, 6, 7, 8.0])
    processed = np.bincount(simulate(of, Drawn(shares), 1.0, journal=10**5).journal["group"], minlength=8)
    assert processed / processed.sum() == pytest.approx(shares / 36, abs=0.005)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50).filter(lambda shares: sum(shares) > 0))
def test_cells_of_the_alias_table_add_up_to_the_shares(shares):
    thresholds, aliases = alias_table(np.array(shares), len(shares))
    stay = thresholds / 2**32
    found = stay + np.bincount(aliases, 1 - stay, len(shares))
    assert found / len(shares) == pytest.approx(np.array(shares) / sum(shares), abs=1e-9)


@pytest.mark.parametrize(
    ("changes", "error", "told"),
    [
        ({"workers": 1}, UsageError, "2 to 4,096 workers"),
        ({"buffer_tuples": 0}, UsageError, "at least 1"),
        ({"window": -1}, UsageError, "window"),
        ({"owners": np.array([0, 9], np.int32)}, BadInput, "as many workers as the plan has channels"),
        ({"partition_of": np.array([7], np.int32)}, BadInput, "partitions of groups must be from 0"),
        ({"state_tuples": np.array([1])}, BadInput, "one per partition"),
    ],
)
def test_what_is_no_stage_is_refused(changes, error, told):
    with pytest.raises(error, match=told):
        replace(small(), **changes)


@pytest.mark.parametrize(
    ("disturbances", "told"),
    [
        ([ExternalLoad(2, 0, 1)], "from 0 to 1"),
        ([ExternalLoad(0, 2, 1)], "end after"),
        ([ExternalLoad(0, 0, 2), SlowDown(0, 1, 3, 0.5)], "overlap"),
        ([SlowDown(0, 0, np.inf, 0)], "above 0, or 0 with an end"),
        ([ExternalLoad(0, 0, 1, burst_s=0)], "burst"),
    ],
)
def test_a_disturbance_that_cannot_be_is_refused(disturbances, told):
    with pytest.raises(BadInput, match=told):
        Stage(small(disturbances=tuple(disturbances)), Drawn())


def test_a_connection_smaller_than_a_packet_is_refused():
    with pytest.raises(UsageError, match="packet"):
        Network(connection_tuples=11)


@pytest.mark.parametrize(
    ("chunk", "told"),
    [
        (Chunk(np.array([4]), np.array([0])), "group"),
        (Chunk(np.array([0]), np.array([2])), "producer"),
        (Chunk(np.array([0, 1]), np.array([0])), "or none"),
        (Chunk(np.array([0, 1]), np.array([0, 1]), np.array([1.0, 0.5])), "sort by time"),
        (Chunk(np.array([0]), np.array([0]), None, np.array([-1.0])), "cost"),
    ],
)
def test_rows_that_cannot_be_are_refused(chunk, told):
    with pytest.raises(BadInput, match=told):
        simulate(small(), Rows(lambda: iter([chunk])))


def test_drawn_tuples_need_a_duration():
    with pytest.raises(UsageError, match="duration"):
        simulate(small(), Drawn())


@pytest.mark.parametrize("shares", [[1.0], [0.0] * 4, [1, 1, 1, -1.0], [1, 1, 1, np.inf]])
def test_shares_that_cannot_be_are_refused(shares):
    with pytest.raises(BadInput, match="shares"):
        simulate(small(), Drawn(np.array(shares)), 1.0)


def test_a_stream_that_ends_before_the_duration_ends_the_run():
    of = small()
    told = []
    run = simulate(of, stream(of, 40, 0.01, 1, 10, True), 5.0, interval_s=0.01, on_interval=told.append)
    assert run.census.processed == 40
    assert run.intervals[-1].end_s < 0.1
    assert told == run.intervals


def test_latencies_of_intervals_together_are_those_of_the_whole():
    of = small()
    long, short = (
        simulate(of, stream(of, 400, 0.01, 1, 10**6, True), interval_s=seconds).intervals for seconds in (1.0, 1e-3)
    )
    whole = together([one.total for one in short])
    assert whole.first == long[0].total.first
    assert whole.counts.tolist() == long[0].total.counts.tolist()
    assert whole.share_below_s(0.99) == long[0].total.share_below_s(0.99)
    assert together([]).mean_s is None
