"""Answers under load shedding: without drops those of a group-by of all rows, with drops within their intervals."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput
from adapt.core.fit.network.names import DropPlanner, Drops
from adapt.core.fit.network.network_file import read_network
from adapt.core.fit.replay.bound_rows import Binding
from adapt.core.fit.replay.replay import FitOptions, replay_fit
from adapt.core.stage.conditions.shed_factor import Overload, ShedFactor

NETWORK = """
[settings]
tick = "1s"
lag_ticks = 0
headroom = 0.0

[[node]]
name = "A"
capacity = CAPACITY

[[input]]
name = "trades"
stream = { bucket = 0, of = 1 }

[[operator]]
name = "real"
node = "A"
kind = "filter"
inputs = ["trades"]
cost = 0.0001
selectivity = 0.5

[[operator]]
name = "bars"
node = "A"
kind = "aggregate"
inputs = ["real"]
cost = 0.001
selectivity = 0.1
window = { size = "4s", slide = "2s", group_by = "symbol" }
compute = ["count", "sum(price)", "avg(price)", "min(price)", "max(price)", "top(2, sum(price))"]

[[output]]
name = "out"
from = "bars"
"""
START = 1_700_000_000_000_000
RANDOM = np.random.default_rng(5)
ROWS = 100_000
AT_US = np.sort(RANDOM.integers(0, 200_000_000, ROWS))
AT_US[0] = 0
SYMBOL = np.minimum(RANDOM.zipf(1.6, ROWS), 6)
PRICE = np.where(RANDOM.random(ROWS) < 0.02, np.nan, RANDOM.lognormal(3, 1, ROWS))
TRACE = pa.table(
    {
        "ts": pa.array(START + AT_US, pa.timestamp("us", "UTC")),
        "key": pa.array([f"k{each}" for each in range(ROWS)]),
        "symbol": pa.array([f"s{each}" for each in SYMBOL]),
        "price": pa.array(PRICE, from_pandas=True),
        "text": pa.array(PRICE, from_pandas=True).cast(pa.string()),
    }
)


def replayed(planner, capacity, change=lambda options: options, text=NETWORK, trace=TRACE):
    """The answers of a planner, by function."""
    read = read_network(text.replace("CAPACITY", str(capacity)))
    binding = Binding(read.network, read.settings.tick_us)
    binding.check(TRACE.column_names)
    options = change(FitOptions((planner,), read.settings, seed=3))
    run = replay_fit(lambda: trace.to_batches(7_000), binding, options, clock=lambda: 0.0)
    return run, {row["answer"]: row for row in run.tables()["answers"].records()}


def test_without_drops_answers_are_exact_and_number_as_many_as_groups_of_all_rows() -> None:
    text = NETWORK.replace("selectivity = 0.5", "selectivity = 1.0")
    run, answers = replayed(DropPlanner.NONE, 10.0, text=text)
    pairs = {
        (window, symbol)
        for at, symbol in zip((AT_US // 2_000_000).tolist(), SYMBOL.tolist(), strict=True)
        for window in (at, at - 1)
        if window >= 0
    }
    assert answers["count"]["results"] == len(pairs)
    for name, row in answers.items():
        assert row["missing"] == 0
        if name.startswith("top"):
            assert row["found"] == 1
        else:
            assert row["harmed"] == 0
            assert row["error_p95"] is None
    assert answers["sum(price)"]["total_error"] == pytest.approx(0, abs=1e-9)
    assert run.outcomes[0].answers[0].accuracy.total_interval == 0


def test_numbers_may_be_written_as_text() -> None:
    _, of_text = replayed(DropPlanner.EXACT, 0.12, text=NETWORK.replace("(price)", "(text)"))
    _, of_numbers = replayed(DropPlanner.EXACT, 0.12)
    assert of_text["avg(text)"]["error_p95"] == of_numbers["avg(price)"]["error_p95"]


@pytest.mark.parametrize("queued", [False, True])
def test_random_drops_are_estimated_within_their_intervals(queued) -> None:
    def change(options):
        return replace(options, overload=Overload(ShedFactor(0.5), 200, 1.0)) if queued else options

    planner = DropPlanner.NONE if queued else DropPlanner.EXACT
    run, answers = replayed(planner, 0.12, change)
    assert run.tables()["planners"].records()[0]["queue_drops" if queued else "dropped"] > 0
    assert answers["count"]["error_p50"] > 0.02
    for name in ("count", "sum(price)", "avg(price)"):
        assert 0.85 < answers[name]["covered"] <= 1, name
        assert answers[name]["missing"] < 0.05
    for name in ("count", "sum(price)"):
        assert answers[name]["total_error"] < 2 * answers[name]["total_interval"] < 0.1
    assert answers["avg(price)"]["error_p50"] < answers["sum(price)"]["error_p50"]
    assert answers["min(price)"]["interval"] is None
    assert 0.8 < answers["top(2, sum(price))"]["found"] <= 1


def test_dropped_windows_are_missing_and_others_have_all_rows_but_those_in_queues() -> None:
    def change(options):
        return replace(options, settings=replace(options.settings, drops=Drops.WINDOW, batch=4))

    text = NETWORK.replace("selectivity = 0.5", "selectivity = 1.0")
    run, answers = replayed(DropPlanner.EXACT, 0.35, change, text)
    assert 0.1 < answers["count"]["missing"] < 0.9
    for name in ("count", "sum(price)", "avg(price)", "min(price)", "max(price)"):
        assert answers[name]["harmed"] < 0.02
    assert run.outcomes[0].ticks[-1].queued.sum() > 0  # the rows that the harmed results lack
    assert answers["sum(price)"]["total_error"] < 2 * answers["sum(price)"]["total_interval"] < 1
    assert "are missing" in str(run.summary().rows[0][0])


MERGED = (
    NETWORK.replace("stream = { bucket = 0, of = 1 }", "stream = { bucket = 0, of = 2 }").replace(
        'inputs = ["real"]', 'inputs = ["both"]'
    )
    + """
[[input]]
name = "others"
stream = { bucket = 1, of = 2 }

[[operator]]
name = "both"
node = "A"
kind = "union"
inputs = ["real", "others"]
cost = 0.0001
"""
)


@pytest.mark.parametrize("planner", [DropPlanner.NONE, DropPlanner.EXACT, DropPlanner.D_FIT_CUTS])
def test_what_full_queues_drop_leaves_no_wrong_result_where_windows_are_dropped(planner) -> None:
    def change(options):
        settings = replace(options.settings, drops=Drops.WINDOW, batch=4)
        return replace(options, settings=settings, overload=Overload(ShedFactor(0.5), 400, 1.0))

    late = pa.table({name: TRACE[name].slice(0, 1) for name in TRACE.column_names if name != "ts"}).append_column(
        "ts", pa.array([START + 300_000_000], pa.timestamp("us", "UTC"))
    )
    trace = pa.concat_tables([TRACE, late.select(TRACE.column_names)])
    text = MERGED.replace("selectivity = 0.5", "selectivity = 1.0")
    run, answers = replayed(planner, 0.5, change, text, trace)
    assert run.tables()["planners"].records()[0]["queue_drops"] > 0
    assert run.tables()["planners"].records()[0]["withdrawn"] > 0
    assert run.outcomes[0].ticks[-2].queued.sum() == 0
    for name in ("count", "sum(price)", "avg(price)", "min(price)", "max(price)"):
        assert answers[name]["harmed"] == 0
        assert 0.1 < answers[name]["missing"] <= 1
        assert answers[name]["total_interval"] is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"avg(price)"', '"mean(price)"', "there is no function 'mean'"),
        ('"avg(price)"', '"avg"', "avg needs a column"),
        (', group_by = "symbol"', "", "ranks groups; add group_by"),
        ('window = { size = "4s", slide = "2s", group_by = "symbol" }', "", "add window"),
        ('group_by = "symbol"', 'group_by = "symbl"', "'symbl', which the trace does not have, did you mean"),
        ("price", "symbol", "does not hold numbers alone"),
    ],
)
def test_what_cannot_be_computed_is_refused_in_one_sentence(old, new, said) -> None:
    with pytest.raises(BadInput) as refused:
        replayed(DropPlanner.NONE, 1.0, text=NETWORK.replace(old, new))
    assert said in str(refused.value).replace("; did you mean", ", did you mean")
