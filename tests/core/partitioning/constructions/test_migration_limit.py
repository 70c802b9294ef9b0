"""A limit of migration over steps of changing counts: what moves of the whole stream, and what it buys."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.errors import UsageError
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.loop.splitter import Splitter
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.constraints import Constraints, MigrationLimit
from adapt.core.partitioning.schemes.names import Construction, Scheme
from adapt.core.stream import KeyType
from tests.tiers import SOAK

KEYS = pa.array([f"k{number}" for number in range(300)])
every_construction = pytest.mark.parametrize("construction", Construction)


def counted(random):
    """Zipf counts, whose hottest 40 keys are others each time."""
    order = np.concatenate((random.permutation(40), np.arange(40, len(KEYS))))
    counts = np.rint(20_000 / (1 + order) ** random.uniform(0.7, 1.3)).astype(np.int64)
    return frequencies_of(KeyCounts(KEYS, counts, int(counts.sum())))


def limited(construction, limit, **others):
    return Recipe(construction=construction, constraints=Constraints(max_migration=MigrationLimit(limit)), **others)


@every_construction
@pytest.mark.parametrize(("limit", "max_pins"), [(0.0, None), (0.3, None), (0.0, 12), (0.3, 12)])
def test_no_step_migrates_more_or_balances_worse_than_the_plan_in_force(construction, limit, max_pins):
    for seed in range(6 if SOAK else 2):
        random = np.random.default_rng(seed)
        channels = int(random.integers(2, 9))
        recipe = limited(construction, limit, max_pins=max_pins)
        plan = build_plan(counted(random), Recipe(construction=construction, max_pins=max_pins), channels)
        for _ in range(3):
            now = counted(random)
            before, plan = plan, build_plan(now, recipe, channels, previous=plan)
            assert plan.metrics["m"] <= limit * (1 + 1e-9), f"seed {seed}"
            stayed = evaluate(before.partitioner(), now, Resources())
            assert plan.metrics["b"] <= stayed.b * (1 + 1e-9), f"seed {seed}"
            assert max_pins is None or len(plan.explicit) <= max_pins
            if not limit:
                assert (plan.partitioner().channels_of(KEYS) == before.partitioner().channels_of(KEYS)).all()


@pytest.mark.parametrize("limit", [0.0, 0.05, 0.3])
def test_bounded_keeps_to_the_limit_and_is_never_worse_than_staying(limit):
    for seed in range(6 if SOAK else 2):
        random = np.random.default_rng(seed)
        channels = int(random.integers(2, 9))
        capacities = tuple(random.uniform(1, 3, channels)) if seed % 2 else None
        free = Recipe(Scheme.BOUNDED, cap=1.1, constraints=Constraints(capacities, {"k7": 1}))
        bound = replace(free, constraints=replace(free.constraints, max_migration=MigrationLimit(limit)))
        plan = build_plan(counted(random), free, channels)
        for _ in range(3):
            now = counted(random)
            before, plan = plan, build_plan(now, bound, channels, previous=plan)
            assert plan.metrics["m"] <= limit * (1 + 1e-9), f"seed {seed}"
            stayed = evaluate(before.partitioner(), now, Resources(), capacities=free.constraints.unequal)
            assert plan.metrics["b"] <= stayed.b * (1 + 1e-9), f"seed {seed}"
            if not limit:
                assert (plan.partitioner().channels_of(KEYS) == before.partitioner().channels_of(KEYS)).all()


def test_a_change_of_channels_keeps_to_the_limit_or_says_what_is_enough():
    for seed in range(4):
        random = np.random.default_rng(seed)
        before, after = (4, 6) if seed % 2 else (6, 5)
        previous, now = build_plan(counted(random), Recipe(Scheme.BOUNDED), before), counted(random)
        limit = MigrationLimit(0.01)
        for _ in range(2):
            try:
                recipe = Recipe(Scheme.BOUNDED, constraints=Constraints(max_migration=limit))
                plan = build_plan(now, recipe, after, previous=previous)
                break
            except UsageError as refusal:
                limit = MigrationLimit.parse(str(refusal).split("use at least ")[1].split(",")[0])
        assert plan.metrics["m"] <= limit.amount * (1 + 1e-9), f"seed {seed}"


@every_construction
@pytest.mark.parametrize("letters", ["CCC", "LCC", "LLL"])
def test_less_than_must_move_is_refused_with_any_resources(construction, letters):
    random, resources = np.random.default_rng(0), Resources.parse(letters)
    now, limit = counted(random), Constraints(max_migration=MigrationLimit(0))
    previous = build_plan(now, Recipe(max_pins=10), 4)
    with pytest.raises(UsageError, match=r"max_migration 0 allows 0 of state to migrate, but \d+ must"):
        build_plan(
            now, Recipe(Scheme.HYBRID, construction, resources, max_pins=10, constraints=limit), 5, previous=previous
        )


def test_a_limit_that_is_not_reached_changes_nothing():
    random = np.random.default_rng(3)
    plan = build_plan(counted(random), Recipe(Scheme.BOUNDED), 6)
    now = counted(random)
    for channels in (5, 6, 7):
        free, bound = (
            build_plan(
                now, Recipe(Scheme.BOUNDED, constraints=Constraints(max_migration=most)), channels, previous=plan
            )
            for most in (None, MigrationLimit(1.0, of_all=True))
        )
        assert free.metrics["m"] > 0
        assert (free.explicit, free.replicas) == (bound.explicit, bound.replicas)
        must = r"max_migration 0 allows 0 of state to migrate, but .* must: keys of removed workers.*; use at least"
        if channels == 5:
            nothing = Recipe(Scheme.BOUNDED, constraints=Constraints(max_migration=MigrationLimit(0)))
            with pytest.raises(UsageError, match=must):
                build_plan(now, nothing, channels, previous=plan)


def test_more_of_a_limit_buys_balance_from_counts():
    random = np.random.default_rng(7)
    previous, now = build_plan(counted(random), Recipe(Scheme.BOUNDED), 8), counted(random)
    found = [
        build_plan(
            now,
            Recipe(Scheme.BOUNDED, constraints=Constraints(max_migration=MigrationLimit(most))),
            8,
            previous=previous,
        )
        for most in (0, 0.5)
    ]
    print([(plan.metrics["r_n"], plan.metrics["m"]) for plan in found])
    assert found[1].metrics["r_n"] < 0.9 * found[0].metrics["r_n"]


@every_construction
def test_a_splitter_proposes_within_the_limit(construction):
    random = np.random.default_rng(1)
    splitter = Splitter(4, limited(construction, 0.2, max_pins=20), key_type=KeyType.STRING)
    for _ in range(3):
        counts = counted(random)
        splitter.observe(pa.array(np.repeat(KEYS.to_pylist(), counts.count_low // 20)))
        proposal = splitter.propose()
        assert 0 <= proposal.m <= 0.2 * (1 + 1e-9)
        splitter.adopt(proposal)


@every_construction
def test_more_of_a_limit_buys_balance(construction):
    random = np.random.default_rng(7)
    previous, now = build_plan(counted(random), Recipe(construction=construction), 8), counted(random)
    ratios = [build_plan(now, limited(construction, limit), 8, previous=previous).metrics["r_n"] for limit in (0, 0.8)]
    assert ratios[1] < 0.9 * ratios[0]


def test_held_keys_give_way_to_hot_ones_as_far_as_the_limit_allows():
    """Two of three pinned keys go cold: one may leave, the other keeps its place."""
    names = pa.array(["a", "b", "c", "d", "e"])
    before = frequencies_of(KeyCounts(names, np.array([50, 40, 30, 1, 1]), 122))
    after = frequencies_of(KeyCounts(names, np.array([50, 4, 3, 40, 30]), 127))
    previous = build_plan(before, Recipe(Scheme.CONSISTENT), 4).partitioner()
    pins = {name: (int(previous.channels_of(pa.array([name]))[0]) + 1) % 4 for name in "abc"}
    plan = build_plan(before, Recipe(max_pins=3, constraints=Constraints(pinned=pins)), 4)
    recipe = Recipe(
        construction=Construction.SCAN,
        max_pins=3,
        constraints=Constraints(max_migration=MigrationLimit(3 / 127, of_all=True)),
    )
    assert set(build_plan(after, recipe, 4, previous=plan).explicit) == {"a", "b", "d"}
