"""What changes from one plan to another."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies
from adapt.core.counting.tables import MOST_KEYS
from adapt.core.errors import BadInput
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.measures import population
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.difference import plan_difference
from adapt.core.partitioning.schemes.names import Scheme

COUNTS = 10**6 // np.arange(1, 3001)
STREAM = frequencies_of(KeyCounts(pa.array([f"key{at}" for at in range(3000)]), COUNTS, int(COUNTS.sum())))
LISTED = 40
LOSSY: Frequencies = replace(
    STREAM,
    keys=STREAM.keys[:LISTED],
    count_low=COUNTS[:LISTED],
    count_high=COUNTS[:LISTED],
    epsilon=0.01,
    complete_above=float(COUNTS[LISTED]),
)


@pytest.fixture(scope="module", name="plans")
def built_plans():
    """A plan for 5 channels and one for 6."""
    return [build_plan(STREAM, Recipe(Scheme.HYBRID, max_pins=LISTED), channels) for channels in (5, 6)]


@pytest.mark.parametrize("frequencies", [STREAM, LOSSY], ids=["exact", "lossy"])
@pytest.mark.parametrize("letters", ["LLL", "CLL"])
def test_the_bill_is_that_of_evaluating_one_plan_after_the_other(frequencies, letters, plans):
    resources = Resources.parse(letters)
    difference = plan_difference(*plans, frequencies, resources)
    old, new = (plan.partitioner() for plan in plans)
    assert difference.before == evaluate(old, frequencies, resources)
    assert difference.after == evaluate(new, frequencies, resources, old)
    assert difference.migration.keys == difference.after.keys_moved == difference.keys_moved.sum()
    assert difference.migration.state == difference.after.state_moved
    assert difference.state_moved.sum() == pytest.approx(difference.migration.state)
    assert difference.keys_moved.shape == difference.state_moved.shape == (5, 6)


def test_keys_that_move_are_listed_with_the_heaviest_first(plans):
    old, new = (plan.partitioner().channels_of(STREAM.keys) for plan in plans)
    first = np.flatnonzero(old != new)[:MOST_KEYS]
    difference = plan_difference(*plans, STREAM, Resources())
    assert difference.hot_keys.values("key") == [f"key{at}" for at in first]
    assert difference.hot_keys.values("state") == COUNTS[first].tolist()
    assert difference.hot_keys.values("to") == new[first].tolist()
    assert difference.migration.keys == np.count_nonzero(old != new)
    assert difference.as_data()["hot_keys_cut"] == (difference.migration.keys > MOST_KEYS)


def test_stand_ins_are_billed_but_never_named(plans):
    difference = plan_difference(*plans, LOSSY, Resources())
    named = difference.hot_keys.values("key")
    assert set(named) <= set(LOSSY.keys.to_pylist())
    assert len(named) < LISTED < difference.migration.keys
    assert difference.hot_keys.note == f"and {difference.migration.keys - len(named):,} more keys"
    assert difference.as_data()["hot_keys_cut"]
    assert "stand-in" not in str(difference.as_data())


def test_lossy_counts_bill_about_what_exact_counts_do(plans):
    lossy, exact = (plan_difference(*plans, counts, Resources()) for counts in (LOSSY, STREAM))
    # Of 2960 light keys each moves by itself, one in 6; two such draws differ by less than 4 * sqrt(2 * 2960 * 5 / 36).
    assert abs(lossy.migration.keys - exact.migration.keys) < 115
    assert lossy.migration.relative == pytest.approx(exact.migration.relative, rel=0.05)


def test_where_a_stand_in_is_several_keys_all_of_them_move(monkeypatch, plans):
    monkeypatch.setattr(population, "MOST_STAND_INS", 1000)
    lumped = plan_difference(*plans, LOSSY, Resources())
    monkeypatch.undo()
    single = plan_difference(*plans, LOSSY, Resources())
    assert lumped.migration.keys == pytest.approx(single.migration.keys, rel=0.15)
    assert lumped.keys_moved.sum() == pytest.approx(lumped.migration.keys, abs=15)
    assert lumped.keys_moved.dtype == np.int64


def test_moves_are_by_channel_with_most_state_first(plans):
    difference = plan_difference(*plans, LOSSY, Resources())
    moves = difference.moves()
    assert sum(moves.values("keys")) == difference.migration.keys
    assert moves.values("state") == sorted(moves.values("state"), reverse=True)
    assert all(was != to for was, to in zip(moves.values("from"), moves.values("to"), strict=True))


def test_plans_for_other_keys_are_refused(plans):
    numbers = frequencies_of(KeyCounts(pa.array([1, 2]), np.array([2, 1]), 3))
    with pytest.raises(BadInput, match="the first plan is for string keys, but the count has int64 keys"):
        plan_difference(*plans, numbers, Resources())
