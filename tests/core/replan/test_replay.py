"""A live replay: units move as plans say, rows go where they say, and what moves is the state of the window."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from adapt.core.counting.sliding import SlidingWindow
from adapt.core.engines.names import Engine
from adapt.core.errors import UsageError
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.loop.triggers import EveryPeriod
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.problem.tracking import epsilon_for
from adapt.core.partitioning.repartition.channel_schedule import Schedule
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.replan.decisions import EVERYTHING, Loop, ever_pinned
from adapt.core.replan.names import TriggerName
from adapt.core.replan.replay import Replan, replay_replan
from adapt.core.replan.units import Units
from adapt.core.stage.conditions.settings import Costs, StageSettings, even_groups
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.core.stream import KeyType
from adapt.core.units.row_or_time_span import Length
from tests.core.partitioning.loop.test_live import SECOND, STEP, stream

WINDOW = 60 * SECOND


def replayed(rows, triggers=tuple(TriggerName), schedule="4", base=Engine.SPARK):
    schedule = Schedule.parse(schedule)
    recipe = Recipe(resources=Resources.parse("LLL", "1.2"), max_pins=20, base=base)
    loop = Loop(recipe, schedule, STEP, SlidingWindow(Length(WINDOW)))
    replan = Replan(loop, triggers, 4 * STEP)
    placed = MiniPartitions(replan.pool, 4, partitioner=loop.static().plans[0][1].partitioner())
    partitions = 4 * replan.pool
    settings = StageSettings(
        replan.pool, placed.owners, even_groups(partitions, partitions), costs=Costs(service_s=1e-4, service_sd_s=0.0)
    )
    return replay_replan(rows, settings, Reading(placed, speedup=10.0), replan)


@pytest.fixture(scope="module")
def drifting():
    rows = stream(seconds=200)
    return rows, replayed(lambda columns: [rows.select(columns)])


@pytest.mark.parametrize("base", [Scheme.CONSISTENT, Scheme.UNIFORM, Engine.SPARK, Engine.FLINK, Engine.KAFKA])
def test_units_are_where_each_plan_places_their_keys(base):
    keys = pa.array([None, *(f"k{number}" for number in range(3_000))])
    plans = [
        Plan(Scheme.HYBRID, channels, KeyType.STRING, explicit={f"k{at}": at % channels for at in pins}, base=base)
        for channels, pins in ((3, [5, 7]), (5, [7, 9]), (3, []), (4, [0, 1, 2]))
    ]
    units = Units.from_plans(plans, ever_pinned(plans), 5)
    at = units.partitions.partitions_of(keys)
    for plan in plans:
        np.testing.assert_array_equal(units.owners(plan)[at], plan.partitioner().channels_of(keys))


def test_too_many_units_are_refused():
    plans = [Plan(Scheme.UNIFORM, channels, KeyType.STRING) for channels in (997, 998, 999)]
    with pytest.raises(UsageError, match="997, 998, 999 divide the keys into 994,010,994 units"):
        Units.from_plans(plans, ever_pinned(plans), 999)


def test_every_row_is_processed_where_the_plan_in_force_says(drifting):
    rows, run = drifting
    for one in run.outcomes:
        assert one.outcome.processed == len(rows)
        by_worker = sum(interval.by_worker for interval in one.outcome.simulated.intervals)
        if one.steps:  # no row waits at a decision, at a tenth of what the workers could do
            np.testing.assert_allclose(by_worker, sum(step.loads for step in one.steps), atol=3)
    named = {one.case: one for one in run.outcomes}
    assert list(named) == ["static", "period", "violation", "worth", "flux", "in-sample"]
    assert named["static"].migrations == named["in-sample"].migrations == 0
    assert named["period"].adopted == named["period"].migrations > 2
    assert named["violation"].busiest_s < 0.97 * named["static"].busiest_s


def test_the_state_that_moves_is_that_of_the_window(drifting):
    rows, run = drifting
    times = rows.column("ts").cast(pa.int64()).to_numpy()
    (period,) = [one for one in run.outcomes if one.case == "period"]
    adopted = [step for step in period.steps if step.adopted is not None]
    for step, done in zip(adopted, period.outcome.simulated.steps, strict=True):
        moved = sum(move.state_bytes for move in done.moves) / 80
        keys, *_ = step.adopted.moved
        since = step.at_us - WINDOW
        inside = pa.array((times >= since) & (times < step.at_us))
        recent = rows.column("key").filter(inside)
        expected = pc.sum(pc.is_in(recent, keys)).as_py() or 0
        assert moved == pytest.approx(expected, abs=0.1 * len(recent) + 2)


def test_workers_follow_the_schedule_and_all_rows_are_processed():
    rows = stream(rows=4_000, seconds=200)
    schedule = "0s:3,60s:5,130s:2"
    run = replayed(lambda columns: [rows.select(columns)], (TriggerName.VIOLATION,), schedule, Scheme.CONSISTENT)
    assert [one.case for one in run.outcomes] == ["static", "violation", "in-sample"]  # Flux cannot scale
    for one in run.outcomes:
        assert one.outcome.processed == len(rows)
        assert [workers for _, workers in one.outcome.simulated.workers] == [3, 5, 2]
    (violation,) = [one for one in run.outcomes if one.steps]
    assert violation.rescales == 2
    changes = [step.at_us for before, step in pairwise(violation.steps) if before.plan.channels != step.plan.channels]
    assert [round((at - violation.steps[0].at_us) / SECOND) for at in changes] == [60, 130]


def test_a_derived_window_and_what_follows_from_it_depend_on_earlier_rows_alone():
    """A stream cut after its first step has the same window and the same decisions; the hot key changes at 100 s."""
    rows = stream(seconds=200)
    times = rows.column("ts").cast(pa.int64()).to_numpy()
    recipe = Recipe(resources=Resources.parse("LLL", "1.2"), max_pins=20)
    loop = Loop(recipe, Schedule.parse("4"), STEP, EVERYTHING)
    first = rows.column("key").slice(0, int(np.searchsorted(times, times[0] + STEP)))
    found = []
    for end in (len(times), int(np.searchsorted(times, times[0] + 150 * SECOND)), len(first)):
        batches = [rows.slice(at, min(777, end - at)) for at in range(0, end, 777)]
        read = lambda columns, batches=batches: (batch.select(columns) for batch in batches)  # noqa: E731
        window = loop.derived_window(read)
        decided = replace(loop, window=window).decided("period", EveryPeriod(4 * STEP), read)
        found.append((window, [(step.at_us, step.decided, step.plan.content_hash()) for step in decided.steps]))
    (window, steps), *cut = found
    assert window == SlidingWindow.derived(len(first.unique()), epsilon_for(recipe.resources, 4, 1_000_000, 20))
    assert len({plan for _, _, plan in steps}) > 2
    assert all((window, steps[: len(before)]) == (same, before) for same, before in cut)


def test_folded_decisions_leave_nothing_out(drifting):
    from adapt.core.replan.tables import decisions_table, folded

    _, run = drifting
    every, short = decisions_table(run.outcomes).records(), folded(run.outcomes).records()
    assert sum(row["decisions"] for row in short) == len(every) > len(short)
    assert sum(row["rows"] for row in short) == sum(row["rows"] for row in every)
