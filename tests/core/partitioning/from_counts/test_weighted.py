from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies, MeasuredColumn
from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.build import Recipe, build_partitioner, build_plan
from adapt.core.partitioning.constructions.level import level
from adapt.core.partitioning.from_counts.weighted import weighted
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.plan import plan_from_data, plan_to_data
from adapt.core.partitioning.problem.constraints import Constraints
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.partitioning.schemes.uniform import UniformPartitioner

ROOM = 0.2 / 2.2
"""How far from one level the loads of two channels may lie, as a part of it, where their ratio may be 1.2."""


def counted(counts):
    counts = np.sort(np.array(counts, np.int64))[::-1]
    return frequencies_of(KeyCounts(pa.array([f"key-{number}" for number in range(len(counts))]), counts, counts.sum()))


ZIPF = counted(10**6 // np.arange(1, 30_001))
HEAVIEST = ZIPF.keys[:40]


def loads_of(partitioner, counted):
    placed = partitioner.channels_of(counted.keys)
    return np.bincount(placed, counted.count_low, partitioner.channels)


def outside(partitioner, counted, tracked, distance):
    """How much some channel's load lies above or below the water level, past a distance; below nothing, none does."""
    loads = loads_of(partitioner, counted)
    held = np.bincount(partitioner.channels_of(tracked), counted.intervals(tracked)[0], partitioner.channels)
    low, high = 0.0, loads.sum()
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if np.maximum(held, middle).sum() < loads.sum() else (low, middle)
    least = np.maximum(high * (1 - distance), held)
    return max((least - loads).max(), (loads - np.maximum(high, held) * (1 + distance)).max())


@st.composite
def streams(draw):
    stream = counted(draw(st.lists(st.integers(1, 1000), min_size=1, max_size=150)))
    return stream, stream.keys[: draw(st.integers(0, len(stream.keys)))]


@given(streams(), st.integers(2, 8), st.integers(1, 300), st.sampled_from(["LLL", "QQQ", "LQL"]))
def test_tracked_keys_are_mapped_and_replicas_stay_within_bounds(stream, channels, replicas, letters):
    frequencies, tracked = stream
    built = weighted(frequencies, tracked, ConsistentHash(channels, replicas), Resources.parse(letters))
    assert set(built.explicit) == set(tracked.to_pylist())
    assert built.channels == channels
    assert built.base.replica_counts.min() >= 1
    assert built.base.replica_counts.max() <= 2 * replicas
    again = weighted(frequencies, tracked, ConsistentHash(channels, replicas), Resources.parse(letters))
    assert again.base == built.base
    assert dict(again.explicit) == dict(built.explicit)


@given(streams(), st.integers(2, 8), st.integers(1, 300))
def test_no_channel_is_farther_from_the_level_than_over_equal_replicas(stream, channels, replicas):
    """Nothing is in force, so the distance is an eighth of the tolerated one."""
    frequencies, tracked = stream
    ring = ConsistentHash(channels, replicas)
    built = weighted(frequencies, tracked, ring, Resources())
    over_equal = HybridPartitioner(built.explicit, ring)
    farthest = [outside(each, frequencies, tracked, ROOM / 8) for each in (built, over_equal)]
    assert farthest[0] <= max(farthest[1], 0.0) + 1e-9 * frequencies.total


@given(streams(), st.integers(1, 8), st.integers(1, 8), st.integers(1, 300))
def test_tracked_keys_lie_as_they_are_levelled_over_the_ring_in_force(stream, before, after, replicas):
    frequencies, tracked = stream
    current = weighted(frequencies, tracked, ConsistentHash(before, replicas), Resources())
    built = weighted(frequencies, tracked, ConsistentHash(after, replicas), Resources(), current)
    mean = max(round(float(current.base.replica_counts.mean())), 1)
    kept = [*current.base.replica_counts[:after].tolist(), *[mean] * (after - before)]
    if after > 1 and (isinstance(current.base.replicas, tuple) or current.base.replicas == replicas):
        problem = Problem.from_counts(current, ConsistentHash(after, tuple(kept)), frequencies, tracked, Resources())
        assert built.channels_of(tracked).tolist() == level(problem).tolist()


@pytest.mark.parametrize("channels", [2, 5, 10])
@pytest.mark.parametrize("letters", ["LLL", "QLL", "LQL"])
def test_the_linear_load_is_evened_out(channels, letters):
    built = weighted(ZIPF, HEAVIEST, ConsistentHash(channels), Resources.parse(letters))
    loads = loads_of(built, ZIPF)
    # Two channels at the ends of the distance, an eighth of what is tolerated.
    assert loads.max() / loads.min() <= (1 + ROOM / 8) / (1 - ROOM / 8)


def test_squares_alone_are_evened_out_as_far_as_the_heaviest_key_lets_them():
    resources = Resources.parse("QQQ")
    ring = ConsistentHash(5)
    built, equal = weighted(ZIPF, HEAVIEST, ring, resources), build_partitioner(ZIPF, Recipe(Scheme.HYBRID), 5)
    assert evaluate(built, ZIPF, resources).b < evaluate(equal, ZIPF, resources).b


@pytest.mark.parametrize("tolerance", [1.0, 1.01, 3.0])
def test_the_tolerance_sets_the_distance(tolerance):
    recipe = Recipe(Scheme.WEIGHTED, resources=Resources.parse("LLL", tolerance))
    loads = loads_of(build_partitioner(ZIPF, recipe, 10), ZIPF)
    assert loads.max() / loads.min() <= max((tolerance + 1) / 2, 1.001)


def test_of_two_linear_resources_the_stricter_tolerance_counts():
    """That of a quadratic one does not: its load is not the ring's to even out."""

    def ratio(letters, tolerance):
        loads = loads_of(weighted(ZIPF, HEAVIEST, ConsistentHash(10), Resources.parse(letters, tolerance)), ZIPF)
        return loads.max() / loads.min()

    assert ratio("LLL", "1.5,1.01,1.5") == ratio("LLL", "1.01,1.01,1.01") < ratio("LLL", "1.5,1.5,1.5")
    assert ratio("LQL", "1.5,1.01,1.5") == ratio("LQL", "1.5,1.5,1.5")


@pytest.mark.parametrize("letters", ["CLL", "LCL", "LLC", "CCC", "QQC"])
@pytest.mark.parametrize("channels", [1, 4])
def test_a_constant_resource_is_refused(letters, channels):
    with pytest.raises(UsageError, match=f"got --resources {letters}.* construction level"):
        weighted(ZIPF, HEAVIEST, ConsistentHash(channels), Resources.parse(letters))


def test_what_is_balanced_is_left_alone():
    current = weighted(ZIPF, HEAVIEST, ConsistentHash(8), Resources())
    again = weighted(ZIPF, HEAVIEST, ConsistentHash(8), Resources(), current)
    assert again.base == current.base
    assert dict(again.explicit) == dict(current.explicit)


@pytest.mark.parametrize("after", [1, 3, 7, 9, 16])
def test_a_step_moves_at_most_half_a_load_between_channels_that_stay_for_each_that_comes_or_goes(after):
    current = weighted(ZIPF, HEAVIEST, ConsistentHash(8), Resources())
    built = weighted(ZIPF, HEAVIEST, ConsistentHash(after), Resources(), current)
    left, met = current.base.channels_of(ZIPF.keys[40:]), built.base.channels_of(ZIPF.keys[40:])
    moved = ZIPF.count_low[40:][(left != met) & (left < after) & (met < 8)].sum()
    assert moved <= 0.5 * abs(after - 8) * ZIPF.total / after


def test_a_change_that_costs_too_much_is_made_as_far_as_the_tolerance_asks():
    """Tracked keys were not there before, so the ring in force is far from even."""
    start = ConsistentHash(10)
    at_once, in_steps = weighted(ZIPF, HEAVIEST, start, Resources()), [start]
    for _ in range(5):
        in_steps.append(weighted(ZIPF, HEAVIEST, start, Resources(), in_steps[-1]))
    ratios = [loads.max() / loads.min() for loads in (loads_of(each, ZIPF) for each in (at_once, *in_steps[1:]))]
    assert ratios[1] <= 1.2
    assert ratios[0] <= ratios[1]
    assert ratios[-1] <= 1.2


@pytest.mark.parametrize(
    "current",
    [
        UniformPartitioner(6),
        ConsistentHash(6, 999),
        ConsistentHash(6, (1, 2, 3, 4, 5, 6), HashName.XXHASH64),
        HybridPartitioner({}, ConsistentHash(6, 10)),
    ],
)
def test_a_ring_of_another_kind_is_not_followed(current):
    built = weighted(ZIPF, HEAVIEST, ConsistentHash(6), Resources(), current)
    alone = weighted(ZIPF, ZIPF.keys[:0], ConsistentHash(6), Resources(), current)
    assert outside(built, ZIPF, HEAVIEST, ROOM / 8) <= 0
    assert alone.base == weighted(ZIPF, ZIPF.keys[:0], ConsistentHash(6), Resources()).base


def test_replicas_that_differ_are_followed_whatever_number_one_would_begin_with():
    current = weighted(ZIPF, HEAVIEST, ConsistentHash(8, 500), Resources())
    assert weighted(ZIPF, HEAVIEST, ConsistentHash(8, 1000), Resources(), current).base == current.base


def test_a_channel_never_has_more_than_eight_times_the_replicas_to_begin_with():
    """Squares of keys so uneven that all light keys belong on one channel."""
    uneven, current = counted(10**6 // np.arange(1, 3001) ** 2), None
    for _ in range(8):
        recipe = Recipe(Scheme.WEIGHTED, resources=Resources.parse("QQQ"), max_pins=6, replicas=100)
        current = build_partitioner(uneven, recipe, 5, current)
    assert 100 < current.base.replica_counts.max() <= 800


def test_pinned_keys_stay_and_the_ring_makes_room_for_them():
    pins = {f"key-{number}": 0 for number in (0, 1, 5, 29_999)}
    plan = build_plan(ZIPF, Recipe(Scheme.WEIGHTED, constraints=Constraints(pinned=pins)), 4)
    assert {key: plan.explicit[key] for key in pins} == pins
    assert plan.metrics["r_n"] <= 1.03
    alone = build_plan(ZIPF, Recipe(Scheme.WEIGHTED, constraints=Constraints(pinned=pins)), 1)
    assert dict(alone.explicit) == pins


@pytest.mark.parametrize("capacities", [(1, 1, 1, 1, 1), (2, 1, 1, 1, 1), (1, 2, 3, 4, 5), (1, 1, 20, 1, 1)])
def test_channels_are_filled_in_proportion_to_their_capacity(capacities):
    recipe = Recipe(Scheme.WEIGHTED, constraints=Constraints(capacities=capacities))
    built = build_partitioner(ZIPF, recipe, 5)
    used = loads_of(built, ZIPF) / np.array(capacities)
    assert used.max() / used.min() <= (1 + ROOM / 8) / (1 - ROOM / 8)
    smaller = build_partitioner(ZIPF, Recipe(Scheme.WEIGHTED, constraints=Constraints(capacities=capacities[:4])), 4)
    grown = build_partitioner(ZIPF, recipe, 5, smaller)
    used = loads_of(grown, ZIPF) / np.array(capacities)
    assert used.max() / used.min() <= 1.2


def test_of_several_loads_the_one_that_most_resources_have_is_evened_out():
    generator = np.random.default_rng(7)
    plain = counted(generator.integers(1, 100, 20_000))
    column = MeasuredColumn("bytes", np.exp(1.5 * generator.normal(size=20_000)), 1e9)
    frequencies = replace(plain, measured=(replace(column, total=float(column.values.sum())),))

    def ratios(measure):
        recipe = Recipe(Scheme.WEIGHTED, resources=Resources.parse("CLL", measure=[measure]), max_pins=0)
        metrics = evaluate(build_partitioner(frequencies, recipe, 6), frequencies, recipe.resources)
        return metrics.r_s, metrics.r_n

    assert ratios("state=bytes")[1] <= 1.025 < ratios("state=bytes")[0]
    assert ratios("state=bytes,computation=bytes")[0] <= 1.025 < ratios("state=bytes,computation=bytes")[1]


def test_keys_that_a_counter_did_not_list_are_part_of_the_load():
    listed = 300
    weights = ZIPF.count_low[:listed]
    rest = float(ZIPF.count_low[listed:].sum())
    lossy = Frequencies(
        ZIPF.keys[:listed], weights, weights, float(ZIPF.total), ZIPF.rows, epsilon=1e-4,
        complete_above=float(weights[-1]), distinct=len(ZIPF.keys),
    )  # fmt: skip
    built = build_partitioner(lossy, Recipe(Scheme.WEIGHTED), 8)
    assert rest > 0.2 * ZIPF.total
    assert evaluate(built, lossy, Resources()).r_n <= 1.03
    # The real keys are others than the stand-ins, but as many.
    assert evaluate(built, ZIPF, Resources()).r_n <= 1.2


def test_a_plan_follows_the_plan_that_was_written():
    before = build_plan(ZIPF, Recipe(Scheme.WEIGHTED), 6)
    again = plan_from_data(plan_to_data(before))
    after = build_plan(ZIPF, Recipe(Scheme.WEIGHTED), 7, previous=again)
    assert after == build_plan(ZIPF, Recipe(Scheme.WEIGHTED), 7, previous=before)
    assert after.parent == before.content_hash()
    assert after.metrics["m"] <= 1.5
    assert after.parameters == {"resources": "LLL", "tolerance": [1.2] * 3, "sigma": 0.1, "max_pins": None}
