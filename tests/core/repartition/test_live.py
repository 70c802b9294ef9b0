"""A live replay: units move as plans say, rows go where they say, and what moves is the state of the decisions."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from adapt.core.counting.sliding import SlidingWindow
from adapt.core.engines.names import Engine
from adapt.core.errors import UsageError
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.problem.tracking import epsilon_for
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.partitioning.schemes.uniform import UniformPartitioner
from adapt.core.repartition.decisions import Replan, Schedule, decided
from adapt.core.repartition.names import TriggerName
from adapt.core.repartition.replay import Live, Units, replay_repartition
from adapt.core.stage.conditions.settings import Costs, StageSettings, even_groups
from adapt.core.stage.input.keyed_rows import Reading
from adapt.core.stage.input.mini_partitions import MiniPartitions
from adapt.core.stream import KeyType, Weight
from adapt.core.units.row_or_time_span import Length
from tests.core.repartition.test_triggers import PERIOD, SECOND, STEP, stream

WINDOW = 60 * SECOND


def replayed(
    rows, trigger=TriggerName.PERIOD, schedule="4", base=Engine.SPARK, resources="LLL", service_s=1e-4, **others
):
    recipe = Recipe(resources=Resources.parse(resources, "1.2"), max_pins=20, base=base)
    given = {"step": Length(STEP), "window": Length(WINDOW)} | others
    replan = Replan(recipe, Schedule.parse(schedule), PERIOD, trigger, **given)
    placed = MiniPartitions(replan.pool, 4, partitioner=replan.unpinned(replan.schedule.channels_at(0)))
    partitions = 4 * replan.pool
    settings = StageSettings(
        replan.pool,
        placed.owners,
        even_groups(partitions, partitions),
        costs=Costs(service_s=service_s, service_sd_s=0.0),
    )
    return replay_repartition(rows, replan, Live(settings, Reading(placed, speedup=10.0)))


def by_case(run):
    return {one.case: one for one in run.live}


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
    plans = [plan.partitioner() for plan in plans]
    units = Units.from_plans(plans, pa.string(), 5)
    at = units.partitions.partitions_of(keys)
    for plan in plans:
        np.testing.assert_array_equal(units.owners(plan)[at], plan.channels_of(keys))


def test_too_many_units_are_refused():
    plans = [UniformPartitioner(channels) for channels in (997, 998, 999)]
    with pytest.raises(UsageError, match="997, 998, 999 divide the keys into 994,010,994 units"):
        Units.from_plans(plans, pa.string(), 999)


def test_every_row_is_processed_where_the_plan_in_force_says(drifting):
    rows, run = drifting
    assert list(by_case(run)) == ["static", "period", "flux", "in-sample"]
    for one in run.live:
        assert one.outcome.processed == len(rows)
    period = by_case(run)["period"]
    by_worker = sum(interval.by_worker for interval in period.outcome.simulated.intervals)
    # no row waits at a decision, at a tenth of what the workers could do
    np.testing.assert_allclose(by_worker, sum(outcome.loads[2] for outcome in run.outcomes), atol=3)
    assert by_case(run)["static"].migrations == by_case(run)["in-sample"].migrations == 0
    assert period.migrations == run.summary().values("rebuilds")[0] > 2
    decided = replay_repartition(
        lambda columns: [rows.select(columns)],
        Replan(
            Recipe(max_pins=20, base=Engine.SPARK, resources=Resources.parse("LLL", "1.2")),
            *(Schedule.fixed(4), PERIOD),
            step=Length(STEP),
            window=Length(WINDOW),
        ),
    )
    assert decided.tables()["periods"] == run.tables()["periods"]


@pytest.mark.parametrize(
    ("loads", "weight", "column"), [("LLL", "count", None), ("CLL", "count", None), ("LLL", "bytes", "bytes")]
)
def test_the_state_that_moves_is_that_of_the_decisions(loads, weight, column):
    """As many tuples of 80 bytes as rows, keys or bytes in the window, which plain Python counts."""
    rows = stream(seconds=200)
    sizes = pa.array(np.arange(len(rows)) % 7 * 80)
    rows = rows.append_column("bytes", sizes)
    times, keys = rows.column("ts").cast(pa.int64()).to_numpy(), rows.column("key")
    others = {"weight": Weight(weight), "weight_column": column}
    run = replayed(lambda columns: [rows.select(columns)], resources=loads, **others)
    steps = by_case(run)["period"].outcome.simulated.steps
    changes = [outcome for outcome in run.outcomes if outcome.adopts]
    unit = 1 if column else 80
    assert [sum(move.state_bytes for move in step.moves) for step in steps] == [
        outcome.metrics.state_moved * unit for outcome in changes
    ]
    assert len(changes) > 2
    for outcome in changes:
        inside = pa.array((times >= outcome.start_us - WINDOW) & (times < outcome.start_us))
        recent = keys.filter(inside)
        most = {"CLL": len(recent.unique())}.get(
            loads, len(recent) if column is None else pc.sum(sizes.filter(inside)).as_py()
        )
        assert 0 < outcome.metrics.state_moved < most


def test_costs_weigh_decisions_and_rows_are_the_state():
    rows = stream(seconds=200)
    costs = pa.array(np.full(len(rows), 2.0))
    rows = rows.append_column("cost_us", costs)

    def read(columns):
        return [rows.select(columns)]

    run = replayed(read, weight=Weight.COST, weight_column="cost_us")
    by_count = replayed(read)
    moved = [by_case(each)["period"].outcome.moved_bytes for each in (run, by_count)]
    assert moved[0] == moved[1] > 0
    state = [each.summary().values("all_state_moved")[0] for each in (run, by_count)]
    assert state[0] == 2 * state[1]


def test_workers_follow_the_schedule_and_all_rows_are_processed():
    rows = stream(rows=4_000, seconds=200)
    schedule = "0s:3,60s:5,130s:2"
    run = replayed(lambda columns: [rows.select(columns)], TriggerName.VIOLATION, schedule, Scheme.CONSISTENT)
    assert list(by_case(run)) == ["static", "violation", "in-sample"]  # Flux cannot scale
    for one in run.live:
        assert one.outcome.processed == len(rows)
        assert [workers for _, workers in one.outcome.simulated.workers] == [3, 5, 2]
    assert run.summary().values("rescales") == [2]
    first = run.outcomes[0].start_us
    changes = [after.start_us - first for before, after in pairwise(run.outcomes) if before.channels != after.channels]
    assert [round(at / SECOND) for at in changes] == [60, 130]


def test_a_derived_window_depends_on_the_first_step_alone():
    """A stream cut after its first step has the same window and the same decisions; the hot key changes at 100 s."""
    rows = stream(seconds=200)
    times = rows.column("ts").cast(pa.int64()).to_numpy()
    replan = Replan(Recipe(max_pins=20), Schedule.fixed(4), PERIOD, step=Length(STEP), auto_window=True)
    first = rows.column("key").slice(0, int(np.searchsorted(times, times[0] + STEP)))
    found = []
    for end in (len(times), int(np.searchsorted(times, times[0] + 150 * SECOND)), len(first)):
        steps = decided(replan, lambda columns, end=end: [rows.slice(0, end).select(columns)])
        found.append([(step.at_us, step.outcome.why, step.outcome.metrics.state_moved) for step in steps])
    whole, *cut = found
    assert len({state for *_, state in whole if state}) > 2
    assert all(whole[: len(before)] == before for before in cut)
    distinct = len(first.unique())
    expected = SlidingWindow.derived(distinct, epsilon_for(Resources(), 4, distinct, 20)).length
    assert replan.window_of(next(replan.steps(lambda columns: [rows.select(columns)]))) == expected


def test_work_of_more_steps_than_a_replay_can_have_is_refused():
    rows = stream(seconds=20)
    with pytest.raises(UsageError, match=r"takes [\d,]+ steps of .*, and at most [\d,]+ are possible live"):
        replayed(lambda columns: [rows.select(columns)], service_s=1e6)


def test_a_period_in_rows_is_for_decisions_alone():
    replan = Replan(Recipe(), Schedule.fixed(4), Length(1000, True))
    with pytest.raises(UsageError, match=r"a live replay needs a period in time, such as 6h \(got 1000rows\)"):
        replay_repartition(lambda _: [], replan, Live(None, None))
