"""Under lossy counts, forecasts are those of exact counts, and no placement goes below a floor.

A stream is rows of Zipf keys; a lossy counter lists some, and every row is summed by channel (`summed`). What is
foreseen and reached is printed with `pytest -s`.
"""

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.counting.lossy import LossyCounter
from adapt.core.partitioning.build import Recipe, build_partitioner, build_plan, hashers_of
from adapt.core.partitioning.frontier.bound import bound_of_today
from adapt.core.partitioning.frontier.search import rebalance
from adapt.core.partitioning.frontier.today import Budget, Today
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.population import Population
from adapt.core.partitioning.measures.resources import ResourceFunction, Resources
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.names import Construction, Scheme
from adapt.core.stream import Weight
from tests.core.partitioning.summed import summed

EPSILONS = [1e-5, 1e-4, 1e-3, 1e-2]
FLOORS = ("best_possible", "r_best", "r_best_pinned", "b_best")
LINEAR = ResourceFunction.LINEAR
ROUNDING = 1 + 1e-9


def stream(seed, rows, domain, exponent=1.0):
    """A key column, and its exact counts."""
    chance = np.random.default_rng(seed)
    shares = 1 / np.arange(1, domain + 1) ** exponent
    keys = pa.array(chance.choice(domain, rows, p=shares / shares.sum()) + seed * domain)
    return keys, frequencies_of(count_keys(keys))


def lossily(keys, epsilon):
    """What a lossy counter says, which forgets keys after every window."""
    counter = LossyCounter(epsilon, keys.type, flush_rows=1)
    counter.update(keys, None)
    return counter.summary().frequencies(epsilon, Weight.COUNT)


def both(keys, exact, epsilon, wanted):
    """Lossy counts as an estimate, and with the rest summed."""
    lossy = lossily(keys, epsilon)
    return lossy, summed(exact, lossy, wanted(lossy))


def test_no_placement_of_the_pinned_keys_is_below_a_floor():
    """Every assignment of up to 5 pinned keys to up to 3 channels."""
    for seed in range(30):
        keys, exact = stream(seed, 3_000, 400, 1.2)
        channels = 2 + seed % 2
        ring = ConsistentHash(channels, 20)
        _, population = both(keys, exact, [0.02, 0.005][seed % 2], lambda _, ring=ring: [(ring,)])
        hot = population.frequencies.keys[:5]
        reached = []
        for place in product(range(channels), repeat=len(hot)):
            partitioner = HybridPartitioner(ExplicitMap(hot, np.array(place, np.int32)), ring)
            told, truth = (evaluate(partitioner, each, Resources()) for each in (population, exact))
            assert told.r_n == pytest.approx(truth.r_n)
            for floor, value in zip(FLOORS, (truth.imbalance, truth.r_n, truth.r_n, truth.b), strict=True):
                assert getattr(told, floor) <= value * ROUNDING, (seed, floor)
            reached.append(truth.r_n)
        assert told.r_best_pinned <= min(reached) * ROUNDING


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_level_foresees_what_it_reaches_and_stays_above_the_floors(epsilon):
    """Chains from 10 to 12 channels over a million rows, pinning what is listed; also bounded."""
    keys, exact = stream(1, 1_000_000, 300_000)
    for scheme in (Scheme.HYBRID, Scheme.BOUNDED):
        recipe = Recipe(scheme, Construction.LEVEL)
        lossy, population = both(keys, exact, epsilon, lambda lossy, recipe=recipe: hashers_of(recipe, lossy, [10, 12]))
        current = build_partitioner(population, recipe, 10)
        after = build_partitioner(population, recipe, 12, current)
        told, truth = (evaluate(after, each, Resources(), current) for each in (population, exact))
        guess = build_partitioner(lossy, recipe, 12, build_partitioner(lossy, recipe, 10))
        guessed, reached = (evaluate(guess, each, Resources()) for each in (lossy, exact))
        print(
            f"\n{epsilon:g} {scheme}: foreseen {told.imbalance:.4f}, reached {truth.imbalance:.4f}, pair floor"
            f" {told.r_best_pinned:.4f}, r {truth.r_n:.4f}; by estimate foreseen {guessed.imbalance:.4f}, reached"
            f" {reached.imbalance:.4f}, pair floor {guessed.r_best_pinned:.4f}, r {reached.r_n:.4f}"
        )
        assert told.imbalance == pytest.approx(truth.imbalance)
        assert told.m == pytest.approx(truth.m)
        assert told.r_best_pinned == pytest.approx(truth.r_best_pinned)
        for floor, value in zip(FLOORS, (truth.imbalance, truth.r_n, truth.r_n, truth.b), strict=True):
            assert getattr(told, floor) <= value * ROUNDING, (scheme, floor)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_search_of_the_frontier_stays_above_its_bound(epsilon):
    """Budgets from 1 % of the state to all of it: what is reached over all rows, and the bound from lossy counts."""
    for seed in range(3):
        keys, exact = stream(seed, 200_000, 50_000, 1.1)
        ring = ConsistentHash(8)
        _, population = both(keys, exact, epsilon, lambda _, ring=ring: [(ring,)])
        listed = population.frequencies
        loads, home = listed.count_low.astype(float), ring.channels_of(listed.keys)
        rest = Population.from_counts(population, ring).rest_on(ring, LINEAR)
        today = Today(loads, loads, home, rest, np.ones(8), float(rest.sum()))
        for share in (0.01, 0.1, 1.0):
            budget = Budget(share)
            placed = rebalance(today, budget)
            partitioner = HybridPartitioner(ExplicitMap(listed.keys, placed), ring)
            truth = evaluate(partitioner, exact, Resources(), ring)
            assert today.imbalance(placed) == pytest.approx(truth.imbalance)
            assert bound_of_today(today, budget) <= truth.imbalance * ROUNDING
            assert truth.state_moved <= share * exact.total * ROUNDING
            assert evaluate(partitioner, population, Resources()).r_best_pinned <= truth.r_n * ROUNDING


@pytest.mark.parametrize("scheme", [Scheme.HYBRID, Scheme.BOUNDED])
def test_forecasts_are_unbiased(scheme):
    """A hundred streams: how often the imbalance is above what was foreseen; by estimate, level fits made-up keys."""
    above, above_guess, errors = 0, 0, []
    recipe = Recipe(scheme, Construction.LEVEL)
    for seed in range(100):
        keys, exact = stream(seed, 50_000, 20_000)
        lossy, population = both(keys, exact, 1e-3, lambda lossy: hashers_of(recipe, lossy, [10]))
        plan, guess = (build_plan(each, recipe, 10) for each in (population, lossy))
        reached, of_guess = (evaluate(each.partitioner(), exact, Resources()).imbalance for each in (plan, guess))
        errors.append(reached / plan.metrics["imbalance"] - 1)
        above += errors[-1] > 1e-9
        above_guess += of_guess > guess.metrics["imbalance"] * ROUNDING
    print(
        f"\n{scheme}: above the forecast in {above} of 100, largest error {max(errors):.1e}; by estimate {above_guess}"
    )
    assert max(map(abs, errors)) < 1e-9
    assert above == 0
