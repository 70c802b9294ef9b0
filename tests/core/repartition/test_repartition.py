"""A replay by periods: against plain Python row by row, and what its numbers promise."""

import json
from itertools import count

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import settings as with_settings
from hypothesis import strategies as st

from adapt.core.charts.over_time import imbalance_per_period
from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.engines.names import Engine
from adapt.core.errors import BadInput
from adapt.core.partitioning.build import Recipe, build_partitioner
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.schemes.names import Construction, Scheme
from adapt.core.repartition.decisions import Replan, Schedule
from adapt.core.repartition.replay import replay_repartition
from adapt.core.stream import Weight
from adapt.core.units.row_or_time_span import Length

TS = pa.timestamp("us", "UTC")
RECIPES = [Recipe(Scheme.UNIFORM), Recipe(Scheme.CONSISTENT, replicas=20)] + [
    Recipe(Scheme.HYBRID, construction, Resources.parse("LCQ", sigma=0.5), replicas=20) for construction in Construction
]
NAMES = [f"{recipe.scheme}-{recipe.construction}" for recipe in RECIPES]

rows = st.lists(st.tuples(st.integers(0, 3), st.sampled_from("aaaabbcdefgh")), min_size=1, max_size=60)
schedules = st.dictionaries(st.integers(1, 60), st.integers(1, 5), max_size=3).flatmap(
    lambda later: st.integers(1, 5).map(lambda first: Schedule(((0, first), *sorted(later.items()))))
)


def replay(batches, length, schedule, recipe, clock=None, **others):
    """The replay of these batches, as often as they are read."""

    def read(columns):
        return (batch.select(columns) for batch in batches)

    return replay_repartition(read, Replan(recipe, schedule, length, **others), clock=clock)


def one_batch(times, keys):
    return [pa.record_batch({"ts": pa.array(times, TS), "key": pa.array(keys, pa.string())})]


def skewed(seed, rows=20_000, domain=500):
    """A drifting stream: the heaviest keys change every 5000 rows."""
    random = np.random.default_rng(seed)
    keys = (random.zipf(1.3, rows) + np.arange(rows) // 5000 * 7) % domain
    return pa.array(np.arange(rows), TS), pa.array(keys).cast(pa.string())


def literal_replay(times, keys, length, schedule, recipe):
    """One row of plain numbers a period, each as its definition says."""
    periods = {}
    for time, key in zip(times, keys, strict=True):
        periods.setdefault((time - times[0]) // length, []).append(key)
    plan, last = None, None
    for number, held in periods.items():
        channels = schedule.channels_at(number * length)
        row = {"period": number, "rows": len(held), "channels": channels}
        if plan is None:
            plan = make_partitioner(recipe.scheme, channels, recipe.hash, recipe.replicas)
            row |= {"m": None, "keys_moved": None, "state_moved": None}
        else:
            counted = frequencies_of(count_keys(pa.array(last)))
            built = build_partitioner(counted, recipe, channels, plan)
            counts = {key: last.count(key) for key in last}
            moved = [key for key in counts if plan.channel_of(key) != built.channel_of(key)]
            state = sum(counts[key] for key in moved)
            row |= {"m": state / (len(last) / channels), "keys_moved": len(moved), "state_moved": state}
            plan = built
        counts = {key: held.count(key) for key in held}
        loads = [[0.0] * channels for _ in range(3)]
        for key, times_seen in counts.items():
            for load, letter in zip(loads, recipe.resources.text, strict=True):
                load[plan.channel_of(key)] += {"C": 1, "L": times_seen, "Q": times_seen**2}[letter]
        row["loads"] = loads
        row["imbalance"] = max(loads[2]) * channels / sum(loads[2])
        for name, load in zip(("r_s", "r_c", "r_n"), loads, strict=True):
            row[name] = max(load) / min(load) if min(load) else None
        yield row
        last = held


@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
@with_settings(max_examples=30)
@given(rows=rows, length=st.integers(1, 40), schedule=schedules)
def test_a_replay_measures_what_plain_python_measures_row_by_row(recipe, rows, length, schedule):
    times, keys = np.cumsum([gap for gap, _ in rows]).tolist(), [key for _, key in rows]
    run = replay(one_batch(times, keys), Length(length), schedule, recipe)
    measured = run.tables()["periods"].records()
    expected = list(literal_replay(times, keys, length, schedule, recipe))
    assert len(measured) == len(expected)
    for outcome, row, literal in zip(run.outcomes, measured, expected, strict=True):
        assert outcome.loads.tolist() == literal.pop("loads")
        for name, value in literal.items():
            assert row[name] == (None if value is None else pytest.approx(value, rel=1e-12)), name
        assert row["b(1+m)"] is None or row["b(1+m)"] == row["b"] * (1 + row["m"])


@pytest.mark.parametrize("engine", Engine)
def test_doing_nothing_is_a_replay_of_the_engine_s_own_placement(engine):
    times, keys = skewed(5)
    schedule, batch = Schedule.parse("0h:4,9ms:6"), one_batch(times, keys)
    run = replay(batch, Length(4000), schedule, RECIPES[-1], today=engine)
    alone = replay(batch, Length(4000), schedule, Recipe(engine, resources=RECIPES[-1].resources))
    table, summary = run.tables()["periods"], run.summary().records()[0]
    assert table.values("imbalance_today") == alone.tables()["periods"].values("imbalance")
    assert summary["mean_imbalance_today"] == alone.summary().records()[0]["mean_imbalance"]
    without = replay(batch, Length(4000), schedule, RECIPES[-1]).tables()["periods"]
    assert set(without.values("imbalance_today")) == {None}
    assert without.values("imbalance") == table.values("imbalance")
    assert "gray line" in str(imbalance_per_period(table))
    assert "gray line" not in str(imbalance_per_period(without))


def test_a_step_of_the_schedule_waits_for_the_next_period():
    run = replay(one_batch([0, 5, 9, 10, 19], list("abcab")), Length(10), Schedule(((0, 2), (5, 3))), RECIPES[0])
    assert run.tables()["periods"].values("channels") == [2, 3]


def test_the_channel_count_is_that_of_the_next_period_with_rows():
    run = replay(one_batch([0, 100], ["a", "b"]), Length(10), Schedule(((0, 2), (50, 3), (60, 4))), RECIPES[0])
    periods = run.tables()["periods"]
    assert (periods.values("period"), periods.values("channels")) == ([0, 10], [2, 4])
    assert run.summary().values("empty_periods") == [9]


@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
def test_no_imbalance_is_under_its_floor(recipe):
    times, keys = skewed(1)
    run = replay(one_batch(times, keys), Length(2000, True), Schedule.fixed(6), recipe)
    for row in run.tables()["periods"].records():
        assert row["imbalance"] >= row["best_possible"] * (1 - 1e-12)
        assert row["r_n"] is None or row["r_n"] >= row["r_best"] * (1 - 1e-12)


def test_hashing_moves_nothing_while_the_channels_stay():
    times, keys = skewed(2)
    for scheme in (Scheme.UNIFORM, Scheme.CONSISTENT):
        run = replay(one_batch(times, keys), Length(2000, True), Schedule.fixed(6), Recipe(scheme))
        assert run.tables()["periods"].values("m") == [None] + [0.0] * 9


def test_placing_heavy_keys_balances_better_than_hashing_from_the_second_period_on():
    times, keys = skewed(3)
    imbalances = {
        scheme: replay(one_batch(times, keys), Length(500, True), Schedule.fixed(4), Recipe(scheme)).tables()["periods"]
        for scheme in (Scheme.CONSISTENT, Scheme.HYBRID)
    }
    hashed, placed = (imbalances[scheme].values("imbalance") for scheme in (Scheme.CONSISTENT, Scheme.HYBRID))
    assert hashed[0] == placed[0]
    assert sum(placed[1:]) < sum(hashed[1:])
    assert imbalances[Scheme.HYBRID].values("pinned_keys")[0] == 0


def test_the_same_stream_gives_the_same_run_however_it_is_cut():
    times, keys = skewed(4)
    whole = pa.record_batch({"ts": times, "key": keys})
    pieces = [whole.slice(at, 777) for at in range(0, len(whole), 777)]
    runs = [
        replay(batches, Length(3000), Schedule.parse("0h:4,5ms:6"), RECIPES[-1]).as_data()
        for batches in ([whole], pieces, [whole])
    ]
    assert json.dumps(runs[0]) == json.dumps(runs[1]) == json.dumps(runs[2])
    assert runs[0]["schema"] == "adapt.run/2"
    assert runs[0]["parameters"]["schedule"] == "0h:4,5ms:6"


def test_the_summary_adds_up_the_periods():
    times, keys = skewed(5)
    run = replay(one_batch(times, keys), Length(4000), Schedule.parse("0h:4,9ms:6"), RECIPES[-1])
    periods, (summary,) = run.tables()["periods"], run.summary().records()
    assert summary["periods"] == 5
    assert summary["rows"] == sum(periods.values("rows")) == 20_000
    assert summary["rescales"] == 1
    assert summary["all_keys_moved"] == sum(periods.values("keys_moved")[1:])
    assert summary["all_state_moved"] == sum(periods.values("state_moved")[1:])
    assert summary["mean_imbalance"] == pytest.approx(sum(periods.values("imbalance")) / 5)
    assert summary["imbalance_max"] == max(periods.values("imbalance"))
    assert periods.values("imbalance")[summary["worst_period"]] == summary["imbalance_max"]


def test_the_channels_table_has_every_channel_of_every_period():
    times, keys = skewed(6, rows=100)
    run = replay(one_batch(times, keys), Length(50), Schedule(((0, 2), (50, 3))), RECIPES[0])
    channels = run.tables()["channels"]
    assert list(zip(channels.values("period"), channels.values("channel"), strict=True)) == [
        (0, 0), (0, 1), (1, 0), (1, 1), (1, 2)
    ]  # fmt: skip
    assert sum(channels.values("network")) == 100


def test_building_is_timed_by_the_clock_that_is_given_and_not_in_the_first_period():
    ticks = count()
    times, keys = skewed(7, rows=100)
    run = replay(one_batch(times, keys), Length(40), Schedule.fixed(2), RECIPES[-1], clock=lambda: float(next(ticks)))
    assert run.tables()["periods"].values("build_s") == [None, 1.0, 1.0]


def test_costs_are_the_loads_where_they_are_the_weight():
    batch = one_batch([0, 1, 2], ["a", "a", "b"])[0].append_column("cost_us", pa.array([1.5, 2.0, None]))
    run = replay([batch], Length(10), Schedule.fixed(1), RECIPES[0], weight=Weight.COST, weight_column="cost_us")
    assert run.outcomes[0].loads.tolist() == [[3.5]] * 3
    assert (run.outcomes[0].rows, run.outcomes[0].keys) == (3, 2)


def test_a_period_without_any_weight_has_no_imbalance_and_the_replay_goes_on():
    batch = one_batch([0, 10, 20], ["a", "b", "a"])[0].append_column("cost_us", pa.array([1.0, 0.0, 2.0]))
    for recipe in RECIPES:
        run = replay([batch], Length(10), Schedule.fixed(2), recipe, weight=Weight.COST, weight_column="cost_us")
        assert run.tables()["periods"].values("imbalance") == [2.0, None, 2.0]
        assert run.summary().values("mean_imbalance") == [2.0]


def test_null_keys_are_routed_like_any_other():
    for recipe in RECIPES:
        run = replay(one_batch(list(range(60)), [None, "a", None] * 20), Length(20), Schedule.fixed(3), recipe)
        assert run.tables()["periods"].values("keys") == [2, 2, 2]


@pytest.mark.parametrize("recipe", RECIPES, ids=NAMES)
def test_integer_keys_and_null_alone_can_be_tracked(recipe):
    ids = pa.array([None] * 30 + list(range(30)), pa.int64())
    batch = pa.record_batch({"ts": pa.array(range(60), TS), "key": ids})
    run = replay([batch], Length(20), Schedule.fixed(3), recipe)
    assert run.summary().values("rows") == [60]


def test_a_negative_cost_is_refused():
    batch = one_batch([0], ["a"])[0].append_column("cost_us", pa.array([-1.0]))
    with pytest.raises(BadInput, match=r"'a' must be finite and at least 0 \(got -1\)"):
        replay([batch], Length(10), Schedule.fixed(2), RECIPES[0], weight=Weight.COST, weight_column="cost_us")


def test_a_weight_goes_with_its_column():
    with pytest.raises(ValueError, match="weight cost"):
        replay([], Length(10), Schedule.fixed(2), RECIPES[0], weight=Weight.COST)


def test_a_stream_without_rows_gives_a_run_without_periods():
    run = replay([], Length(10), Schedule.fixed(2), RECIPES[-1])
    assert run.tables()["periods"].rows == ()
    assert run.summary().values("periods") == [0]
    assert json.loads(json.dumps(run.as_data(), allow_nan=False)) == run.as_data()
