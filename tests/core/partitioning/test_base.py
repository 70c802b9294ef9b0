"""Plans over an engine's own placement: what is not pinned stays where the engine has it."""

from itertools import cycle, product

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, count_keys, frequencies_of
from adapt.core.engines.names import BASES, Engine
from adapt.core.engines.registry import key_groups_of
from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.compare import compare_schemes
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.difference import plan_difference
from adapt.core.partitioning.plans.plan import Plan
from adapt.core.partitioning.schemes.names import Construction, Scheme
from adapt.core.stream import COLUMN_TYPES, KeyType
from tests.tiers import SOAK, examples

COUNTS = 10**6 // np.arange(1, 301)
STREAM = frequencies_of(KeyCounts(pa.array([f"k{number}" for number in range(300)]), COUNTS, int(COUNTS.sum())))
TYPES = {
    KeyType.STRING: (st.text(max_size=9), pa.string()),
    KeyType.INT64: (st.integers(-(2**63), 2**63 - 1), pa.int64()),
    KeyType.BINARY: (st.binary(max_size=9), pa.binary()),
}
every_base = pytest.mark.parametrize("base", BASES)
STARTS = [*product(BASES, Construction)] if SOAK else [*zip(BASES, cycle(Construction), strict=False)]
"""Every base, and every construction several times."""


@st.composite
def pinned(draw, base):
    """A hybrid plan over a base, the plan of the base alone, and a column with pinned, other and null keys."""
    key_type = draw(st.sampled_from(COLUMN_TYPES))
    keys, kind = TYPES[key_type]
    channels = draw(st.integers(1, 40))
    explicit = draw(st.dictionaries(st.none() | keys, st.integers(0, channels - 1), max_size=6))
    groups = draw(st.none() | st.integers(channels, 500)) if key_groups_of(base) else None
    made = {"hash": draw(st.sampled_from(HashName)), "replicas": 20, "max_parallelism": groups}
    column = pa.array(draw(st.lists(st.sampled_from([None, *explicit]) | keys, max_size=20)), kind)
    plan = Plan(Scheme.HYBRID, channels, key_type, explicit=explicit, base=base, **made)
    return plan, Plan(base, channels, key_type, **made), column


@examples(80)
@given(st.sampled_from(BASES), st.data())
def test_pinned_keys_go_where_they_are_pinned_and_all_others_as_the_base_has_them(base, data):
    plan, alone, keys = data.draw(pinned(base))
    theirs = alone.partitioner().channels_of(keys).tolist()
    expected = [plan.explicit.get(key, channel) for key, channel in zip(keys.to_pylist(), theirs, strict=True)]
    built = plan.partitioner()
    assert built.channels_of(keys).tolist() == expected
    assert [built.channel_of(key) for key in keys.to_pylist()] == expected


@examples(80)
@given(st.sampled_from(BASES), st.data())
def test_the_keys_that_move_are_the_pinned_ones_with_another_channel(base, data):
    plan, alone, keys = data.draw(pinned(base))
    counted = frequencies_of(count_keys(pa.concat_arrays([keys, plan.explicit.column.cast(keys.type)])))
    moves = plan_difference(alone, plan, counted, Resources())
    home = alone.partitioner().channels_of(plan.explicit.column)
    assert moves.migration.keys == np.count_nonzero(home != plan.explicit.channels)
    back = plan_difference(plan, alone, counted, Resources())
    assert back.migration.keys == moves.migration.keys


@pytest.mark.parametrize(("base", "construction"), STARTS)
def test_every_construction_starts_from_the_base(base, construction):
    today = build_plan(STREAM, Recipe(base), 7)
    plan = build_plan(STREAM, Recipe(Scheme.HYBRID, construction, max_pins=40, base=base), 7, previous=today)
    assert (plan.base, plan.max_parallelism) == (base, today.max_parallelism)
    was, now = (each.partitioner().channels_of(STREAM.keys) for each in (today, plan))
    assert np.count_nonzero(was != now) == plan.metrics["keys_moved"] <= 40
    assert {STREAM.keys[int(row)].as_py() for row in np.flatnonzero(was != now)} <= set(plan.explicit)
    assert plan.metrics["imbalance"] <= today.metrics["imbalance"]


@every_base
def test_without_a_current_plan_the_base_is_the_current_one(base):
    recipe = Recipe(base=base)
    alone, after = (
        build_plan(STREAM, recipe, 7),
        build_plan(STREAM, recipe, 7, previous=build_plan(STREAM, Recipe(base), 7)),
    )
    assert alone.explicit == after.explicit


@every_base
def test_a_rescale_keeps_the_base_and_its_key_groups(base):
    first = build_plan(STREAM, Recipe(base=base), 7)
    last = build_plan(STREAM, Recipe(base=base), 100, previous=first)
    assert (last.base, last.max_parallelism) == (base, first.max_parallelism)
    if SOAK or base is Engine.FLINK:
        plans = compare_schemes(STREAM, [7, 100], Recipe(base=base), constructions=[Construction.LEVEL]).plans
        for plan in plans[-2:]:  # hybrid and split-hot
            assert (plan.base, plan.channels, plan.max_parallelism) == (base, 100, first.max_parallelism)
    home = Plan(base, 100, KeyType.STRING, max_parallelism=first.max_parallelism).partitioner()
    free = [key for key in STREAM.keys.to_pylist() if key not in last.explicit]
    assert [last.partitioner().channel_of(key) for key in free] == [home.channel_of(key) for key in free]


def test_a_base_that_pins_keys_itself_is_refused():
    with pytest.raises(UsageError, match="base bounded pins keys itself; use one of uniform, consistent"):
        build_plan(STREAM, Recipe(base=Scheme.BOUNDED), 3)


def test_another_hash_is_refused_only_where_both_plans_hash_with_ours():
    over_spark = build_plan(STREAM, Recipe(base=Engine.SPARK), 3)
    other = Recipe(hash=HashName.XXHASH64)
    assert build_plan(STREAM, other, 3, previous=over_spark).hash is HashName.XXHASH64
    with pytest.raises(BadInput, match="the current plan hashes with murmur3"):
        build_plan(STREAM, other, 3, previous=build_plan(STREAM, Recipe(base=Scheme.UNIFORM), 3))
