"""A stage whose workers come and go: what holds whatever is decided, and what a scale step does."""

import os
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.elastic.policies.names import ScalingPolicy, Signal
from adapt.core.elastic.policies.placements import Counting, PlannedPlacement, range_placement
from adapt.core.elastic.policies.registry import Chosen, policy_of
from adapt.core.elastic.policies.scaler import ElasticController, Patience, Rebuild
from adapt.core.elastic.policies.thresholds import starts_at
from adapt.core.errors import UsageError
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.schemes.names import Construction, Scheme
from adapt.core.stage.conditions.arrivals import Chunk, Drawn, Rows
from adapt.core.stage.conditions.names import Migrating, RestartName
from adapt.core.stage.conditions.settings import (
    RESTARTS,
    Costs,
    Network,
    Restart,
    StageSettings,
    even_groups,
    even_owners,
)
from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor, Thresholds
from adapt.core.stage.control.workers import Decision, Migration, Placed, Scaling, Waiting
from adapt.core.stage.simulate import Actors, assemble, simulate
from tests.core.stage.engine.test_running_stage import BY_CONTENT, in_order, serial_answers
from tests.core.stage.stages import stages

SPAN_S = 0.03
LONGEST_S = 3.0
CASES = 3000 if os.environ.get("ADAPT_SOAK") else 80


@dataclass
class AnyScaler:
    """Asks for any number of workers at any time, and for plans built anew."""

    least: int
    pool: int
    chance: np.random.Generator

    def decide(self, seen, waiting):
        assert self.least <= seen.workers <= self.pool
        assert all(len(each) == seen.workers for each in (seen.busy_s, seen.processed, seen.loads))
        workers = int(self.chance.integers(self.least, self.pool + 1))
        return (Decision(workers) if self.chance.random() < 0.5 else Decision(seen.workers, True)), Waiting()


@dataclass
class AnyPlacement:
    """Puts partitions anywhere, and remembers what it was told of."""

    partitions: int
    chance: np.random.Generator
    told: int = 0
    last_s: float = 0.0

    def count(self, partitions, cost_s, times_s):
        assert len(partitions) == len(cost_s) == len(times_s)
        assert (np.diff(times_s, prepend=self.last_s) >= 0).all()
        self.last_s = float(times_s[-1]) if len(times_s) else self.last_s
        self.told += len(partitions)

    def place(self, workers):
        owners = self.chance.integers(0, workers, self.partitions).astype(np.int32)
        return Placed(owners, self.chance.random(self.partitions))


@dataclass(frozen=True)
class History:
    """All arguments of a run; what scales is made anew for each."""

    of: StageSettings
    rows: int
    least: int
    policy: str
    placing: str
    migration: Migration
    period_s: float
    start_s: float
    seed: int

    def source(self):
        """Rows in two bursts with little in between, of which some groups have most."""
        chance = np.random.default_rng(self.seed)
        due = np.sort(chance.choice([0.0, 0.7], self.rows) * SPAN_S + chance.exponential(SPAN_S / 5, self.rows))
        groups = (chance.random(self.rows) ** 3 * len(self.of.partition_of)).astype(np.int32)
        producers, cost = chance.integers(0, self.of.workers, self.rows), chance.uniform(1e-6, 1e-4, self.rows)

        def chunks():
            for first in range(0, self.rows, 97):
                part = slice(first, first + 97)
                yield Chunk(groups[part], producers[part], due[part], cost[part])

        return Rows(chunks)

    def scaling(self):
        chance, partitions = np.random.default_rng(self.seed), self.of.partitions
        scaler = AnyScaler(self.least, self.of.workers, chance)
        if self.policy != "any":
            capacity = self.of.overload.capacity_tuples if self.of.overload else None
            policy = policy_of(ScalingPolicy(self.policy), Chosen(signal=Signal.OFFERED, capacity_tuples=capacity))
            rebuild = Rebuild(every_s=0.015, limit=1.2, min_interval_s=5e-3)
            scaler = ElasticController(policy, self.least, self.of.workers, Patience(4e-3, 6e-3), rebuild)
        placement = AnyPlacement(partitions, chance)
        if self.placing == "range":
            placement = range_placement(partitions)
        elif self.placing != "any":
            recipe = Recipe(Scheme(self.placing), Construction.SCAN, replicas=10)
            placement = PlannedPlacement(recipe, partitions, Counting(0.01, 1e-2), costed=True)
        return Scaling(scaler, placement, self.period_s, self.migration, self.start_s)


RESTARTS_HERE = [replace(restart, stop_s=1e-3, start_s=2e-3) for restart in RESTARTS.values()]


@st.composite
def histories(draw):
    of = draw(stages(BY_CONTENT))
    if draw(st.booleans()):
        of = replace(of, overload=Overload(ShedFactor(0.5), draw(st.integers(5, 60)), draw(st.floats(1e-3, 1e-2))))
    return History(
        of,
        draw(st.integers(0, 300)),
        draw(st.integers(1, of.workers)),
        draw(st.sampled_from(["any", "any", *ScalingPolicy])),
        draw(st.sampled_from(["any", "any", "any", "range", "uniform", "hybrid"])),
        Migration(draw(st.sampled_from(Migrating)), draw(st.integers(1, 5)), draw(st.sampled_from(RESTARTS_HERE))),
        draw(st.floats(2e-3, 8e-3)),
        draw(st.sampled_from([0.0, 1e-3])),
        draw(st.integers(0, 2**20)),
    )


def owners_of(moves, of):
    """When each partition changed hands: from when, to whom, and since when the one before had it no longer."""
    changes = defaultdict(list)
    for moved in moves:
        if "extracted" in moved.times_s:
            changes[moved.move.partition].append(
                (moved.times_s["extracted"], moved.times_s.get("restarted", np.inf), moved.move.receiver)
            )
    return changes


@given(histories())
@settings(max_examples=CASES)
def test_invariants(history):
    of, scaling = history.of, history.scaling()
    one = assemble(of, history.source(), Actors(scaling=scaling), journal=10**4)
    stage, elasticity, partition = one.stage, one.elasticity, one.stage.arrays["partition"]
    first = partition["owner"].copy()
    while not stage.drained and stage.now_s < LONGEST_S:
        stage.run(stage.now_s + 6e-3)
        census = stage.census()
        assert census.whole, census
        assert stage.arrived() >= census.generated
        assert history.least <= elasticity.workers <= of.workers
        if not elasticity.steps or elasticity.steps[-1].done_s is not None:
            assert partition["owner"].max() < elasticity.workers
            assert stage.arrays["producer"]["host"].max() < elasticity.workers
            assert not partition["stalled"].any()
    census = stage.census()
    assert stage.drained
    assert census.generated == history.rows == census.processed + census.shed
    journal = stage.arrays["entry"][: census.processed]
    assert in_order(journal)
    assert serial_answers(journal, of.window) == journal["answer"].tolist()
    changes = owners_of(one.movement.log, of)
    for entry in journal:
        owner = first[entry["partition"]]
        for extracted_s, restarted_s, receiver in changes[int(entry["partition"])]:
            if entry["at"] <= extracted_s:
                break
            assert entry["at"] >= restarted_s
            owner = receiver
        assert entry["worker"] == owner
    assert [step.before for step in elasticity.steps[1:]] == [step.after for step in elasticity.steps[:-1]]
    sizes = [size for _, size in elasticity.sizes]
    assert all(before != after for before, after in pairwise(sizes))
    stage.run(stage.now_s + 1.01 * history.period_s)
    assert history.placing != "any" or scaling.placement.told == history.rows


W, WINDOW_S = 1000, 0.5


def at_rate(rates, seconds_each=1.0, groups=32, workers=8):
    """Rows of all groups in turn, at one rate after the other."""
    starts = np.arange(len(rates)) * seconds_each
    due = np.concatenate(
        [at + np.arange(int(rate * seconds_each)) / rate for at, rate in zip(starts, rates, strict=True)]
    )
    numbers = np.arange(len(due))
    return Rows(lambda: iter([Chunk((numbers * 7) % groups, numbers % workers, due)]))


def elastic(controller, of=None, partitions=32, **changes):
    placement = PlannedPlacement(Recipe(Scheme.HYBRID, replicas=100), partitions, Counting(1.0, 1e-3))
    scaling = Scaling(controller, placement, 0.05, **changes)
    of = of or StageSettings(
        controller.pool,
        even_owners(8, 4),
        even_groups(32, 32),
        state_tuples=100,
        overload=Overload(ShedFactor(), W, WINDOW_S),
    )
    return of, scaling


def thresholds(signal, tau3=0.9, least=2):
    policy = policy_of(ScalingPolicy.THRESHOLDS, Chosen(Thresholds(0.1, 0.4, 0.8, tau3), signal, W))
    return ElasticController(policy, least, 8, Patience(0.6, 0.8))


@pytest.mark.parametrize(("signal", "starts"), [(Signal.HELD, 1.8), (Signal.OFFERED, 0.9)])
def test_workers_are_added_from_the_load_that_is_said(signal, starts):
    """Two workers hold W tuples each for half a second, so that rho = 1 is 4,000 rows/s.

    The load rises slowly, since after a sudden rise what is held swings about where it settles, with its window.
    """
    assert starts_at(Thresholds(), ShedFactor(), signal) == pytest.approx(starts)
    for rho in (0.85 * starts, 1.4 * starts):
        of, scaling = elastic(thresholds(signal))
        scaling = replace(scaling, placement=range_placement(32))
        run = simulate(
            of, at_rate(rho * 4000 * np.minimum(1, np.arange(1, 31) / 20), 0.15), actors=Actors(scaling=scaling)
        )
        assert bool(run.steps) == (rho > starts)
        if run.steps:
            assert run.steps[0].after >= 4


@pytest.mark.parametrize("seed", range(4))
def test_under_a_constant_load_workers_are_changed_once_at_most(seed):
    chance = np.random.default_rng(seed)
    rate, least = float(chance.uniform(500, 15_000)), int(chance.integers(1, 9))
    of, scaling = elastic(thresholds(Signal.OFFERED, least=least))
    run = simulate(of, at_rate([rate], 4.0), 4.0, Actors(scaling=scaling))
    assert len(run.steps) <= 1
    assert run.workers[-1][1] >= min(8, rate * WINDOW_S / W / 0.9)


def test_tau3_of_1_is_never_reached_by_what_is_held():
    of, scaling = elastic(thresholds(Signal.HELD, tau3=1.0))
    assert not simulate(of, at_rate([4 * 4000], 3.0), actors=Actors(scaling=scaling)).steps


def test_workers_come_with_the_load_and_go_with_it_and_stay_while_it_does():
    of, scaling = elastic(thresholds(Signal.OFFERED))
    run = simulate(of, at_rate([1500, 6000, 300], 4.0), actors=Actors(scaling=scaling), interval_s=0.5)
    ups = [step for step in run.steps if step.after > step.before]
    downs = [step for step in run.steps if step.after < step.before]
    assert 4 <= ups[0].decided_s <= 6
    assert max(step.after for step in run.steps) == 8
    assert downs
    assert downs[0].decided_s >= 8
    assert run.workers[-1][1] == 2
    assert run.census.whole
    assert run.census.processed + run.census.shed == 4 * 7800
    busy = [np.flatnonzero(one.by_worker).max() + 1 for one in run.intervals if one.processed]
    assert min(busy) == 2
    assert max(busy) == 8


def test_what_is_held_of_a_partition_goes_with_it():
    of, scaling = elastic(thresholds(Signal.OFFERED))
    one = assemble(of, at_rate([4000], 3.0), Actors(scaling=scaling))
    while not one.elasticity.steps or one.elasticity.steps[0].done_s is None:
        one.stage.run(one.stage.now_s + 0.01)
    owners, rings = one.stage.arrays["partition"]["owner"], one.stage.arrays["held"].reshape(8, W)
    assert one.elasticity.workers > 2
    for worker, record in enumerate(one.stage.arrays["worker"]):
        places = (record["held_first"] + np.arange(record["held"])) % W
        assert (owners[rings[worker]["partition"][places]] == worker).all()
        assert (np.diff(rings[worker]["since"][places]) >= 0).all()


def test_a_plan_built_anew_evens_out_what_has_become_uneven():
    """Group 3 alone has half of the rows; the plan knows it only once they have come."""
    due = np.arange(20_000) / 10_000
    groups = np.where(np.arange(20_000) % 2, 3, (np.arange(20_000) // 2 * 7) % 32)
    rows = Rows(lambda: iter([Chunk(groups, np.arange(20_000) % 4, due)]))
    of = StageSettings(4, even_owners(4, 8), even_groups(32, 32), state_tuples=100)
    imbalances = []
    for rebuild in (Rebuild(), Rebuild(every_s=0.5), Rebuild(limit=1.5, min_interval_s=0.3)):
        controller = ElasticController(policy_of(ScalingPolicy.FIXED), 4, 4, Patience(), rebuild)
        run = simulate(of, rows, actors=Actors(scaling=elastic(controller, of)[1]), interval_s=0.5)
        assert run.workers == [(0.0, 4)]
        last = run.intervals[-2].by_worker
        imbalances.append(last.max() / last.mean())
        assert bool(run.steps) == (rebuild != Rebuild())
        assert all(step.before == step.after == 4 for step in run.steps)
    never, every, limited = imbalances
    assert max(every, limited) < never
    assert every == pytest.approx(2.0, abs=0.1)


IN_PORTIONS = (Migrating.ALL, Migrating.BATCHED, Migrating.ONE, Migrating.HOTTEST)


@pytest.mark.parametrize("how", IN_PORTIONS)
def test_portions_are_as_asked_for(how):
    weights = np.array([1.0, 5, 3, 9, 2, 7])
    portions = Migration(how, 2).portions(np.array([0, 1, 3, 4, 5]), weights)
    assert [portion.tolist() for portion in portions] == {
        Migrating.ALL: [[0, 1, 3, 4, 5]],
        Migrating.BATCHED: [[0, 1], [3, 4], [5]],
        Migrating.ONE: [[0], [1], [3], [4], [5]],
        Migrating.HOTTEST: [[3, 5], [1, 4], [0]],
    }[how]
    assert Migration(how).portions(np.empty(0, int), weights) == []


@pytest.mark.parametrize("how", IN_PORTIONS)
def test_portions_move_one_after_the_other(how):
    of, scaling = elastic(thresholds(Signal.OFFERED), migration=Migration(how, 3))
    run = simulate(of, at_rate([6000], 2.0), actors=Actors(scaling=scaling))
    step = run.steps[0]
    starts = sorted({moved.times_s["decided"] for moved in step.moves})
    size = {Migrating.ALL: len(step.moves), Migrating.ONE: 1}.get(how, 3)
    assert len(starts) == -(-len(step.moves) // size)
    for moved in step.moves:
        later = [start for start in starts if start > moved.times_s["decided"]]
        assert not later or moved.times_s["restarted"] <= later[0]


@dataclass
class At:
    """Asks for other workers once, at a time."""

    at_s: float
    workers: int
    least: int = 2
    pool: int = 4

    def decide(self, seen, waiting):
        return Decision(self.workers if seen.at_s >= self.at_s else seen.workers), waiting


def restarted(restart, rate=2000.0, seconds=8.0, to=4):
    """16 partitions of 1 MB each on 2 workers, from 1 s on on 4, of which each serves 2,000 rows/s."""
    bandwidth = Network(latency_s=0.0, flow_bits_per_s=80e6, state_bits_per_s=1e15)
    of = StageSettings(4, even_owners(4, 4), even_groups(16, 16), network=bandwidth, state_tuples=10_000)
    of = replace(of, costs=Costs(service_s=5e-4, service_sd_s=0.0, produce_s=0.0, tuple_bytes=100))
    migration = Migration(Migrating.RESTART, restart=restart)
    scaling = Scaling(At(1.0, to), range_placement(16), 0.5, migration)
    return simulate(of, at_rate([rate], seconds, 16, 4), actors=Actors(scaling=scaling), interval_s=0.25)


@pytest.mark.parametrize(
    ("restart", "downtime_s", "moves"),
    [
        # 8 partitions, 8 MB a worker, are saved at 10 MB/s, and 4 of them restored
        (Restart(stop_s=0.25, start_s=0.5), 0.25 + 0.8 + 0.5 + 0.4, 12),
        (Restart(start_s=0.5, saves=False), 0.5 + 0.4, 12),
        (Restart(stop_s=0.5, saves=False, restores_all=False), 0.5 + 0.4, 12),
        (Restart(start_s=0.5, save_byte_s=1e-7, restore_byte_s=2e-7), 0.5 + 0.8 + 0.8, 12),
    ],
)
def test_a_restart_stops_for_the_time_that_its_state_takes(restart, downtime_s, moves):
    run = restarted(restart)
    (step,) = run.steps
    assert run.census.whole
    assert len(step.moves) == moves
    assert step.stop.downtime_s == pytest.approx(downtime_s, abs=5e-3)
    assert step.stop.worker_s == pytest.approx(4 * downtime_s, abs=0.02)
    assert step.stop.backlog == pytest.approx(2000 * downtime_s, abs=20)
    during = [one for one in run.intervals if step.stop.began_s + 0.01 < one.start_s and one.end_s < step.stop.ended_s]
    assert during
    assert all(one.processed == 0 for one in during)
    catch_up_s = 2000 * downtime_s / (4 * 2000 - 2000)
    assert step.caught_up_s - step.stop.ended_s == pytest.approx(catch_up_s, abs=0.5 + 0.1)
    longest_s = max(one.total.max_s for one in run.intervals)
    assert longest_s == pytest.approx(downtime_s, abs=0.02)


def test_a_cooperative_rebalance_stops_only_what_moves():
    run = restarted(Restart(stop_s=0.5, saves=False, is_whole=False, restores_all=False))
    (step,) = run.steps
    assert step.stop.others == step.stop.workers == 0
    assert step.stop.downtime_s == pytest.approx(0.5 + 0.4, abs=5e-3)
    during = [one for one in run.intervals if step.stop.began_s < one.start_s and one.end_s < step.stop.ended_s]
    assert all(one.processed == pytest.approx(2000 * 0.25 * 4 / 16, abs=3) for one in during)


def test_presets_have_the_numbers_of_their_engines():
    fixed_s = {name: restart.stop_s + restart.start_s for name, restart in RESTARTS.items()}
    assert list(fixed_s.values()) == [120.0, 10.0, 3.0, 3.0]
    assert [name for name, restart in RESTARTS.items() if not restart.is_whole] == [RestartName.KAFKA_COOPERATIVE]


def test_on_demand_the_partitions_with_rows_move_first():
    """Partitions 8 to 11 have all rows; those of a worker that have none move last."""
    of = StageSettings(4, even_owners(4, 4), even_groups(16, 16), state_tuples=20_000)
    due = np.arange(4000) / 2000
    rows = Rows(lambda: iter([Chunk(np.arange(4000) % 4 + 8, np.arange(4000) % 4, due)]))
    scaling = Scaling(At(1.0, 4), range_placement(16), 0.5, Migration(Migrating.DEMAND))
    run = simulate(of, rows, actors=Actors(scaling=scaling))
    (step,) = run.steps
    order = [one.move.partition for one in step.moves if one.move.donor == 1]
    assert len(order) == 8
    assert set(order[:4]) == {8, 9, 10, 11}
    times = [(one.times_s["decided"], one.times_s["restarted"]) for one in step.moves if one.move.donor == 1]
    assert all(earlier[1] <= later[0] for earlier, later in pairwise(times))


def test_what_cannot_be_scaled_is_refused():
    of, scaling = elastic(thresholds(Signal.HELD))
    rows = at_rate([100])
    for wrong in (
        lambda: simulate(of, Drawn(), 1.0, Actors(scaling=scaling)),
        lambda: simulate(of, rows, actors=Actors(scaling=scaling, standby=True)),
        lambda: simulate(replace(of, workers=9), rows, actors=Actors(scaling=scaling)),
        lambda: replace(scaling, period_s=0.0),
        lambda: replace(scaling, start_s=-1.0),
        lambda: Migration(batch=0),
    ):
        with pytest.raises(UsageError):
            wrong()
