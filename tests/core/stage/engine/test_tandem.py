from collections import Counter, defaultdict, deque
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.arrivals import Chunk, Drawn, Made, Rows
from adapt.core.stage.conditions.disturbances import ExternalLoad, SlowDown
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import Costs, Network
from adapt.core.stage.engine.tandem import Tandem, TandemSettings
from adapt.core.stage.movement.controller import Move
from adapt.core.stage.simulate import simulate
from adapt.core.stage.simulate_tandem import simulate_tandem
from tests.core.stage.engine.test_running_stage import BY_CONTENT, in_order, serial_answers, small
from tests.core.stage.literal_tandem import Item, LiteralTandem, made_of
from tests.core.stage.movement.test_protocol import AnyMoves
from tests.core.stage.stages import drawn, stages, stream

few = settings(max_examples=settings().max_examples * 3 // 10)
"""Of the examples that the profile asks for: each is two stages."""


@st.composite
def tandems(draw):
    """Two small stages over the same workers, with partitions, groups, buffers and costs of their own."""
    first, other = draw(stages(BY_CONTENT)), draw(stages(BY_CONTENT))
    second = replace(
        other,
        workers=first.workers,
        owners=other.owners % first.workers,
        network=first.network,
        disturbances=first.disturbances,
    )
    return TandemSettings(first, second, Made(draw(st.sampled_from([0.0, 0.3, 1.0, 2.5]))))


def controllers(seed, joint):
    """Any moves of both stages, asked for by one or by two."""
    return {"joint": AnyMoves(seed)} if joint else {"first": AnyMoves(seed), "second": AnyMoves(seed + 1)}


def made_at(journal, of):
    """What each worker hands to its producer of the second stage, in order: value and group."""
    made = defaultdict(list)
    for entry in journal:
        groups = made_of(
            int(entry["number"]), int(entry["producer"]), of.between.selectivity, len(of.second.partition_of)
        )
        made[int(entry["worker"])] += [(int(entry["answer"]), group) for group in groups]
    return made


@given(tandems(), st.floats(0, 2), st.integers(0, 2**20), st.booleans())
@few
def test_nothing_is_lost_doubled_or_reordered_in_or_between_the_stages(of, zipf, seed, joint):
    """Whatever moves: every flow of the second stage is what was made for it, from its first tuple on."""
    run = simulate_tandem(of, drawn(of.first, zipf), 0.03, **controllers(seed, joint), interval_s=0.01, journal=10**4)
    first, second = run.first, run.second
    assert first.census.whole, first.census
    assert second.census.whole, second.census
    assert in_order(first.journal)
    assert first.journal["answer"].tolist() == serial_answers(first.journal, of.first.window)
    assert second.journal["answer"].tolist() == serial_answers(second.journal, of.second.window)
    made = made_at(first.journal, of)
    assert sum(map(len, made.values())) == second.census.generated + run.in_between
    for worker in range(of.first.workers):
        own = second.journal[second.journal["producer"] == worker]
        for partition in range(of.second.partitions):
            flow = own[own["partition"] == partition]
            due = [one for one in made[worker] if of.second.partition_of[one[1]] == partition]
            assert list(zip(flow["number"].tolist(), flow["group"].tolist(), strict=True)) == due[: len(flow)]


@given(tandems(), st.integers(0, 200), st.integers(0, 2**20), st.booleans())
@few
def test_a_stream_gives_what_a_serial_run_of_both_stages_gives(of, rows, seed, joint):
    """All rows of a group come from one producer, and the second stage sums all that a group ever had."""
    of = replace(of, second=replace(of.second, window=1000))
    whole = next(stream(of.first, rows, 0.02, seed).chunks(), Chunk(*np.zeros((2, 0), int)))
    rows_of = Chunk(whole.groups, whole.groups % of.first.workers, whole.due_s, whole.cost_s)
    run = simulate_tandem(
        of, Rows(lambda: iter([rows_of])), None, **controllers(seed, joint), interval_s=0.02, journal=10**4
    )
    past, sums = defaultdict(lambda: deque(maxlen=of.first.window)), Counter()
    for number, group in enumerate(whole.groups.tolist()):
        past[group].append(number)
        groups = made_of(number, group % of.first.workers, of.between.selectivity, len(of.second.partition_of))
        for made in groups:
            sums[made] += sum(past[group])
    found = {int(entry["group"]): int(entry["answer"]) for entry in run.second.journal}
    assert {group: total for group, total in found.items() if total} == {
        group: total for group, total in sums.items() if total
    }
    assert run.first.census.processed == rows
    assert run.second.census.generated == run.second.census.processed


@given(tandems(), st.lists(st.floats(1e-5, 0.01), min_size=1, max_size=4))
@few
def test_no_place_is_overfull_and_cutting_a_run_changes_nothing(of, pauses):
    tandem, at_once = (Tandem(of, Drawn(), 10**4) for _ in range(2))
    for until in np.cumsum(pauses):
        tandem.run(float(until))
        for stage in tandem.stages:
            assert stage.arrays["producer"]["held"].max() <= stage.settings.held_tuples
            assert stage.arrays["connection"]["count"].max() <= stage.settings.network.connection_tuples
        assert (tandem.cpu_idle_s() >= 0).all()
        assert (tandem.cpu_idle_s() <= until + 1e-12).all()
    at_once.run(float(np.sum(pauses)))
    for cut, whole in zip(tandem.stages, at_once.stages, strict=True):
        assert cut.arrays["entry"].tobytes() == whole.arrays["entry"].tobytes()


@given(tandems(), st.integers(0, 2**20), st.booleans())
@few
def test_the_same_seed_gives_the_same_run(of, seed, joint):
    runs = [simulate_tandem(of, Drawn(), 0.02, **controllers(seed, joint), journal=10**4) for _ in range(2)]
    for one, other in zip(*([run.first, run.second] for run in runs), strict=True):
        assert one.journal.tobytes() == other.journal.tobytes()
        assert one.moves == other.moves


@given(
    st.integers(2, 4),
    st.tuples(st.integers(1, 40), st.integers(1, 40)),
    st.integers(12, 20),
    st.integers(0, 2**20),
    st.floats(1e-3, 0.05),
    st.sampled_from([0.0, 0.5, 1.0, 1.7, 4.0]),
)
@few
def test_every_time_is_that_of_the_literal_stages(workers, buffers, credits, seed, span_s, selectivity):
    network = Network(connection_tuples=credits)
    one, two = (small(workers, 1, buffer_tuples=buffer, network=network, seed=seed) for buffer in buffers)
    of = TandemSettings(one, two, Made(selectivity))
    source = stream(one, 300, span_s, seed)
    rows = [deque() for _ in range(workers)]
    chunk = next(source.chunks())
    for number, fields in enumerate(zip(chunk.groups, chunk.producers, chunk.due_s, chunk.cost_s, strict=True)):
        group, producer, due, cost = (field.item() for field in fields)
        rows[producer].append((due, Item(producer, number, group, cost)))
    drawn_costs = Tandem(of, source).second.arrays["service"]["seconds"]
    costs = [iter(drawn_costs[worker * (len(drawn_costs) // workers) :].tolist()) for worker in range(workers)]
    literal = LiteralTandem(workers, rows, costs, selectivity, buffers, credits, 70e-6, 0.5e-6).run()
    run = simulate_tandem(of, source, interval_s=0.05, journal=10**4)
    for stage, theirs in zip((run.first, run.second), literal.processed, strict=True):
        journal = stage.journal
        ours = sorted(zip(journal["at"], journal["worker"], journal["producer"], journal["number"], strict=True))
        assert [one[1:] for one in ours] == [one[1:] for one in sorted(theirs)]
        assert np.allclose([one[0] for one in ours], [one[0] for one in sorted(theirs)], rtol=0, atol=1e-12)


def test_a_lone_tuple_takes_the_latency_and_the_cost_of_both_stages():
    one = small(costs=Costs(produce_s=0, service_sd_s=0))
    row = Chunk(np.array([3]), np.array([0]), np.array([0.5]), np.array([2e-3]))
    run = simulate_tandem(TandemSettings(one, one), Rows(lambda: iter([row])), journal=1)
    assert run.second.journal["at"][0] == pytest.approx(0.5 + 70e-6 + 2e-3 + 70e-6 + 45e-6, abs=1e-12)
    assert run.second.intervals[0].total.mean_s == pytest.approx(2.185e-3)
    assert run.utilization.sum() == pytest.approx(2e-3 + 45e-6)


def test_stages_that_are_alike_halve_the_rate_of_one():
    of = small(4, 8)
    run = simulate_tandem(TandemSettings(of, of), Drawn(), 2.0)
    alone = simulate(of, Drawn(), 2.0)
    assert run.rate(1.0) == pytest.approx(np.mean([one.throughput for one in alone.intervals]) / 2, rel=0.02)
    assert run.rate(1.0) <= run.settings.bound(2.0)
    assert run.utilization[-1].min() > 0.97


def test_a_second_stage_that_cannot_keep_up_holds_back_the_first():
    of = TandemSettings(small(2, 4), small(2, 4, buffer_tuples=50), Made(5.0))
    run = simulate_tandem(of, Drawn(), 2.0)
    first, second = run.first.intervals[-1], run.second.intervals[-1]
    assert second.processed == pytest.approx(5 * first.processed, rel=0.01)
    assert second.pools.sum() <= 100
    assert run.rate(1.0) >= 0.95 * of.bound(2.0)
    assert first.idle.mean() > 0.2  # its consumers wait for room


def test_the_bound_adds_up_what_is_left_of_all_cpu():
    of = small(4, 2, disturbances=(ExternalLoad(0, 1.0, 3.0), SlowDown(1, 1.0, 2.0, 0.5)))
    tandem = TandemSettings(of, of, Made(2.0))
    assert tandem.bound(0.0) == pytest.approx(4 / (3 * 45.5e-6))
    assert tandem.bound(1.5) == pytest.approx((2 + 75 / 175 + 0.5) / (3 * 45.5e-6))
    assert tandem.bound(2.5) == pytest.approx((3 + 75 / 175) / (3 * 45.5e-6))


class OneMove:
    """Moves the first partition of the second stage once, and writes down what it sees."""

    def __init__(self, firsts):
        self.firsts, self.seen = firsts, []

    def collection_s(self, previous):
        return 0.05

    def plan(self, observed):
        self.seen.append(observed)
        return [Move(self.firsts, 0, 1)] if len(self.seen) == 2 else []


def test_a_joint_controller_sees_the_cpus_and_the_partitions_of_both_by_what_they_take():
    costly = Costs(service_s=90e-6, service_sd_s=0)
    of = TandemSettings(small(2, 2, costs=Costs(service_sd_s=0)), small(2, 3, costs=costly))
    joint = OneMove(4)
    run = simulate_tandem(of, Drawn(), 0.5, joint=joint)
    assert run.first.moves == []
    assert [(one.move.partition, one.move.receiver) for one in run.second.moves] == [(0, 1)]
    assert len(run.joint_rounds) == len(joint.seen)
    seen = joint.seen[1]
    assert seen.owners.tolist() == [0, 0, 1, 1, 0, 0, 0, 1, 1, 1]
    assert joint.seen[2].owners.tolist() == [0, 0, 1, 1, 1, 0, 0, 1, 1, 1]
    taken = seen.processed[:4].sum(), seen.processed[4:].sum()
    assert taken[1] / taken[0] == pytest.approx(2, rel=0.05)
    assert sum(taken) / 1e9 == pytest.approx(float((seen.collected_s - seen.idle_s).sum()), rel=0.05)


@pytest.mark.parametrize(
    ("second", "error", "told"),
    [
        (small(3), UsageError, "got 2 and 3"),
        (small(disturbances=(ExternalLoad(0, 0, 1),)), BadInput, "disturbances"),
        (small(network=Network(latency_s=1.0)), BadInput, "network"),
        (small(router=Router.RIVER), UsageError, "routing by content"),
    ],
)
def test_stages_that_cannot_follow_each_other_are_refused(second, error, told):
    with pytest.raises(error, match=told):
        TandemSettings(small(), second)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "duration"),
        ({"duration_s": 0.0}, "above 0"),
        ({"duration_s": 1.0, "first": AnyMoves(0), "joint": AnyMoves(0)}, "a joint controller, or one per stage"),
    ],
)
def test_a_run_of_two_stages_that_cannot_be_is_refused(arguments, told):
    with pytest.raises(UsageError, match=told):
        simulate_tandem(TandemSettings(small(), small()), Drawn(), **arguments)


@pytest.mark.parametrize("selectivity", [-1.0, np.inf, np.nan])
def test_a_selectivity_that_cannot_be_is_refused(selectivity):
    with pytest.raises(UsageError, match="selectivity"):
        Made(selectivity)
