from collections import Counter, defaultdict, deque
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.errors import BadInput, UsageError
from adapt.core.stage.conditions.arrivals import Chunk, Drawn, Made, Rows
from adapt.core.stage.conditions.faults import ExternalLoad, SlowDown
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import Costs, Network
from adapt.core.stage.dag.settings import DagSettings, Edge
from adapt.core.stage.dag.simulation import Dag, DagControl, simulate_dag
from adapt.core.stage.movement.controller import Move
from adapt.core.stage.simulate import simulate
from tests.core.stage.engine.test_running_stage import BY_CONTENT, in_order, serial_answers, small
from tests.core.stage.literal_tandem import Item, LiteralTandem, made_of
from tests.core.stage.movement.test_protocol import AnyMoves
from tests.core.stage.stages import drawn, stages, stream

few = settings(max_examples=settings().max_examples * 3 // 10)
"""Of the examples that the profile asks for: each is two stages."""


def in_a_row(first, second, selectivity=1.0):
    return DagSettings((first, second), (Edge(0, 1, selectivity),))


def simulated(of, source, duration_s=None, control=None, **more):
    """A source and what is made of it, run through both stages."""
    return simulate_dag(of, (source, Made()), duration_s, control, **more)


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
    return in_a_row(first, second, draw(st.sampled_from([0.0, 0.3, 1.0, 2.5])))


def controllers(seed, joint):
    """Any moves of both stages, asked for by one or by two."""
    return DagControl(AnyMoves(seed)) if joint else DagControl(each=[AnyMoves(seed), AnyMoves(seed + 1)])


def made_at(journal, of):
    """What each worker hands to its producer of the second stage, in order: value and group."""
    made = defaultdict(list)
    for entry in journal:
        groups = made_of(
            int(entry["number"]), int(entry["producer"]), of.edges[0].selectivity, len(of.stages[1].partition_of)
        )
        made[int(entry["worker"])] += [(int(entry["answer"]), group) for group in groups]
    return made


@given(tandems(), st.floats(0, 2), st.integers(0, 2**20), st.booleans())
@few
def test_nothing_is_lost_doubled_or_reordered_in_or_between_the_stages(of, zipf, seed, joint):
    """Whatever moves: every flow of the second stage is what was made for it, from its first tuple on."""
    run = simulated(of, drawn(of.stages[0], zipf), 0.03, controllers(seed, joint), interval_s=0.01, journal=10**4)
    first, second = run.stages
    assert first.census.whole, first.census
    assert second.census.whole, second.census
    assert in_order(first.journal)
    assert first.journal["answer"].tolist() == serial_answers(first.journal, of.stages[0].window)
    assert second.journal["answer"].tolist() == serial_answers(second.journal, of.stages[1].window)
    made = made_at(first.journal, of)
    assert sum(map(len, made.values())) == second.census.generated + run.in_between
    for worker in range(of.stages[0].workers):
        own = second.journal[second.journal["producer"] == worker]
        for partition in range(of.stages[1].partitions):
            flow = own[own["partition"] == partition]
            due = [one for one in made[worker] if of.stages[1].partition_of[one[1]] == partition]
            assert list(zip(flow["number"].tolist(), flow["group"].tolist(), strict=True)) == due[: len(flow)]


@given(tandems(), st.integers(0, 200), st.integers(0, 2**20), st.booleans())
@few
def test_a_stream_gives_what_a_serial_run_of_both_stages_gives(of, rows, seed, joint):
    """All rows of a group come from one producer, and the second stage sums all that a group ever had."""
    of = replace(of, stages=(of.stages[0], replace(of.stages[1], window=1000)))
    whole = next(stream(of.stages[0], rows, 0.02, seed).chunks(), Chunk(*np.zeros((2, 0), int)))
    rows_of = Chunk(whole.groups, whole.groups % of.stages[0].workers, whole.due_s, whole.cost_s)
    run = simulated(of, Rows(lambda: iter([rows_of])), None, controllers(seed, joint), interval_s=0.02, journal=10**4)
    past, sums = defaultdict(lambda: deque(maxlen=of.stages[0].window)), Counter()
    for number, group in enumerate(whole.groups.tolist()):
        past[group].append(number)
        groups = made_of(number, group % of.stages[0].workers, of.edges[0].selectivity, len(of.stages[1].partition_of))
        for made in groups:
            sums[made] += sum(past[group])
    found = {int(entry["group"]): int(entry["answer"]) for entry in run.stages[1].journal}
    assert {group: total for group, total in found.items() if total} == {
        group: total for group, total in sums.items() if total
    }
    assert run.stages[0].census.processed == rows
    assert run.stages[1].census.generated == run.stages[1].census.processed


@given(tandems(), st.lists(st.floats(1e-5, 0.01), min_size=1, max_size=4))
@few
def test_no_place_is_overfull_and_cutting_a_run_changes_nothing(of, pauses):
    tandem, at_once = (Dag(of, (Drawn(), Made()), 10**4) for _ in range(2))
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
    runs = [simulated(of, Drawn(), 0.02, controllers(seed, joint), journal=10**4) for _ in range(2)]
    for one, other in zip(*(run.stages for run in runs), strict=True):
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
    of = in_a_row(one, two, selectivity)
    source = stream(one, 300, span_s, seed)
    rows = [deque() for _ in range(workers)]
    chunk = next(source.chunks())
    for number, fields in enumerate(zip(chunk.groups, chunk.producers, chunk.due_s, chunk.cost_s, strict=True)):
        group, producer, due, cost = (field.item() for field in fields)
        rows[producer].append((due, Item(producer, number, group, cost)))
    drawn_costs = Dag(of, (source, Made())).stages[1].arrays["service"]["seconds"]
    costs = [iter(drawn_costs[worker * (len(drawn_costs) // workers) :].tolist()) for worker in range(workers)]
    literal = LiteralTandem(workers, rows, costs, selectivity, buffers, credits, 70e-6, 0.5e-6).run()
    run = simulated(of, source, interval_s=0.05, journal=10**4)
    for stage, theirs in zip(run.stages, literal.processed, strict=True):
        journal = stage.journal
        ours = sorted(zip(journal["at"], journal["worker"], journal["producer"], journal["number"], strict=True))
        assert [one[1:] for one in ours] == [one[1:] for one in sorted(theirs)]
        assert np.allclose([one[0] for one in ours], [one[0] for one in sorted(theirs)], rtol=0, atol=1e-12)


def test_a_lone_tuple_takes_the_latency_and_the_cost_of_both_stages():
    one = small(costs=Costs(produce_s=0, service_sd_s=0))
    row = Chunk(np.array([3]), np.array([0]), np.array([0.5]), np.array([2e-3]))
    run = simulated(in_a_row(one, one), Rows(lambda: iter([row])), journal=1)
    assert run.stages[1].journal["at"][0] == pytest.approx(0.5 + 70e-6 + 2e-3 + 70e-6 + 45e-6, abs=1e-12)
    assert run.stages[1].intervals[0].total.mean_s == pytest.approx(2.185e-3)
    assert run.utilization.sum() == pytest.approx(2e-3 + 45e-6)


def test_stages_that_are_alike_halve_the_rate_of_one():
    of = small(4, 8)
    run = simulated(in_a_row(of, of), Drawn(), 2.0)
    alone = simulate(of, Drawn(), 2.0)
    assert run.rate(1.0) == pytest.approx(np.mean([one.throughput for one in alone.intervals]) / 2, rel=0.02)
    assert run.rate(1.0) <= run.settings.bound(2.0)
    assert run.utilization[-1].min() > 0.97


def test_a_second_stage_that_cannot_keep_up_holds_back_the_first():
    of = in_a_row(small(2, 4), small(2, 4, buffer_tuples=50), 5.0)
    run = simulated(of, Drawn(), 2.0)
    first, second = run.stages[0].intervals[-1], run.stages[1].intervals[-1]
    assert second.processed == pytest.approx(5 * first.processed, rel=0.01)
    assert second.pools.sum() <= 100
    assert run.rate(1.0) >= 0.95 * of.bound(2.0)
    assert first.idle.mean() > 0.2  # its consumers wait for room


def test_the_bound_adds_up_what_is_left_of_all_cpu():
    of = small(4, 2, disturbances=(ExternalLoad(0, 1.0, 3.0), SlowDown(1, 1.0, 2.0, 0.5)))
    tandem = in_a_row(of, of, 2.0)
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
    of = in_a_row(small(2, 2, costs=Costs(service_sd_s=0)), small(2, 3, costs=costly))
    joint = OneMove(4)
    run = simulated(of, Drawn(), 0.5, DagControl(joint))
    assert run.stages[0].moves == []
    assert [(one.move.partition, one.move.receiver) for one in run.stages[1].moves] == [(0, 1)]
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
        in_a_row(small(), second)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({}, "duration"),
        ({"duration_s": 0.0}, "above 0"),
        (
            {"duration_s": 1.0, "control": DagControl(AnyMoves(0), [AnyMoves(0), None])},
            "a joint controller, or one per stage",
        ),
    ],
)
def test_a_run_of_two_stages_that_cannot_be_is_refused(arguments, told):
    with pytest.raises(UsageError, match=told):
        simulated(in_a_row(small(), small()), Drawn(), **arguments)


@pytest.mark.parametrize("selectivity", [-1.0, np.inf, np.nan])
def test_a_selectivity_that_cannot_be_is_refused(selectivity):
    with pytest.raises(UsageError, match="selectivity"):
        Edge(0, 1, selectivity)
