"""Plans that split hot keys: parts on different channels, within the limit, and measured as they run."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.engines.names import Engine
from adapt.core.engines.registry import definition_of
from adapt.core.engines.rekey.build import rekey_table
from adapt.core.errors import BadInput
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.measures.tally import tallies
from adapt.core.partitioning.plans.plan import Plan, plan_from_data, plan_to_data
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.partitioning.split_plan import split_plan
from adapt.core.stream import KeyType
from tests.core.engines.rekey.references import CHANNELS_OF

KEYS = [f"user-{at}" for at in range(2000)]
COUNTS = np.array([int(100_000 / (at + 1) ** 1.3) + 1 for at in range(2000)])
RECIPE = Recipe(base=Engine.KAFKA)


def counted():
    return frequencies_of(KeyCounts(pa.array(KEYS), COUNTS, int(COUNTS.sum())))


@pytest.mark.parametrize("channels", [4, 16, 100])
def test_the_limit_is_kept_and_parts_are_apart(channels):
    found = split_plan(counted(), RECIPE, channels, 1.1)
    assert 1 <= found.metrics.imbalance <= 1.1
    assert found.plan.splits
    assert all(len({*places}) == len(places) for places in found.plan.splits.values())
    assert found.merge.merge_tuples == sum(len(places) - 1 for places in found.plan.splits.values())
    assert plan_from_data(plan_to_data(found.plan)) == found.plan
    assert len(found.plan.explicit) < 100
    mean = COUNTS.sum() / channels
    assert {*found.plan.splits} == {key for key, count in zip(KEYS, COUNTS, strict=True) if count > mean}


@pytest.mark.parametrize("channels", [4, 16])
def test_loads_are_those_of_the_rekeyed_stream(channels):
    """Each record of a split key to its next replacement, placed by a plain form of Kafka's hash."""
    found = split_plan(counted(), RECIPE, channels, 1.1)
    new, place = rekey_table(found.plan).as_mapping(), CHANNELS_OF[Engine.KAFKA]
    loads = np.zeros(channels)
    for key, count in zip(KEYS, COUNTS.tolist(), strict=True):
        used = new.get(key, (key,))
        for each in used:
            loads[place(each, channels, None)] += count / len(used)
    assert found.metrics.imbalance == pytest.approx(loads.max() / loads.mean())
    (tally,) = tallies([found.plan.dealer()], pa.array(KEYS), COUNTS, Resources())
    assert tally.channel_loads(Resources())[2] == pytest.approx(loads)
    messages = found.plan.dealer().merge_messages()
    home = [place(key, channels, None) for key, places in found.plan.splits.items() for _ in places]
    assert messages.tolist() == np.bincount(home, minlength=channels).tolist()


def test_state_moves_from_the_channels_that_a_key_leaves():
    place = CHANNELS_OF[Engine.KAFKA]
    today = definition_of(Engine.KAFKA).placement(4, None)
    first = split_plan(counted(), RECIPE, 4, 1.1, before=today)
    second = split_plan(counted(), RECIPE, 6, 1.1, before=first.plan.dealer())
    held = {key: {place(key, 4, None)} for key in KEYS}
    for found in (first, second):
        plan = found.plan
        placed = {
            key: {*plan.splits.get(key, (plan.explicit.get(key, place(key, plan.channels, None)),))} for key in KEYS
        }
        left = {key: len(held[key] - placed[key]) / len(held[key]) for key in KEYS}
        state = sum(left[key] * count for key, count in zip(KEYS, COUNTS.tolist(), strict=True))
        assert found.metrics.state_moved == pytest.approx(state)
        assert found.metrics.keys_moved == sum(share > 0 for share in left.values())
        assert found.metrics.m == pytest.approx(state / (COUNTS.sum() / plan.channels))
        held = placed


def test_a_split_key_has_no_channel_of_its_own():
    plan = split_plan(counted(), RECIPE, 16, 1.1).plan
    with pytest.raises(BadInput, match="--to rekey"):
        plan.partitioner()


@pytest.mark.parametrize(
    ("splits", "said"),
    [
        ({"a": (1,)}, "two or more"),
        ({"a": (1, 1)}, "two or more"),
        ({"a": (1, 9)}, "worker 9"),
        ({None: (0, 1)}, "None"),
    ],
)
def test_a_split_needs_different_channels_that_exist(splits, said):
    with pytest.raises(BadInput, match=said):
        Plan(Scheme.HYBRID, 4, KeyType.STRING, splits=splits)


def test_a_key_is_pinned_or_split():
    with pytest.raises(BadInput, match="both pinned and split"):
        Plan(Scheme.HYBRID, 4, KeyType.STRING, explicit={"a": 1}, splits={"a": (0, 1)})
