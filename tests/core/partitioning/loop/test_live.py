"""The loop: exact loads, adoptions that triggers explain, and nothing decided by rows to come."""

import os
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.counting.sliding import SlidingWindow
from adapt.core.errors import BadInput
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.loop.live import run_loop
from adapt.core.partitioning.loop.shadows import Shadows, Spent
from adapt.core.partitioning.loop.splitter import Splitter, unpinned
from adapt.core.partitioning.loop.triggers import EveryPeriod, Never, OnViolation, Seen, WhenWorth
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.repartition.channel_schedule import Schedule
from adapt.core.stream import KeyType
from adapt.core.units.row_or_time_span import Length

SECOND = 1_000_000
STEP = 10 * SECOND
TRIGGERS = {
    "never": Never,
    "period": lambda: EveryPeriod(4 * STEP),
    "violation": lambda: OnViolation(STEP),
    "worth": lambda: WhenWorth(4 * STEP, 0.1),
}


def stream(rows=12_000, seed=0, keys=200, drift=3000, seconds=600):
    """A Zipf stream whose hot keys change every `drift` rows."""
    random = np.random.default_rng(seed)
    shares = 1 / np.arange(1, keys + 1) ** 1.2
    drawn = random.choice(keys, rows, p=shares / shares.sum())
    numbers = (drawn + (np.arange(rows) // drift) * 37) % keys
    times = np.sort(random.integers(0, seconds * SECOND, rows))
    return pa.record_batch(
        {"ts": pa.array(times, pa.timestamp("us")), "key": pa.array([f"k{number}" for number in numbers.tolist()])}
    )


def ran(batches, trigger, schedule=None, tolerance="1.2"):
    schedule = schedule or Schedule.fixed(4)
    resources = Resources.parse("LLL", tolerance, 0.1)
    window = SlidingWindow(Length(60 * SECOND))
    splitter = Splitter(schedule.channels_at(0), Recipe(resources=resources, max_pins=20), window=window, epsilon=2e-3)
    return list(run_loop(batches, splitter, trigger, schedule, STEP, resources=resources))


def decisions(steps):
    return [(step.at_us, step.decided, step.adopted and step.plan.content_hash()) for step in steps]


@pytest.mark.parametrize("name", TRIGGERS)
def test_loads_are_exact_by_the_plan_in_force(name):
    rows = stream()
    steps = ran([rows], TRIGGERS[name]())
    times = rows.column("ts").cast(pa.int64()).to_numpy()
    bounds = [*(step.at_us for step in steps), np.inf]
    for step, end in zip(steps, bounds[1:], strict=True):
        inside = pa.array((times >= step.at_us) & (times < end))
        placed = step.plan.partitioner().channels_of(rows.column("key").filter(inside))
        assert (step.loads == np.bincount(placed, minlength=4)).all()
        assert step.rows == len(placed)
    assert sum(step.rows for step in steps) == rows.num_rows


@given(st.sampled_from(sorted(TRIGGERS)), st.integers(0, 1000), st.integers(1, 12_000), st.booleans())
@settings(max_examples=200 if os.environ.get("ADAPT_SOAK") else 10, deadline=None)
def test_a_stream_cut_anywhere_has_the_same_decisions_up_to_there(name, seed, cut, rescales):
    schedule = Schedule.parse("0s:4,300s:6") if rescales else None
    rows = stream(seed=seed)
    whole = decisions(ran([rows], TRIGGERS[name](), schedule))
    short = decisions(ran([rows.slice(0, cut)], TRIGGERS[name](), schedule))
    assert short == whole[: len(short)]


def test_batches_decide_nothing():
    rows = stream()
    cut = [rows.slice(at, 700) for at in range(0, rows.num_rows, 700)]
    assert decisions(ran(cut, WhenWorth(4 * STEP, 0.1))) == decisions(ran([rows], WhenWorth(4 * STEP, 0.1)))


def test_within_tolerance_nothing_moves_on_violation():
    steps = ran([stream(drift=10**9)], OnViolation(0), tolerance="20")
    assert not any(step.adopted for step in steps)
    assert steps[1].decided.why == "the window is not full yet"
    assert "within tolerance: state load" in steps[-1].decided.why


def test_a_violation_is_told_and_cured():
    steps = ran([stream(drift=10**9)], OnViolation(STEP), tolerance="1.5")
    first = next(at for at, step in enumerate(steps) if step.adopted)
    assert "beyond tolerance, but not for 10\u202fs yet" in steps[first - 1].decided.why
    assert steps[first].decided.why.startswith("beyond tolerance: state load")
    before, after = sum(step.loads for step in steps[:first]), sum(step.loads for step in steps[first:])
    assert after.max() / after.mean() < before.max() / before.mean()


def test_every_period_and_never():
    steps = ran([stream()], EveryPeriod(4 * STEP))
    assert {at for at, step in enumerate(steps) if step.adopted} == set(range(4, 60, 4))
    assert not any(step.adopted for step in ran([stream()], Never()))


def test_what_does_not_pay_is_not_adopted():
    """Moving state costs a thousand times the work on it: nothing can pay."""
    assert not any(step.adopted for step in ran([stream()], WhenWorth(4 * STEP, 1000.0)))
    assert not any(step.adopted for step in ran([stream()], WhenWorth(4 * STEP, 0.0, pause_cost=1e6)))
    free = ran([stream(drift=10**9)], WhenWorth(4 * STEP, 0.0))
    assert any(step.adopted for step in free)
    assert "saves" in next(step for step in free if step.adopted).decided.why


def test_accounts_are_what_the_other_triggers_take():
    seen = []

    class Watching(WhenWorth):
        def decide(self, now):
            seen.append(now.shadows)
            return super().decide(now)

    steps = {name: ran([stream()], TRIGGERS[name]()) for name in ("never", "period")}
    own = ran([stream()], Watching(4 * STEP, 0.1))
    shadows = seen[-1]  # of all steps by now
    taken = zip((own, *steps.values()), (shadows.in_force, shadows.never, shadows.periodic), strict=True)
    for steps_taken, spent in taken:
        adopted = [step.adopted for step in steps_taken if step.adopted]
        assert spent.busiest == sum(step.loads.max() for step in steps_taken)
        assert spent.adopted == len(adopted)
        assert spent.moved_state == pytest.approx(sum(each.moved_state for each in adopted))


def test_a_splitter_that_is_behind_follows_the_better():
    """Migration is dear, and was in vain: nothing moves until it is made up for."""
    shadows = Shadows(unpinned(Recipe(), 2, KeyType.STRING), 4 * STEP, 0)
    worth, seen = WhenWorth(4 * STEP, 1.0), Seen(0, True, list, (), 0, shadows, lambda: None)
    shadows.in_force, shadows.never, shadows.periodic = Spent(100, 10), Spent(100), Spent(105, 2)
    assert worth.decide(seen).why == "10.0% behind doing nothing"
    moving = SimpleNamespace(moved_state=5.0)
    shadows.periodic = Spent(90)
    behind = worth.decide(replace(seen, proposal=lambda: moving))
    assert (behind.fires, behind.why) == (True, "behind a rebuild every 40\u202fs: lost 20 against a cost of 5")
    shadows.at_adoption = Spent(100, 10), Spent(94)
    assert not worth.decide(replace(seen, proposal=lambda: moving)).fires  # it lost 4 since the last adoption


def test_a_change_of_channels_is_always_adopted():
    steps = ran([stream()], Never(), Schedule.parse("0s:4,300s:6"))
    (changed,) = [step for step in steps if step.adopted]
    assert changed.decided.why == "channels change from 4 to 6"
    assert len(changed.loads) == 6


def test_rows_out_of_order_are_refused():
    rows = stream(1000)
    with pytest.raises(BadInput, match="rows must be in time order for a live replay"):
        ran([rows.slice(500), rows.slice(0, 500)], Never())
    assert ran([], Never()) == []
