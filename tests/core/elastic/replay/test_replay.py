"""A stream through a stage whose workers come and go: what is measured, what is said of it, what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.elastic.policies.names import Alignment, ScalingPolicy, Signal
from adapt.core.elastic.policies.placements import Counting
from adapt.core.elastic.policies.registry import Chosen, ChosenScalingPolicy
from adapt.core.elastic.policies.scaler import Patience, Rebuild, ScaleOn
from adapt.core.elastic.replay.outcome import Waste, covered_s
from adapt.core.elastic.replay.replay import Elastic
from adapt.core.errors import UsageError
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.schemes.names import Construction, Scheme
from adapt.core.phrases import percent
from adapt.core.stage.conditions.arrivals import Chunk, Rows
from adapt.core.stage.conditions.growth import Join
from adapt.core.stage.conditions.names import Migrating
from adapt.core.stage.conditions.settings import Costs, StageSettings, even_groups, even_owners
from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor, Thresholds
from adapt.core.stage.control.elasticity import Watched
from adapt.core.stage.control.workers import Migration
from adapt.core.stage.input.offered_load import Demand
from adapt.core.stage.outcome import Pace

POOL, PER_WORKER = 6, 5
STAGE = StageSettings(
    POOL,
    even_owners(POOL, PER_WORKER),
    even_groups(POOL * PER_WORKER, POOL * PER_WORKER),
    buffer_tuples=64,
    costs=Costs(service_s=1e-3, service_sd_s=0.0),
    state_tuples=100,
)
CHOSEN = Chosen(signal=Signal.OFFERED, lag_rows=100, scale_on=ScaleOn(None))
THRESHOLDS, DS2, LAG = (
    ChosenScalingPolicy(policy, CHOSEN) for policy in (ScalingPolicy.THRESHOLDS, ScalingPolicy.DS2, ScalingPolicy.LAG)
)
ELASTIC = Elastic(
    POOL,
    2,
    (THRESHOLDS, DS2, LAG),
    Thresholds(),
    Patience(0.3, 0.6),
    recipe=Recipe(Scheme.HYBRID, Construction.SCAN, replicas=50),
    counting=Counting(1.0, 1e-3),
    period_s=0.1,
    migration=Migration(),
)


def burst(cost_s=None):
    """Four seconds at 400 rows/s, but for the second, with 3,200 rows/s; a worker does 1,000 rows/s."""
    due = np.concatenate([np.arange(rate) / rate + at for at, rate in enumerate((400, 3200, 400, 400))])
    groups = np.random.default_rng(1).integers(0, POOL * PER_WORKER, len(due))
    cost = None if cost_s is None else np.full(len(due), cost_s)
    return Chunk(groups, np.arange(len(due)) % POOL, due, cost)


def replayed(elastic=ELASTIC, settings=STAGE, chunk=None):
    chunk = chunk or burst()
    demand = Demand.from_chunks([chunk], settings)
    return elastic.replay(Rows(lambda: iter([chunk])), demand, settings, Pace(interval_s=0.1))


@pytest.fixture(scope="module")
def bursty():
    return replayed()


def test_every_policy_takes_workers_on_and_lets_them_go(bursty):
    cases = {row["case"]: row for row in bursty.tables()["cases"].records()}
    assert list(cases) == ["fixed", "thresholds", "ds2", "lag"]
    assert all(row["processed"] == 4400 and row["unprocessed"] == 0 for row in cases.values())
    assert (cases["fixed"]["workers_mean"], cases["fixed"]["rescales"]) == (2, 0)
    for name in ("thresholds", "ds2", "lag"):
        row = cases[name]
        assert 2 < row["workers_mean"] < row["workers_max"] <= POOL
        assert row["rescales"] >= 2
        assert row["moves"] > 0
        assert 0 < row["paused"] <= row["pause_time"]
        assert row["catch_up"] > 0
        assert row["latency_p99"] < cases["fixed"]["latency_p99"]
        assert row["drain"] < cases["fixed"]["drain"] + 0.1
    assert bursty.conclusion().startswith("Use ")
    assert " with 2 workers" in bursty.conclusion()


def test_the_tables_agree_with_each_other(bursty):
    tables = bursty.tables()
    for case in tables["cases"].records():
        name = case["case"]
        of = {key: [row for row in table.records() if row["case"] == name] for key, table in tables.items()}
        assert sum(row["workers"] * 0.1 for row in of["intervals"]) == pytest.approx(case["worker_time"])
        assert sum(row["processed"] for row in of["intervals"]) == case["processed"]
        busy = sum(row["utilization"] * 0.1 for row in of["workers"])
        assert case["worker_time"] - case["idle_time"] == pytest.approx(busy, abs=1e-6)
        assert all(0 <= row["utilization"] <= 1 + 1e-9 for row in of["intervals"])
        assert len(of["moves"]) == case["moves"] == sum(row["moves"] for row in of["rescales"])
        assert sum(row["state_moved_bytes"] for row in of["rescales"]) == case["state_moved_bytes"]
        workers = 2
        for step in of["rescales"]:
            assert step["before"] == workers
            workers = step["after"]
            assert {"scale out": step["after"] > step["before"], "scale in": step["after"] < step["before"]}[
                step["why"]
            ]
    assert bursty.as_data()["mechanism"] == "elastic"


def test_the_same_replay_gives_the_same_run(bursty):
    assert replayed().as_data() == bursty.as_data()


def test_workers_that_hold_shed_until_there_are_more():
    """Two workers hold 100 rows each for a tenth of a second: 2,000 rows/s, of which from 80% on some are shed."""
    settings = replace(STAGE, overload=Overload(ShedFactor(), 100, 0.1), costs=Costs(service_s=1e-4))
    run = replayed(replace(ELASTIC, policies=(THRESHOLDS,)), settings)
    fixed, scaled = run.outcomes
    assert fixed.outcome.shed > 2 * scaled.outcome.shed > 0
    assert run.starts == pytest.approx(0.9)
    assert "of the rows dropped" in run.conclusion()
    hidden = replayed(replace(ELASTIC, policies=(ChosenScalingPolicy(ScalingPolicy.THRESHOLDS, Chosen()),)), settings)
    assert hidden.starts == pytest.approx(1.8)
    assert "only at 1.80 times" in " ".join(hidden.notes())
    never = Elastic(POOL, 2, thresholds=Thresholds(0.1, 0.4, 0.8, 1.0))
    assert "never scale out" in " ".join(replayed(never, settings).notes())


def test_plans_are_built_anew_in_a_case_of_their_own():
    elastic = replace(ELASTIC, policies=(), rebuild=Rebuild(every_s=0.5, min_interval_s=0.5))
    run = replayed(replace(elastic, migration=Migration(Migrating.HOTTEST, 3)))
    fixed, rebuilt = run.outcomes
    assert [fixed.case, rebuilt.case] == ["fixed", "rebuild"]
    assert not fixed.rescales
    assert len(rebuilt.rescales) >= 4
    assert {row["why"] for row in run.tables()["rescales"].records()} == {"rebuild"}
    assert rebuilt.most_workers == 2


@pytest.mark.parametrize(("settings", "cost_s"), [(STAGE, None), (STAGE, 2e-3)])
def test_the_workers_at_the_start_are_what_the_mean_rate_asks_for(settings, cost_s):
    """Some 1,100 rows/s of a millisecond, or two, at 40% of the time."""
    run = replayed(replace(ELASTIC, least=None, policies=()), settings, burst(cost_s))
    assert run.parameters["workers"] == run.least == (3 if cost_s is None else 6)


def test_ranges_go_only_to_numbers_that_divide_the_partitions():
    elastic = replace(
        ELASTIC, recipe=None, policies=(replace(DS2, parameters=Chosen(alignment=Alignment.FACTORS)),), least=1
    )
    chunk = replace(burst(), groups=burst().groups % 30)
    run = replayed(elastic, chunk=chunk)
    assert {step.after for step in run.outcomes[1].rescales} <= {1, 2, 3, 5, 6}


def two_sided():
    """The burst as rows of two sides by turns, whose times are milliseconds."""
    chunk = burst()
    sides = (np.arange(len(chunk.groups)) % 2).astype(np.int8)
    return replace(chunk, sides=sides, times=(chunk.due_s * 1000).astype(np.int64))


def matches_of(chunk, window):
    times, found = chunk.times, 0
    for row in range(len(times)):
        near = slice(np.searchsorted(times, times[row] - window), row)
        same = (chunk.groups[near] == chunk.groups[row]) & (chunk.sides[near] != chunk.sides[row])
        found += int(same.sum())
    return found


def test_a_join_finds_every_answer_whatever_scales_and_less_where_rows_are_shed():
    settings = replace(STAGE, join=Join(200, 1e-5), costs=Costs(service_s=5e-4), state_tuples=0)
    chunk = two_sided()
    run = replayed(settings=settings, chunk=chunk)
    expected = matches_of(chunk, 200)
    cases = run.tables()["cases"].records()
    assert any(row["rescales"] for row in cases)
    assert all((row["answers"], row["expected"], row["recall"]) == (expected, expected, 1.0) for row in cases)
    assert any(row["state_moved_bytes"] for row in cases)
    answers = [row["answers"] for row in run.tables()["intervals"].records() if row["case"] == "ds2"]
    assert sum(answers) == expected
    work_s = 4400 * (5e-4 + settings.costs.produce_s) + expected * 1e-5
    assert run.bounds.row_s * 4400 == pytest.approx(work_s)
    shedding = replace(settings, overload=Overload(ShedFactor(), 100, 0.2))
    shed = replayed(replace(ELASTIC, policies=(THRESHOLDS,)), shedding, chunk)
    fixed, scaled = shed.outcomes
    assert fixed.recall < scaled.recall < 1
    assert 0 <= fixed.waste.dropped_unevenly < fixed.waste.dropped_falsely <= fixed.outcome.shed
    assert f"{percent(fixed.recall)} of the answers found" in shed.conclusion()


def test_what_is_shed_while_there_is_room_is_shed_falsely():
    watched = Watched(np.array([2, 2, 3, 4]), np.array([1, 10, 100, 1000]), np.array([150, 170, 310, 330]))
    assert Waste.from_watched(watched, Overload(ShedFactor(), 100, 1.0), 4) == Waste(111, 1)


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), max_size=8))
def test_the_time_with_any_pause_is_counted_once(spans):
    pauses = [(float(start), float(start + length)) for start, length in spans]
    covered = {tick for start, length in spans for tick in range(start, start + length)}
    assert covered_s(pauses) == len(covered)


def test_what_cannot_be_is_refused():
    for settings, elastic, said in (
        (STAGE, replace(ELASTIC, least=7), "pool of 6 workers is smaller than the 7"),
        (STAGE, replace(ELASTIC, least=0), "at least 1 worker "),
        (replace(STAGE, buffer_tuples=5), ELASTIC, "at least one packet"),
        (STAGE, replace(ELASTIC, period_s=0.0), "0 s"),
        (STAGE, replace(ELASTIC, startup_s=-1.0), "-1 s"),
    ):
        with pytest.raises(UsageError, match=said):
            elastic.check(settings)
    with pytest.raises(UsageError, match="smaller than the"):
        replayed(replace(ELASTIC, pool=2, least=None), replace(STAGE, workers=2, owners=STAGE.owners % 2), burst(2e-3))
