"""Histories of random runs, with crashes, under an independent checker."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.ordered.chain.bound import bind
from adapt.core.ordered.chain.chain import Chain, Operator
from adapt.core.ordered.chain.names import OperatorKind
from adapt.core.ordered.chain.own import own_function
from adapt.core.ordered.engine.threads import run_by_workers
from adapt.core.stage.conditions.faults import Crash, FaultSchedule
from adapt.core.stage.simulate import Actors, simulate
from tests.core.ordered.engine.test_random_chains import random_settings
from tests.core.stage.movement.test_standby import CONTROLLERS, LONGEST_S, ROWS, SPAN_S, a_stage, undisturbed_workers
from tests.core.stage.stages import stream
from tests.tiers import SOAK
from tests.trust.histories import faults_of, gaps_of

RUNS = range(1000 if SOAK else 12)


class Seen(NamedTuple):
    key: int
    number: int
    before: int


def passed(key: int, number: int) -> Seen:
    return Seen(key, number, 0)


class Counted:
    """Counts the rows of a key."""

    rows: int

    def step(self, key: int, number: int, before: int) -> Seen:
        self.rows += 1
        return Seen(key, number, self.rows)


PASSED, COUNTED = own_function("histories:passed", passed), own_function("histories:Counted", Counted)


class Crashed(Exception):
    """Who takes the output crashes."""


def test_rows_of_ordered_chains_leave_once_and_in_the_order_of_their_keys(promise):
    for seed in RUNS:
        chance = np.random.default_rng([seed, 5])
        keys = chance.zipf(1.3, int(chance.choice([1, 40, 600, 3000]))) % 17
        came = list(zip(keys.tolist(), range(len(keys)), strict=True))
        counts = [
            Operator(f"o{at}", OperatorKind.PARTITIONED, "key", int(chance.choice([1, 2, 16])), function=COUNTED)
            for at in range(chance.integers(1, 4))
        ]
        chain = Chain((Operator("in", OperatorKind.STATELESS, function=PASSED), *counts))
        bound = bind(chain, {"key": pa.array(keys), "number": pa.array(range(len(keys)))})
        left, takes = list[list[int]](), int(chance.integers(1, 4)) if seed % 4 == 0 else 10**9

        def take(rows, left=left, takes=takes, calls=[0]):  # noqa: B006
            left += rows.tolist()
            calls[0] += 1
            if calls[0] >= takes:
                raise Crashed

        settings = random_settings(chance)
        try:
            run_by_workers(bound, settings, pace=1, taken=take)
            whole = True
        except Crashed:
            whole = False
        rows = [(key, number) for key, number, _ in left]
        assert faults_of(came, rows, 0 if whole else None) == [], (seed, settings)
        assert gaps_of(came, rows) == [], (seed, settings)
        counted = {}
        for key, _, before in left:
            counted[key] = counted.get(key, 0) + 1
            assert before == counted[key], (seed, settings)
    promise("ordered-histories").checked(len(RUNS))


@pytest.mark.parametrize("standby", [True, False])
def test_rows_of_a_stage_are_processed_once_and_in_the_order_of_their_keys(standby, promise):
    lost = 0
    for seed in RUNS:
        chance = np.random.default_rng([seed, 6])
        of = a_stage(chance)
        workers = undisturbed_workers(of) or [0]
        of = of if workers != [0] else replace(of, disturbances=())
        at_s = float(chance.uniform(0, SPAN_S))
        crashes = [Crash(int(chance.choice(workers)), at_s, at_s + float(chance.uniform(1e-5, 0.02)))]
        source = stream(of, ROWS, SPAN_S, seed)
        chunk = next(source.chunks())
        came = [
            ((producer, group), at)
            for at, (producer, group) in enumerate(zip(chunk.producers, chunk.groups, strict=True))
        ]
        faults = FaultSchedule(tuple(crashes), float(chance.uniform(1e-5, 5e-3)))
        acting = Actors(CONTROLLERS[seed % len(CONTROLLERS)](seed), faults=faults, standby=standby)
        run = simulate(of, source, LONGEST_S, acting, interval_s=0.02, journal=2 * ROWS)
        journal = run.journal
        left = [((one["producer"], one["group"]), int(one["number"])) for one in journal]
        assert not (standby and run.census.lost)
        assert faults_of(came, left, run.census.lost) == [], (seed, crashes)
        lost += run.census.lost
    assert standby or lost
    promise("stage-order").checked(len(RUNS))


def test_the_checker_sees_what_is_wrong():
    came = [("a", 0), ("b", 1), ("a", 2), ("b", 3)]
    assert faults_of(came, came) == gaps_of(came, came[:3]) == []
    assert faults_of(came, [came[1], came[0], came[3], came[2]]) == []
    assert "left 2 times" in faults_of(came, [*came, came[3]])[0]
    assert "never came" in faults_of(came, [*came, ("c", 4)])[0]
    assert "missing" in faults_of(came, came[:3])[0]
    assert "missing" in faults_of(came, came, 1)[0]
    assert "left after" in faults_of(came, [came[2], came[0], came[1], came[3]])[0]
    assert gaps_of(came, [came[2]]) != []
