"""Building one plan."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies
from adapt.core.errors import BadInput, UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.build import Recipe, build_partitioner, build_plan
from adapt.core.partitioning.constructions.redist import scan
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.plans.plan import plan_from_data, plan_to_data
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.problem.tracking import SERVED, tracked_keys
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.names import Construction, Scheme, UtilityName


def zipf(keys: pa.Array) -> Frequencies:
    """Integer counts that fall as 1 over the rank."""
    counts = 10**6 // np.arange(1, len(keys) + 1)
    return frequencies_of(KeyCounts(keys, counts, int(counts.sum())))


TEXTS = zipf(pa.array([f"key{number}" for number in range(3000)]))
NUMBERS = zipf(pa.array(range(3000)))


@pytest.mark.parametrize("frequencies", [TEXTS, NUMBERS], ids=["texts", "numbers"])
@pytest.mark.parametrize("scheme", Scheme)
def test_a_plan_places_keys_as_it_foretells(scheme, frequencies):
    plan = build_plan(frequencies, Recipe(scheme), 6, previous=build_plan(frequencies, Recipe(scheme), 5))
    placed = plan.partitioner().channels_of(frequencies.keys)
    network = np.bincount(placed, weights=frequencies.count_low, minlength=6)
    assert plan.predicted_loads["network"] == network.tolist()
    assert plan.metrics["r_n"] == network.max() / network.min()
    assert plan.metrics["imbalance"] == pytest.approx(network.max() / network.mean())


def test_only_the_hybrid_scheme_has_explicit_keys_and_a_construction():
    hybrid, ring = build_plan(TEXTS, Recipe(Scheme.HYBRID), 6), build_plan(TEXTS, Recipe(Scheme.CONSISTENT), 6)
    assert len(hybrid.explicit) > 0
    assert set(hybrid.explicit) == set(tracked_keys(TEXTS, Resources(), 6, least=SERVED).to_pylist())
    assert len(hybrid.explicit) == SERVED
    assert hybrid.metrics["pinned_keys"] == len(hybrid.explicit)
    assert (hybrid.construction, ring.construction, len(ring.explicit)) == (Construction.LEVEL, None, 0)
    assert (ring.metrics["pinned_keys"], ring.metrics["r_best_pinned"]) == (0, None)


def test_heavy_keys_are_better_placed_one_by_one():
    plans = [build_plan(TEXTS, Recipe(scheme), 6) for scheme in (Scheme.CONSISTENT, Scheme.HYBRID)]
    assert plans[1].metrics["r_n"] < plans[0].metrics["r_n"]


def test_without_a_previous_plan_there_is_no_migration():
    metrics = build_plan(TEXTS, Recipe(Scheme.HYBRID), 6).metrics
    migration = [metrics[name] for name in ("m", "b(1+m)", "keys_moved", "state_moved")]
    assert migration == [None] * 4
    assert metrics["b"] is not None


def test_without_a_previous_plan_the_construction_starts_from_hashing_alone():
    alone = build_plan(TEXTS, Recipe(Scheme.CONSISTENT), 6)
    assert (
        build_plan(TEXTS, Recipe(Scheme.HYBRID), 6).explicit
        == build_plan(TEXTS, Recipe(Scheme.HYBRID), 6, previous=alone).explicit
    )


def test_the_construction_sees_the_plan_in_force_and_the_keys_that_it_tracked():
    before = build_plan(TEXTS, Recipe(Scheme.HYBRID, max_pins=40), 5).partitioner()
    recipe = Recipe(Scheme.HYBRID, Construction.SCAN, utility=UtilityName.ATM, max_pins=10)
    built = build_partitioner(TEXTS, recipe, 6, before)
    heaviest = TEXTS.keys[:10]
    problem = Problem.from_counts(before, ConsistentHash(6), TEXTS, heaviest, Resources(), UtilityName.ATM)
    assert dict(built.explicit) == dict(zip(heaviest.to_pylist(), scan(problem).tolist(), strict=True))


def test_a_plan_names_its_parent_and_is_charged_for_what_it_moves():
    before = build_plan(TEXTS, Recipe(Scheme.HYBRID), 5)
    after = build_plan(TEXTS, Recipe(Scheme.HYBRID), 6, previous=before)
    moved = before.partitioner().channels_of(TEXTS.keys) != after.partitioner().channels_of(TEXTS.keys)
    state = TEXTS.count_low[moved].sum()
    assert after.parent == before.content_hash()
    assert after.metrics["keys_moved"] == moved.sum()
    assert after.metrics["state_moved"] == state
    assert after.metrics["m"] == pytest.approx(state * 6 / TEXTS.total)
    assert after.metrics["b(1+m)"] == pytest.approx(after.metrics["b"] * (1 + after.metrics["m"]))


def test_the_ring_alone_moves_keys_only_to_the_new_channel():
    before = build_plan(TEXTS, Recipe(Scheme.CONSISTENT), 5)
    after = build_plan(TEXTS, Recipe(Scheme.CONSISTENT), 6, previous=before)
    old, new = (plan.partitioner().channels_of(TEXTS.keys) for plan in (before, after))
    assert set(new[old != new].tolist()) == {5}


@pytest.mark.parametrize("scheme", Scheme)
def test_no_ratio_is_below_its_floor(scheme):
    for channels in (1, 2, 7, 40):
        metrics = build_plan(TEXTS, Recipe(scheme), channels).metrics
        assert metrics["imbalance"] >= metrics["best_possible"] * (1 - 1e-12)
        assert metrics["r_n"] >= metrics["r_best"] * (1 - 1e-12)
        if scheme is Scheme.HYBRID:
            assert metrics["r_n"] >= metrics["r_best_pinned"] * (1 - 1e-12)


def test_the_metrics_are_those_of_evaluating_the_partitioner():
    before = build_plan(TEXTS, Recipe(Scheme.HYBRID), 5)
    plan = build_plan(TEXTS, Recipe(Scheme.HYBRID, resources=Resources.parse("LQL")), 6, previous=before)
    metrics = evaluate(plan.partitioner(), TEXTS, Resources.parse("LQL"), before.partitioner())
    assert metrics.as_data() == plan.metrics


def test_choices_are_parameters_of_the_plan():
    resources = Resources.parse("LCL", "1.2,1.5,1.3", 0.2)
    plan = build_plan(TEXTS, Recipe(Scheme.HYBRID, Construction.SCAN, resources, UtilityName.ATM, max_pins=7), 6)
    assert plan.parameters == {
        "resources": "LCL", "tolerance": [1.2, 1.5, 1.3], "sigma": 0.2, "utility": "ATM", "max_pins": 7,
    }  # fmt: skip
    assert len(plan.explicit) == 7


def test_equal_builds_give_equal_plans_and_survive_as_data():
    plan = build_plan(NUMBERS, Recipe(Scheme.HYBRID), 6, trace="abc")
    assert plan == build_plan(NUMBERS, Recipe(Scheme.HYBRID), 6, trace="abc")
    assert plan_from_data(plan_to_data(plan)).content_hash() == plan.content_hash()


def test_shrinking_leaves_no_key_on_a_removed_channel():
    plan = build_plan(TEXTS, Recipe(Scheme.HYBRID), 3, previous=build_plan(TEXTS, Recipe(Scheme.HYBRID), 8))
    assert plan.partitioner().channels_of(TEXTS.keys).max() == 2


def test_one_channel_tracks_nothing():
    plan = build_plan(TEXTS, Recipe(Scheme.HYBRID), 1)
    assert (len(plan.explicit), plan.metrics["imbalance"], plan.metrics["r_best_pinned"]) == (0, 1, 1)


def test_more_channels_than_keys_leave_some_empty():
    few = zipf(pa.array(["a", "b"]))
    metrics = build_plan(few, Recipe(Scheme.HYBRID), 4).metrics
    assert metrics["empty_channels"] >= 2
    assert (metrics["r_n"], metrics["r_best"], metrics["b"]) == (None, None, None)


@pytest.mark.parametrize("scheme", Scheme)
def test_an_empty_stream_still_has_a_plan(scheme):
    plan = build_plan(zipf(pa.array([], pa.string())), Recipe(scheme), 3)
    assert plan.metrics["empty_channels"] == 3
    assert plan.metrics["imbalance"] is None


def test_a_heavy_null_key_gets_an_entry():
    counted = frequencies_of(KeyCounts(pa.array([None, 1, 2]), np.array([50, 30, 20]), 100))
    assert set(build_plan(counted, Recipe(Scheme.HYBRID), 2).explicit) == {None, 1, 2}


def test_other_hashes_and_key_types_are_refused_by_name():
    previous = build_plan(TEXTS, Recipe(Scheme.HYBRID), 5)
    with pytest.raises(BadInput, match=r"hashes with murmur3, .* with xxhash64"):
        build_plan(TEXTS, Recipe(Scheme.HYBRID, hash=HashName.XXHASH64), 6, previous=previous)
    with pytest.raises(BadInput, match=r"is for string keys, .* has int64 keys"):
        build_plan(NUMBERS, Recipe(Scheme.HYBRID), 6, previous=previous)


@pytest.mark.parametrize("scheme", Scheme)
def test_no_channels_are_refused(scheme):
    with pytest.raises(UsageError, match="must be at least 1"):
        build_plan(TEXTS, Recipe(scheme), 0)


def test_replicas_are_data_of_rings_alone():
    assert Recipe(Scheme.CONSISTENT, replicas=7).as_data()["replicas"] == 7
    assert Recipe(Scheme.UNIFORM, replicas=7).as_data()["replicas"] is None
