"""Plans of every scheme: what they keep, and what follows from one to the next."""

import json

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.engines.names import SCHEMES_BY_NAME, Engine
from adapt.core.engines.registry import key_groups_of
from adapt.core.errors import BadInput
from adapt.core.keys.names import HashName
from adapt.core.partitioning.build import Recipe, build_partitioner, build_plan
from adapt.core.partitioning.compare import compare_schemes
from adapt.core.partitioning.plans.plan import plan_from_data, plan_to_data
from adapt.core.partitioning.plans.plan_tables import plan_table
from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, RING_SCHEMES, Scheme

COUNTS = 10**6 // np.arange(1, 20_001)
STREAM = frequencies_of(
    KeyCounts(pa.array([None, *(f"key{at}" for at in range(1, 20_000))]), COUNTS, int(COUNTS.sum()))
)
every_scheme = pytest.mark.parametrize("scheme", Scheme)


@every_scheme
def test_a_built_plan_comes_back_equal_in_one_document_or_two(scheme):
    plan = build_plan(STREAM, Recipe(scheme), 9, previous=build_plan(STREAM, Recipe(scheme), 8))
    assert plan_from_data(json.loads(json.dumps(plan_to_data(plan)))) == plan
    alone = json.loads(json.dumps(plan_to_data(plan, with_explicit=False)))
    again = plan_from_data(alone, plan.to_arrow())
    assert again == plan
    assert again.content_hash() == plan.content_hash()
    placed = build_partitioner(STREAM, Recipe(scheme), 9, build_partitioner(STREAM, Recipe(scheme), 8))
    assert (again.partitioner().channels_of(STREAM.keys) == placed.channels_of(STREAM.keys)).all()


@every_scheme
def test_a_plan_says_only_what_decides_its_mapping(scheme):
    plan = build_plan(STREAM, Recipe(scheme), 9)
    data = plan_to_data(plan)
    assert data["hash"] == (None if isinstance(scheme, Engine) else {"name": "murmur3", "seed": 0})
    assert data["replicas"] == (1000 if scheme in RING_SCHEMES else None)
    assert data.get("max_parallelism") == (128 if key_groups_of(scheme) else None)
    assert ("max_parallelism" in data) == (key_groups_of(scheme) is not None)
    assert bool(data["explicit"]) == (scheme in MAPPED_SCHEMES)
    assert (plan.metrics["pinned_keys"] > 0) == (scheme in MAPPED_SCHEMES)
    assert plan_table(plan).values("hash") == [None if isinstance(scheme, Engine) else "murmur3"]


@pytest.mark.parametrize("cap", [1.25, 1.05])
def test_bounded_plans_keep_to_their_cap(cap):
    plan = build_plan(STREAM, Recipe(Scheme.BOUNDED, cap=cap), 9)
    assert plan.metrics["imbalance"] <= cap * (1 + 1e-9)
    assert plan.parameters["cap"] == cap


@pytest.mark.parametrize("scheme", [scheme for scheme in SCHEMES_BY_NAME.values() if key_groups_of(scheme)])
def test_key_groups_stay_in_a_chain_of_plans(scheme):
    plan = build_plan(STREAM, Recipe(scheme), 60)
    assert plan.max_parallelism == 128
    grown = build_plan(STREAM, Recipe(scheme), 120, previous=plan)
    assert (grown.max_parallelism, build_plan(STREAM, Recipe(scheme), 120).max_parallelism) == (128, 256)
    assert [plan.max_parallelism for plan in compare_schemes(STREAM, [60, 120], schemes=[scheme]).plans] == [128]
    asked = compare_schemes(STREAM, [60, 120], Recipe(max_parallelism=720), schemes=[scheme]).plans
    assert [plan.max_parallelism for plan in asked] == [720]
    assert build_plan(STREAM, Recipe(scheme, max_parallelism=720), 60, previous=plan).max_parallelism == 720


@pytest.mark.parametrize("scheme", sorted(Engine))
def test_what_an_engine_does_today_may_be_followed_by_a_plan_of_any_hash(scheme):
    today = build_plan(STREAM, Recipe(scheme, hash=HashName.XXHASH64), 9)
    assert today == build_plan(STREAM, Recipe(scheme), 9)
    after = build_plan(STREAM, Recipe(Scheme.HYBRID, hash=HashName.XXHASH64), 9, previous=today)
    assert after.metrics["keys_moved"] > 0


@pytest.mark.parametrize(
    ("scheme", "groups", "message"),
    [
        (Scheme.KEY_GROUPS, None, "'max_parallelism': missing"),
        (Scheme.KEY_GROUPS, 8, "'max_parallelism': must be from 9, .* to 2147483647"),
        (Engine.FLINK, 32769, "'max_parallelism': must be from 9, .* to 32768"),
        (Engine.FLINK, "128", r"'max_parallelism': must be a whole number \(got '128'"),
    ],
)
def test_key_groups_that_cannot_be_are_refused_by_field(scheme, groups, message):
    data = plan_to_data(build_plan(STREAM, Recipe(scheme), 9)) | {"max_parallelism": groups}
    with pytest.raises(BadInput, match=message):
        plan_from_data(data)
