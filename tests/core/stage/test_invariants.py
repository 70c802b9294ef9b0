"""What holds of every stage, whatever its policy, its load, its memory and its faults."""

import os
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.errors import BadInput
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.policies.registry import controller_of
from adapt.core.stage.conditions.arrivals import Made
from adapt.core.stage.conditions.faults import Crash, ExternalLoad, FaultSchedule
from adapt.core.stage.conditions.growth import Join, SerialJoin
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import Costs, Network, StageSettings
from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor
from adapt.core.stage.dag.settings import DagSettings, Life
from adapt.core.stage.dag.simulation import DagControl, assemble_dag, simulate_dag
from adapt.core.stage.movement.spilling import UNMEASURED, Memory
from adapt.core.stage.movement.splitting import HotSplit
from adapt.core.stage.records.arrays import NONE
from adapt.core.stage.simulate import Actors, Assembly, assemble, simulate
from tests.core.stage.dag.test_dag import dags
from tests.core.stage.engine.test_running_stage import BY_CONTENT, in_order, serial_answers
from tests.core.stage.movement.test_protocol import AnyMoves
from tests.core.stage.stages import drawn, growths, memories, stages, stream

SPAN_S = 0.03
LARGEST_ROW = 1000
LONGEST_S = 3.0
"""Every stream is processed long before."""
CASES = 3000 if os.environ.get("ADAPT_SOAK") else 80
FAITHFUL = (FluxPolicy.LOAD, FluxPolicy.MEMORY, FluxPolicy.HYBRID)


@dataclass(frozen=True)
class Scenario:
    """All arguments of a run; policies and sources are made anew for each."""

    of: StageSettings
    rows: int | None
    zipf: float
    policy: str
    memory: Memory | None
    faults: FaultSchedule
    standby: bool
    seed: int
    hot: HotSplit | None = None
    steps: list[float] = field(default_factory=list)

    def source(self):
        return drawn(self.of, self.zipf) if self.rows is None else stream(self.of, self.rows, SPAN_S, self.seed)

    def controller(self):
        if self.policy == "any":
            return AnyMoves(self.seed)
        return controller_of(FluxPolicy(self.policy), 1e-3)

    def actors(self):
        return Actors(self.controller(), self.memory, self.faults, standby=self.standby, hot=self.hot)

    def assembled(self):
        return assemble(self.of, self.source(), self.actors(), journal=10**4)

    def simulated(self):
        duration_s = LONGEST_S if self.rows is not None else sum(self.steps)
        return simulate(
            self.of,
            self.source(),
            duration_s,
            self.actors(),
            interval_s=0.02,
            journal=10**4,
        )


@st.composite
def crashes(draw, of):
    """Of workers that are not disturbed otherwise, some of which come back, and never of all at once."""
    calm = sorted(set(range(of.workers)) - {one.worker for one in of.disturbances})
    found = []
    for worker in draw(st.lists(st.sampled_from(calm), max_size=3)) if calm else ():
        at_s = draw(st.floats(0, SPAN_S))
        back_s = draw(st.one_of(st.just(np.inf), st.floats(1e-5, 0.02).map(lambda s, at_s=at_s: at_s + s)))
        if any(one.worker == worker and one.at_s <= back_s and at_s <= one.back_s for one in found):
            continue
        faults = FaultSchedule(tuple(sorted([*found, Crash(worker, at_s, back_s)], key=lambda one: one.at_s)))
        try:
            faults.check(of.workers)
        except BadInput:
            continue
        found = list(faults.crashes)
    return FaultSchedule(tuple(found), draw(st.floats(1e-5, 5e-3)))


@st.composite
def scenarios(draw):
    of = draw(stages(BY_CONTENT))
    standby = draw(st.booleans())
    limited = draw(st.booleans())
    rows = draw(st.one_of(st.none(), st.integers(0, 500)))
    hot = None
    if draw(st.integers(0, 3)) == 0:
        hot = HotSplit(draw(st.floats(0.01, 1)), draw(st.floats(1e-4, 5e-3)))
        of, standby, limited = replace(of, window=0), False, False
    if rows is not None and draw(st.integers(0, 3)) == 0:
        of = replace(of, overload=Overload(ShedFactor(), draw(st.integers(1, 50)), draw(st.floats(1e-4, 5e-3))))
    match "fixed" if hot else draw(st.sampled_from(["fixed", "grows", "join"])):
        case "grows":
            of = replace(of, state=draw(growths(rows is not None)))
        case "join" if rows is not None:
            of = replace(of, window=0, join=Join(draw(st.integers(0, 10_000)), draw(st.sampled_from([0.0, 1e-6]))))
    return Scenario(
        of,
        rows,
        draw(st.floats(0, 2)),
        draw(st.sampled_from(["any", *FluxPolicy])),
        draw(memories(of, SPAN_S)) if limited else None,
        FaultSchedule() if hot else draw(crashes(of)),
        standby,
        draw(st.integers(0, 2**20)),
        hot,
        draw(st.lists(st.floats(1e-5, 0.02), min_size=1, max_size=5)),
    )


def check_places(one: Assembly) -> None:
    """No tuple is lost or doubled unsaid, and no place is overfull."""
    stage, of = one.stage, one.stage.settings
    census = stage.census()
    assert census.whole, census
    producers, connections = stage.arrays["producer"], stage.arrays["connection"]
    assert producers["held"].min() >= 0
    room = of.held_tuples + (2 * of.workers * of.network.connection_tuples if stage.standby else 0)
    assert producers["held"].max() <= room
    assert 0 <= connections["count"].min() <= connections["count"].max() <= of.network.connection_tuples
    assert stage.arrays["partition"]["in_flight"].min() >= 0
    if stage.standby:
        assert stage.arrays["kept"]["pending"].sum() == stage.arrays["line"]["count"].sum()


def check_partitions(one: Assembly) -> None:
    """Every partition has one owner, and its state is in one place; its twin is elsewhere."""
    stage, movement = one.stage, one.movement
    owners = stage.arrays["partition"]["owner"]
    assert 0 <= owners.min() <= owners.max() < stage.settings.workers
    known = one.recovery.living() if one.recovery else range(stage.settings.workers)
    for partition, owner in enumerate(owners.tolist()):
        assert owner in known or movement.receiver_of(partition) is not None
    if stage.standby:
        twins = stage.arrays["pair"]["twin"]
        assert (twins != owners).all()
    for partition in filter(movement.moves, range(len(owners))):
        course, state = movement.course_of(partition), movement.states.copy(partition)
        steps = {} if course is None else course.moved.times_s
        sent = "extracted" in steps and "installed" not in steps
        if course is None or (sent and not (course.promotes or course.copies)):  # None, on its way back to the donor
            assert not state.values.any()
            assert len(movement.on_the_wire[partition].windows) == len(state.windows)
        elif sent and course.copies and owners[partition] not in stage.dead:
            assert (movement.on_the_wire[partition].values == state.values).all()
        elif not sent and not course.copies and owners[partition] not in stage.dead:
            assert partition not in movement.on_the_wire or "installed" in steps


def check_network(one: Assembly) -> None:
    """Neither a transfer nor all together had more than their share."""
    limits, network = one.stage.settings.network, one.movement.network
    assert max(network.rates.values(), default=0.0) <= limits.flow_bits_per_s
    assert sum(network.rates.values()) <= limits.state_bits_per_s * (1 + 1e-12)
    assert network.bits_sent <= limits.state_bits_per_s * one.stage.now_s * (1 + 1e-9) + 1e-3
    for moved in [*one.movement.log, *one.movement.copied]:
        if "received" in moved.times_s:
            took_s = moved.times_s["received"] - moved.times_s["extracted"]
            assert moved.state_bytes * 8 <= limits.flow_bits_per_s * took_s * (1 + 1e-9) + 1e-3


def check_rounds(one: Assembly, policy: str) -> None:
    """A faithful policy moves one partition a worker and round, so at most n/2."""
    for done in one.rounds.rounds if one.rounds is not None and policy in FAITHFUL else ():
        ends = [worker for move in done.moves for worker in (move.donor, move.receiver)]
        assert len(ends) == len(set(ends))
        assert len(done.moves) <= one.stage.settings.workers // 2


def check_answers(journal, crashes, of: StageSettings, ordered: bool = True) -> None:
    """Tuples are in order, none twice; answers are those of a serial run, but for groups that are said to have lost."""
    assert not ordered or in_order(journal)
    whole = journal["partition"] < of.partitions
    assert (of.partition_of[journal["group"]] == journal["partition"])[whole].all()
    lost = set().union(*(crash.hit for crash in crashes))
    if of.join is not None:
        return
    right = np.array(serial_answers(journal, of.window), np.int64) == journal["answer"]
    assert set(journal["group"][~right].tolist()) <= lost


def check_state(one: Assembly) -> None:
    """State that grows is that of the rows in it, and what is over a limit is about to be written."""
    stage, growth = one.stage, one.stage.settings.growth
    sizes = stage.state_bytes()
    assert sizes.min() >= 0
    if growth is not None and not growth.sized:
        rows = stage.arrays["live"]["rows"]
        by_group = growth.group_bytes * (rows > 0) + growth.row_bytes * rows
        expected = np.bincount(stage.settings.partition_of, by_group, stage.settings.partitions)
        assert (sizes == expected).all()
    if growth is not None and one.spilling is not None:
        for worker, record in enumerate(stage.arrays["worker"]):
            slack = max(0.0, one.spilling.limits[worker] * UNMEASURED) if growth.window is not None else 0.0
            over = one.spilling.used(worker) - one.spilling.limits[worker]
            assert over <= slack + LARGEST_ROW or record["full"] or worker in stage.dead


def check_join(scenario, run) -> None:
    """Every match of a serial run once, unless tuples or state were lost."""
    if (
        scenario.of.join is not None
        and not run.census.lost + run.census.shed
        and not any(crash.hit for crash in run.crashes)
    ):
        serial = SerialJoin(scenario.of.join, len(scenario.of.partition_of))
        assert run.answers == sum(int(serial.matches(chunk).sum()) for chunk in scenario.source().chunks())


def check_parts(one: Assembly) -> None:
    """Parts of a partition are in a ring, free parts in none, and no tuple goes to one that leaves."""
    if one.splitting is None:
        return
    arrays, parts = one.stage.arrays, one.splitting.parts
    following, turns = arrays["ring"]["following"], arrays["turn"]["part"].reshape(one.stage.settings.workers, -1)
    free = following == NONE
    assert not arrays["partition"]["in_flight"][free].any()
    assert (arrays["flow"]["head"].reshape(turns.shape)[:, free] == NONE).all()
    for partition in range(int(arrays.world["splits"])):
        ring = parts.get(partition, [partition])
        assert [int(following[part]) for part in ring] == [*ring[1:], partition]
        assert np.isin(turns[:, partition], ring).all()


def check_totals(run) -> None:
    """Count, sum, minimum and maximum of each group are those of the processed tuples, one after another."""
    if run.totals is None:
        return
    assert len(run.journal) == run.census.processed
    serial = {}
    for entry in run.journal:
        group, number = int(entry["group"]), int(entry["number"])
        count, total, least, most = serial.get(group, (0, 0, number, number))
        serial[group] = (count + 1, total + number, min(least, number), max(most, number))
    assert {int(group): tuple(run.totals[group].tolist()) for group in np.flatnonzero(run.totals["count"])} == serial


@given(scenarios())
@settings(max_examples=CASES)
def test_invariants(scenario):
    try:
        check_run(scenario)
    except BadInput as error:
        if scenario.of.growth is None or "has grown to" not in str(error):
            raise


@pytest.mark.parametrize("produce_s", [5e-7, 2e-5])
def test_invariants_when_both_workers_of_a_pair_die_before_the_first_is_noticed(produce_s):
    """What the dead replica had not processed is with the producers alone until the owner is declared dead."""
    of = StageSettings(
        workers=5,
        owners=np.array([2, 2, 3], np.int32),
        partition_of=np.array([2, 0, 0, 2, 2], np.int32),
        router=Router.EXCHANGE,
        buffer_tuples=1,
        network=Network(connection_tuples=12),
        costs=Costs(produce_s=produce_s),
        state_tuples=np.array([74, 93, 260]),
        window=1,
    )
    memory = Memory(20_801, disk_bytes_per_s=2e7, seek_s=1e-4, seek_sd_s=1e-5, quantum_s=1e-3)
    faults = FaultSchedule((Crash(0, 0.015625), Crash(2, 0.01953125)), 0.004647021231759503)
    check_run(Scenario(of, None, 0.0, "any", memory, faults, True, 37, steps=[0.015625, 0.0078125]))


def test_invariants_when_a_worker_is_given_partitions_while_it_is_dead():
    """Nobody knows yet, so it is to make room for them on disk; back at once, it must not."""
    of = StageSettings(
        workers=5,
        owners=np.array([4, 3, 2, 1, 1, 0, 0, 0, 0, 4, 3, 4], np.int32),
        partition_of=np.array([6], np.int32),
        router=Router.EXCHANGE,
        buffer_tuples=1,
        network=Network(latency_s=0.0, connection_tuples=12, packet_tuples=1, flow_bits_per_s=2.5e8),
        costs=Costs(service_s=4.5e-05, service_sd_s=3e-06, produce_s=0.0, marshal_s=2e-07, tuple_bytes=80),
        state_tuples=np.array([181, 291, 218, 189, 163, 167, 280, 83, 244, 201, 0, 118]),
        window=1,
        disturbances=(ExternalLoad(1, 0.0, 0.015625, burst_s=0.0006262976800827263, sleep_s=5e-05, wait_s=2.5e-05),),
    )
    memory = Memory(23_281.0, disk_bytes_per_s=2e7, seek_s=1e-4, seek_sd_s=1e-5, quantum_s=1e-3)
    faults = FaultSchedule((Crash(0, 0.015625), Crash(2, 0.015625, 0.01953125)), 0.00390625)
    check_run(Scenario(of, None, 0.0, "any", memory, faults, False, 0, steps=[0.015625, 0.015625]))


def check_run(scenario) -> None:
    one = scenario.assembled()
    for step_s in scenario.steps:
        one.stage.run(one.stage.now_s + step_s)
        check_places(one)
        check_partitions(one)
        check_network(one)
        check_state(one)
        check_parts(one)
    check_rounds(one, scenario.policy)
    run = scenario.simulated()
    if run.failed:
        return
    assert run.census.whole
    assert run.disagreed == 0
    check_join(scenario, run)
    check_answers(run.journal, run.crashes, scenario.of)
    check_totals(run)
    # The same run, however it is cut into steps.
    seen = one.stage.arrays["entry"][: int(one.stage.arrays.world["journalled"])]
    shorter = min(len(seen), len(run.journal))
    assert seen[:shorter].tobytes() == run.journal[:shorter].tobytes()
    assert one.movement.log[: len(run.moves)] == run.moves[: len(one.movement.log)] or scenario.rows is not None
    if scenario.rows is not None:
        assert len(run.journal) + run.census.lost + run.census.shed == scenario.rows
        assert len(set(run.journal["number"].tolist())) == len(run.journal)
        assert not run.census.lost or not scenario.standby


@dataclass(frozen=True)
class DagScenario:
    """All arguments of a run of a DAG; policies and sources are made anew for each."""

    of: DagSettings
    rows: int
    policy: str
    joint: bool
    memory: Memory | None
    faults: FaultSchedule
    seed: int
    steps: list[float]

    def inputs(self):
        sources = iter(range(self.seed, self.seed + len(self.of.stages)))
        made = (stream(of, self.rows, SPAN_S, next(sources)) for of in self.of.stages)
        return [source if number in self.of.entries else Made() for number, source in enumerate(made)]

    def control(self):
        def controller(number):
            return (
                AnyMoves(self.seed + number) if self.policy == "any" else controller_of(FluxPolicy(self.policy), 1e-3)
            )

        joint = controller(0) if self.joint else None
        each = () if self.joint else [controller(number) for number in range(len(self.of.stages))]
        return DagControl(joint, each, self.faults, 0.0, self.memory)


@st.composite
def dag_scenarios(draw):
    of = draw(dags(lives=True))
    largest = max(of.stages, key=lambda one: one.state_sizes().max() * one.costs.tuple_bytes)
    grows = next((one for one in of.stages if one.growth is not None), None)
    return DagScenario(
        of,
        draw(st.integers(0, 150)),
        draw(st.sampled_from(["any", *FluxPolicy])),
        draw(st.booleans()),
        draw(memories(grows or largest, SPAN_S)) if draw(st.booleans()) else None,
        draw(crashes(of.stages[0])),
        draw(st.integers(0, 2**20)),
        draw(st.lists(st.floats(1e-5, 0.02), min_size=1, max_size=3)),
    )


@given(dag_scenarios())
@settings(max_examples=CASES // 5)
def test_invariants_of_dags(scenario):
    try:
        check_dag(scenario)
    except BadInput as error:
        if not any(one.growth is not None for one in scenario.of.stages) and "must hold the largest" not in str(error):
            raise


def test_stages_with_memory_for_one_partition_read_in_turn():
    """Else their disk accesses leave no time for rows."""
    network = Network(latency_s=0.0, connection_tuples=12, packet_tuples=1, flow_bits_per_s=2.5e8)
    costs = Costs(service_s=4.5e-05, service_sd_s=3e-06, produce_s=0.0, marshal_s=2e-07, tuple_bytes=80)
    one, state = np.array([1], np.int32), np.array([191])
    stage = StageSettings(2, one, one - 1, network=network, costs=costs, state_tuples=state, buffer_tuples=1)
    memory = Memory(15_281.0, disk_bytes_per_s=2e7, seek_s=1e-4, seek_sd_s=1e-5, quantum_s=1e-3)
    of = DagSettings((stage,) * 4, (), (Life(0.0, inf),) * 4)
    check_dag(DagScenario(of, 20, FluxPolicy.NONE, False, memory, FaultSchedule(()), 0, [0.015625]))


def check_dag(scenario) -> None:
    whole = assemble_dag(scenario.of, scenario.inputs(), scenario.control(), 10**4)
    for step_s in scenario.steps:
        whole.dag.run(whole.dag.now_s + step_s)
        for one in whole.stages:
            check_places(one)
            check_partitions(one)
            check_network(one)
            check_state(one)
        check_shared_memory(whole)
    run = simulate_dag(scenario.of, scenario.inputs(), LONGEST_S, scenario.control(), interval_s=0.01, journal=10**4)
    assert run.in_between == 0
    for number, (stage, one) in enumerate(zip(run.stages, whole.stages, strict=True)):
        assert stage.census.whole
        assert stage.census.generated == stage.census.processed + stage.census.lost
        check_answers(stage.journal, stage.crashes, scenario.of.stages[number], ordered=number in scenario.of.entries)
        seen = one.stage.arrays["entry"][: int(one.stage.arrays.world["journalled"])]
        shorter = min(len(seen), len(stage.journal))
        assert seen[:shorter].tobytes() == stage.journal[:shorter].tobytes()


def check_shared_memory(whole) -> None:
    """All state of a worker in memory is within its limit, or is about to be written."""
    spilling = [one.spilling for one in whole.stages if one.spilling is not None]
    for worker in range(whole.dag.settings.workers if spilling else 0):
        over = sum(one.used(worker) for one in spilling) - spilling[0].limit(worker)
        records = [one.stage.arrays["worker"][worker] for one in whole.stages]
        assert over <= LARGEST_ROW * len(spilling) or any(record["full"] or record["job"] for record in records)
