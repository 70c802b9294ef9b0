"""With the rest in cells, lossy counts measure as exact ones do."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import MeasuredColumn
from adapt.core.engines.names import Engine
from adapt.core.keys.names import HashName
from adapt.core.partitioning.build import Recipe, build_plan, hashers_of
from adapt.core.partitioning.compare import compare_schemes, hashers_compared
from adapt.core.partitioning.measures.cells import RingReplicas
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.population import Population
from adapt.core.partitioning.measures.resources import ResourceFunction, Resources
from adapt.core.partitioning.plans.difference import plan_difference
from adapt.core.partitioning.plans.registry import make_partitioner
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.names import Scheme
from tests.core.partitioning.summed import lossy_of, summed
from tests.tiers import examples

WHOLE_SCHEMES = [*Scheme]
KEYS = 400
ESTIMATED = {"keys_moved"}
"""How many unlisted keys moved stays an estimate."""

OF_LISTED = {"best_possible", "r_best", "b_best"}


@st.composite
def streams(draw):
    """Falling counts with a measured column, and how many keys a lossy counter lists."""
    chance = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    counts = np.sort(chance.zipf(draw(st.sampled_from([1.3, 2.0])), KEYS) % 10_000)[::-1] + 1
    keys = pa.array([f"key{at}" for at in chance.permutation(KEYS)])
    column = MeasuredColumn("bytes", (sums := chance.integers(0, 999, KEYS).astype(float)), float(sums.sum()))
    exact = replace(frequencies_of(KeyCounts(keys, counts, int(counts.sum()))), measured=(column,))
    listed = draw(st.sampled_from([0, 1, 30, KEYS - 1]))
    return exact, lossy_of(exact, listed)


@st.composite
def placements(draw, keys):
    """A partitioner, with or without pinned keys."""
    channels = draw(st.integers(1, 9))
    hash = draw(st.sampled_from(HashName))
    replicas = draw(st.integers(1, 20))
    base = draw(
        st.sampled_from(
            [
                ConsistentHash(channels, replicas, hash),
                *(make_partitioner(each, channels) for each in (*Engine, Scheme.UNIFORM, Scheme.JUMP, Scheme.MAGLEV)),
            ]
        )
    )
    return HybridPartitioner({key: draw(st.integers(0, channels - 1)) for key in keys[:5]}, base)


def known(metrics):
    return {name: value for name, value in metrics.as_data().items() if name not in ESTIMATED}


@examples(15)
@given(st.data(), streams())
def test_linear_and_measured_loads_floors_and_migration_are_exact(data, stream):
    exact, lossy = stream
    listed = lossy.keys.to_pylist()
    before, after = data.draw(placements(listed)), data.draw(placements(listed))
    population = summed(exact, lossy)
    for resources in (Resources(), Resources.parse("LLL", measure=["state=bytes,network=bytes"])):
        found = evaluate(after, population, resources, before)
        truth = evaluate(after, exact, resources, before)
        for name, value in known(truth).items():
            if name in OF_LISTED:  # of listed keys alone: lower, never higher
                assert value is None or found.as_data()[name] is None or found.as_data()[name] <= value * (1 + 1e-12)
            else:
                assert found.as_data()[name] == (None if value is None else pytest.approx(value)), name


@given(st.data(), st.sampled_from(HashName))
def test_the_replicas_of_a_ring_tell_those_of_any_smaller_one(data, hash):
    channels, most = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 9))
    whole = ConsistentHash(channels, most, hash)
    part = ConsistentHash(data.draw(st.integers(1, channels)), data.draw(st.integers(1, most)), hash)
    keys = pa.array([f"key{at}" for at in range(300)])
    replicas = RingReplicas(whole)
    assert replicas.holds(part)
    on_part = replicas.replicas_on(part)[replicas.channels_of(keys)]
    assert (on_part == part.replicas_of(keys)).all()
    assert not replicas.holds(ConsistentHash(channels + 1, most, hash))
    assert not replicas.holds(ConsistentHash(channels, most + 1, hash))


def zipf(keys=5_000, listed=200):
    counts = np.ceil(50_000 / np.arange(1, keys + 1)).astype(np.int64)
    exact = frequencies_of(KeyCounts(pa.array([f"k{at}" for at in range(keys)]), counts, int(counts.sum())))
    return exact, lossy_of(exact, listed)


def test_a_whole_comparison_asks_once_and_predicts_what_exact_counts_measure():
    exact, lossy = zipf()
    schemes, channels, recipe = WHOLE_SCHEMES, [3, 5, 4], Recipe(replicas=50)
    population = summed(exact, lossy, hashers_compared(lossy, channels, recipe, schemes))
    groups = len(population.sums.known)
    found = compare_schemes(population, channels, recipe, schemes=schemes)
    assert len(population.sums.known) == groups
    assert not found.estimate
    for plan in found.plans:
        truth = evaluate(plan.partitioner(), exact, Resources())
        assert plan.metrics["imbalance"] == pytest.approx(truth.imbalance), plan.scheme
        assert plan.metrics["r_best_pinned"] == (
            None if truth.r_best_pinned is None else pytest.approx(truth.r_best_pinned)
        )
        assert "estimate" not in plan.parameters
    guessed = compare_schemes(lossy, channels, recipe, schemes=schemes)
    assert guessed.estimate
    assert guessed.plans[0].parameters["estimate"]
    assert "is an estimate" in guessed.table().note


def test_from_an_engine_to_a_ring_migration_and_its_limit_are_exact():
    exact, lossy = zipf()
    today = build_plan(exact, Recipe(Engine.KAFKA), 5)
    for recipe in (Recipe(), Recipe(Scheme.BOUNDED), Recipe(base=Engine.SPARK)):
        population = summed(exact, lossy, hashers_of(recipe, lossy, [6], today.partitioner()))
        groups = len(population.sums.known)
        plan = build_plan(population, recipe, 6, previous=today)
        truth = evaluate(plan.partitioner(), exact, Resources(), today.partitioner())
        assert plan.metrics["state_moved"] == pytest.approx(truth.state_moved)
        assert len(population.sums.known) == groups
        difference = plan_difference(today, plan, population, Resources())
        assert difference.state_moved == pytest.approx(plan_difference(today, plan, exact, Resources()).state_moved)
        assert not difference.estimate


def test_constant_and_quadratic_loads_of_unlisted_keys_stay_estimates():
    exact, lossy = zipf()
    population = Population.from_counts(summed(exact, lossy), ConsistentHash(4))
    assert population.loads(ResourceFunction.CONSTANT).sum() == pytest.approx(population.listed + population.unlisted)
    assert population.is_estimate(Resources.parse("CLL"))
    assert not population.is_estimate(Resources())
    mean = population.unlisted_weight
    assert population.loads(ResourceFunction.QUADRATIC)[population.listed :].sum() == pytest.approx(
        population.unlisted * mean**2
    )
