"""A stream through a stage, without moves and with policies: what is measured, what is said of it, what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapt.core.errors import BadInput, UsageError
from adapt.core.flux.policies.names import FluxPolicy
from adapt.core.flux.replay.replay import LOAD, Flux, policies_of
from adapt.core.flux.replay.tables import flux_conclusion
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.faults import Capacity, Crash, ExternalLoad, FaultSchedule, SlowDown
from adapt.core.stage.conditions.growth import Growth
from adapt.core.stage.conditions.names import Router
from adapt.core.stage.conditions.settings import StageSettings, even_groups, even_owners
from adapt.core.stage.control.recovery import CrashReport
from adapt.core.stage.engine.series import Latencies
from adapt.core.stage.input.offered_load import Demand, bounds_of
from adapt.core.stage.movement.spilling import Memory, MemoryChange
from adapt.core.stage.outcome import Pace
from adapt.core.values import duration

WORKERS, PER_WORKER = 4, 8
STAGE = StageSettings(
    WORKERS,
    even_owners(WORKERS, PER_WORKER),
    even_groups(WORKERS * PER_WORKER, WORKERS * PER_WORKER),
    buffer_tuples=64,
    state_tuples=100,
)


def by(policy):
    return replace(LOAD, policy=policy)


FAST = Flux((LOAD, by(FluxPolicy.LOAD_SEVERAL)), min_collection_s=0.02)
ROWS = 30_000


def chunk(rows=ROWS, heaviest=0.0, rate=None, seed=0):
    """Rows of groups drawn alike, but for the first; due evenly if there is a rate."""
    chance = np.random.default_rng(seed)
    groups = np.where(chance.random(rows) < heaviest, 0, chance.integers(0, WORKERS * PER_WORKER, rows))
    due = None if rate is None else np.arange(rows) / rate
    return Chunk(groups, np.arange(rows) % WORKERS, due)


def replayed(chunk, settings=STAGE, flux=FAST, duration_s=None, **conditions):
    demand = Demand.from_chunks([chunk], settings, conditions.get("faults"))
    pace = Pace(None if chunk.due_s is None else 1.0, duration_s, 0.02)
    return replace(flux, **conditions).replay(Rows(lambda: iter([chunk])), demand, settings, pace)


def verdict(run):
    return " ".join([run.conclusion(), *run.notes()])


@pytest.fixture(scope="module")
def loaded():
    """One of four workers loaded all the time, rows as fast as they can be taken."""
    return replayed(chunk(), replace(STAGE, disturbances=(ExternalLoad(1, 0.0, np.inf),)))


def test_policies_stand_beside_the_static_case_and_do_better_than_it(loaded):
    static, load, several = loaded.outcomes
    assert [one.case for one in loaded.outcomes] == ["static", "load", "load-several"]
    assert all(one.processed == ROWS and one.left == 0 for one in loaded.outcomes)
    assert static.simulated.moves == []
    assert static.of_capacity == pytest.approx(4 * 75 / 175 / (3 + 75 / 175), rel=0.1)
    assert min(load.of_capacity, several.of_capacity) > 1.2 * static.of_capacity
    assert static.recovered_s is None
    assert several.behind_s < static.behind_s
    assert verdict(loaded).startswith("Use load")
    for one in (load, static):
        p99 = duration(one.total.share_below_s(0.99))
        assert f"p99 {p99}" in loaded.conclusion()


def test_the_tables_tell_what_the_cases_did(loaded):
    tables = loaded.tables()
    cases = {row["case"]: row for row in tables["cases"].records()}
    for outcome in loaded.outcomes:
        case = outcome.case
        series = {name: [row for row in tables[name].records() if row["case"] == case] for name in tables}
        assert sum(row["processed"] for row in series["intervals"]) == cases[case]["processed"] == ROWS
        assert sum(row["processed"] for row in series["workers"]) == ROWS
        assert len(series["moves"]) == cases[case]["moves"] == sum(row["moves"] for row in series["rounds"])
        assert cases[case]["state_moved_bytes"] == 8_000 * sum(row["restarted"] is not None for row in series["moves"])
        assert cases[case]["throughput"] == pytest.approx(ROWS / cases[case]["finished"])
        assert cases[case]["latency_p99"] <= max(row["latency_max"] or 0 for row in series["intervals"])
    assert loaded.as_data()["summary"]["workers"] == WORKERS


def test_the_same_replay_gives_the_same_run(loaded):
    again = replayed(chunk(), replace(STAGE, disturbances=(ExternalLoad(1, 0.0, np.inf),)))
    assert again.as_data() == loaded.as_data()


def test_where_all_rows_are_done_in_time_nothing_is_to_gain():
    run = replayed(chunk(4_000, rate=8_000))
    (static, *_) = run.outcomes
    assert static.of_capacity > 0.98
    assert static.late_s < 0.02
    assert static.behind_s == 0
    p99 = duration(static.total.share_below_s(0.99))
    assert f"Keep today's placement: it keeps up with all rows, p99 {p99}" in verdict(run)
    assert "Latencies are those of flux's queues (a buffer per producer, shared by all workers)." in verdict(run)
    row = run.summary().records()[0]
    assert row["best_full_at"] == pytest.approx(WORKERS / 45.5e-6 / 8_000, rel=0.05)
    assert row["static_full_at"] <= row["best_full_at"]


def test_where_moves_keep_partitions_off_the_disk_they_are_advised():
    """Half of the state of worker 0 does not fit; the disk keeps rows waiting, but no row is late in the end."""
    owned = np.flatnonzero(STAGE.owners == 0)
    half = STAGE.state_sizes()[owned].sum() * STAGE.costs.tuple_bytes / 2
    memory = Memory(1e9, (MemoryChange(0, 0.0, half),), seek_s=1e-4, seek_sd_s=0.0, quantum_s=1e-3)
    hybrid = replace(FAST, policies=(by(FluxPolicy.HYBRID),))
    run = replayed(chunk(4_000, rate=8_000), flux=hybrid, memory=memory)
    assert "Use hybrid: " in verdict(run)


@pytest.mark.parametrize("share", [0.2, 0.9, 0.95, 0.953, 0.96, 0.979, 0.98, 1.0])
@pytest.mark.parametrize("other", [0.955, 1.0, 1.02, 1.049, 1.06])
def test_a_case_a_thousand_times_as_fast_is_advised_at_every_rate(loaded, share, other):
    def at(outcome, share, p99_s):
        return replace(outcome, of_capacity=min(1.0, share), total=Latencies.from_seconds(np.array([p99_s])))

    static, load, _ = loaded.outcomes
    told = flux_conclusion([at(static, share, 0.781), at(load, share * other, 687e-6)], loaded.bounds, None)
    assert told.startswith("Use load: ")
    told = flux_conclusion([at(static, share, 687e-6), at(load, share * min(1.0, other), 0.781)], loaded.bounds, None)
    assert told.startswith("Keep today's placement: " if share >= 0.98 else "Moving partitions does not help: ")


def test_a_case_that_outgrows_its_memory_fails_alone():
    """One worker is slow, so that rows do not expire and state grows, unless partitions move."""
    rate = 60_000
    of = replace(STAGE, state=Growth(row_bytes=80, window=50_000), disturbances=(ExternalLoad(1, 0.0, np.inf),))
    memory = Memory(2e4, disk_bytes_per_s=1e9, seek_s=1e-5, seek_sd_s=0.0, quantum_s=1e-3)
    rows = replace(chunk(rate=rate), times=np.arange(ROWS) * 1_000_000 // rate)
    run = replayed(rows, of, memory=memory)
    static, load, _ = run.outcomes
    assert static.processed + static.left == ROWS == load.processed
    assert "static fails: partition 0 has grown to " in verdict(run)
    assert "Use load: " in verdict(run)


def test_state_that_is_lost_is_said(loaded):
    lost = CrashReport(Crash(1, 0.0), lost_state_bytes=2048)
    static, load, _ = loaded.outcomes
    crashed = replace(load, simulated=replace(load.simulated, crashes=[lost]))
    told = flux_conclusion([static, crashed], loaded.bounds, None)
    assert "State lost in crashes: 2.0\u202fKiB with load." in told


def test_a_partition_too_heavy_for_a_worker_is_named():
    run = replayed(chunk(heaviest=0.6), flux=replace(FAST, policies=(by(FluxPolicy.LOAD_GUARDED),)))
    assert "The hottest partition alone has 6" in verdict(run)


def test_a_run_that_is_cut_off_says_what_is_left():
    run = replayed(chunk(rate=400_000), duration_s=0.1)
    for outcome in run.outcomes:
        assert outcome.finished_s == 0.1
        assert outcome.processed + outcome.left == ROWS
        assert outcome.lag > 0
        assert outcome.late_s is None
    assert "not processed at the end" in verdict(run)


def test_bounds_are_those_of_a_small_case_worked_out_by_hand():
    stage = StageSettings(2, np.array([0, 0, 1], np.int32), np.arange(3, dtype=np.int32), state_tuples=1)
    stage = replace(stage, costs=replace(stage.costs, produce_s=0.0), disturbances=(SlowDown(0, 1.0, np.inf, 0.5),))
    costs = Chunk(np.array([0, 1, 2]), np.array([0, 0, 0]), np.array([0.0, 0.0, 2.0]), np.array([1.0, 2.0, 3.0]))
    found = bounds_of(Demand.from_chunks([costs], stage), stage)
    # 3 CPU seconds are due at 0, of which 2 are done in the first second, and the third at 1 + 1 / 1.5, before the
    # other 3 are due at 2; with 1.5 a second these last until 4
    assert found.even_s == pytest.approx(4.0)
    assert found.least_s == found.even_s
    assert found.static_s == pytest.approx(5.0)  # worker 0: 1 s in the first second, 2 s at half of its speed
    assert found.row_s == pytest.approx(2.0)
    assert (found.heaviest_share, found.busiest_share) == pytest.approx((0.5, 0.5))
    assert found.static_load == pytest.approx(3 / 1.5)
    assert found.best_load == pytest.approx(6 / 3.5)


@given(
    st.lists(st.tuples(st.floats(0, 2), st.floats(0, 0.5)), min_size=1, max_size=30), st.integers(1, 7), st.floats(0, 1)
)
@example([(2.2250738585e-313, 0.5)], 1, 0.0)
def test_the_bound_is_when_all_workers_as_one_would_be_done(rows, size, start_s):
    """Against a queue with one server that has the CPU of all workers, row by row."""
    due_s, cost_s = np.cumsum([gap for gap, _ in rows]), np.array([cost for _, cost in rows])
    stage = replace(STAGE, disturbances=(SlowDown(2, start_s, start_s + 3, 0.25),))
    capacity = Capacity.from_disturbances(WORKERS, stage.disturbances)
    used_s = 0.0
    for due, cost in zip(due_s, cost_s, strict=True):
        used_s = max(used_s, capacity.by(due)) + cost + stage.costs.produce_s
    zeros = np.zeros(len(rows), np.int32)
    parts = [slice(at, at + size) for at in range(0, len(rows), size)]
    demand = Demand.from_chunks([Chunk(zeros[part], zeros[part], due_s[part], cost_s[part]) for part in parts], stage)
    assert bounds_of(demand, stage).even_s == pytest.approx(max(due_s[-1], capacity.until(used_s)))


def test_a_dead_worker_takes_rows_along_and_with_standby_none():
    faults = FaultSchedule((Crash(1, 0.1),), 0.02)
    lossy, safe = (replayed(chunk(), faults=faults, standby=standby) for standby in (False, True))
    assert all(one.lost > 0 and one.left == 0 for one in lossy.outcomes)
    assert "Rows lost in crashes" in verdict(lossy)
    assert all(one.lost == 0 and one.processed == ROWS for one in safe.outcomes)
    assert [row["case"] for row in safe.tables()["crashes"].records()] == ["static", "load", "load-several"]
    for run, lost, mirrored in ((lossy, True, False), (safe, False, True)):
        for case in run.tables()["cases"].records():
            assert (case["lost_state"] > 0, case["lost_groups"] > 0) == (lost, lost)
            assert (case["mirrored"] > 0.9 * ROWS, case["standby"] > 80 * 0.9 * ROWS) == (mirrored, mirrored)
            assert case["takeover"] == pytest.approx(0.02)


def test_without_a_policy_the_static_case_stands_alone():
    run = replayed(chunk(), replace(STAGE, router=Router.RIVER), Flux(policies_of((), Router.RIVER)))
    assert [one.case for one in run.outcomes] == ["static"]
    assert run.summary().records()[0]["best"] is None
    assert policies_of((), Router.FLUX) == (LOAD,)


@pytest.mark.parametrize(
    ("settings", "flux", "error", "told"),
    [
        (
            {"buffer_tuples": 11},
            {},
            UsageError,
            "must hold at least one packet of 12 rows (got 11); router exchange needs no buffer",
        ),
        ({"router": Router.RIVER}, {}, UsageError, "river sends a tuple to any worker"),
        ({}, {"min_collection_s": 0.0}, UsageError, "above 0"),
        ({}, {"memory": Memory(7_999)}, BadInput, "the largest partition, 8,000 bytes (got 7,999)"),
        ({}, {"memory": Memory(1e9, (MemoryChange(1, 1.0, 10),))}, BadInput, "the largest partition, 8,000 bytes"),
        ({}, {"faults": FaultSchedule((Crash(4, 1.0),))}, BadInput, "faults[0].worker must be from 0"),
        (
            {"disturbances": (ExternalLoad(1, 0.0, 5.0), SlowDown(1, 4.0, 6.0, 0.5))},
            {},
            BadInput,
            "two disturbances of worker 1 overlap from 4 to 5 s",
        ),
    ],
)
def test_what_cannot_be_is_refused_before_the_trace_is_read(settings, flux, error, told):
    with pytest.raises(error) as refused:
        replace(FAST, **flux).check(replace(STAGE, **settings))
    assert told in str(refused.value)
