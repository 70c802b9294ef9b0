"""Beyond the paper: level, floors and forecasts."""

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies
from adapt.core.keys.partitioner import Channels, Partitioner
from adapt.core.partitioning.build import Recipe, build_partitioner
from adapt.core.partitioning.compare import compare_schemes
from adapt.core.partitioning.constructions.level import level
from adapt.core.partitioning.frontier.bound import bound_of_today, exact_bound, whole_floor
from adapt.core.partitioning.frontier.search import rebalance
from adapt.core.partitioning.frontier.today import Budget, Today
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.names import Construction, Scheme
from paper.partitioning.rings import ring_of
from tests.core.partitioning.frontier.cases import keeps, zipf_step

ROUNDING = 1 + 1e-7


def levelled(today: Today, budget: Budget) -> Channels:
    """The placement of the level construction within a budget of state."""
    keys, ring = pa.array(range(len(today.loads))), ConsistentHash(len(today.residual))
    counted = frequencies_of(KeyCounts(keys, today.loads.astype(np.int64), int(today.loads.sum())))
    problem = Problem.from_counts(ring, ring, counted, keys, Resources())
    return level(
        replace(
            problem,
            home=today.home,
            state=today.state,
            capacities=today.capacities / today.capacities.mean(),
            residual=lambda: np.tile(today.residual, (3, 1)),
            budget=lambda: today.state_in(budget),
        )
    )


def test_a_hundred_small_steps_are_near_the_optimum_within_their_budget():
    """100 steps of 20 to 200 keys, with budgets of state, of pins, of both and of none. The aim was a mean of 2.4 %."""
    rows = []
    for seed in range(100):
        today, chance = zipf_step(seed, 20, 200)
        share, pins = float(chance.uniform(0.02, 0.5)), int(chance.integers(1, 40))
        budget = [Budget(share), Budget(share), Budget(None, pins), Budget(share, pins), Budget()][seed % 5]
        placed = rebalance(today, budget)
        assert keeps(today, budget, placed), f"seed {seed}"
        bound, best, proved = exact_bound(today, budget, placed, nodes=200)
        relaxed, ours, least = bound_of_today(today, budget), today.imbalance(placed), today.imbalance(best)
        assert max(relaxed, bound) <= least * ROUNDING, f"seed {seed}"
        peer = today.imbalance(levelled(today, budget)) if budget.max_pins is None else np.nan
        rows.append((ours / least, ours / bound, peer / least, bound / relaxed, proved))
    of_best, of_bound, of_peer, of_relaxed, proved = np.nanmean(rows, axis=0)
    worst = np.nanmax(rows, axis=0)
    print(
        f"\n100 steps, {proved:.0%} proved: over the best known {of_best - 1:.3%} (worst {worst[0] - 1:.2%}), over the"
        f" bound {of_bound - 1:.3%}; level {of_peer - 1:.2%} (worst {worst[2] - 1:.1%}); the relaxation is"
        f" {of_relaxed - 1:.3%} below the bound (worst {worst[3] - 1:.1%})"
    )
    assert of_bound <= 1.01
    assert of_best <= 1.002
    assert of_peer > of_best


def test_sixty_larger_steps_are_near_the_floor_at_no_more_migration_than_level():
    """60 steps of 100 to 1,000 keys, each with the state that `level` moves. The aim was 1.2 % over the floor."""
    rows = []
    for seed in range(60):
        today, _ = zipf_step(1000 + seed, 100, 1000)
        peer = levelled(today, Budget())
        budget = Budget(min(today.moved_share(peer), 1.0))
        placed, floor = rebalance(today, budget), whole_floor(today)
        assert keeps(today, budget, placed), f"seed {seed}"
        ours, theirs = today.imbalance(placed), today.imbalance(peer)
        assert ours <= theirs * ROUNDING, f"seed {seed}"
        row = (ours / floor, theirs / floor, ours / bound_of_today(today, budget), today.imbalance(today.home) / floor)
        rows.append((*row, today.pins(placed) / max(today.pins(peer), 1)))
    of_floor, of_peer, of_bound, before, pins = np.mean(rows, axis=0)
    print(
        f"\n60 steps: over the floor {of_floor - 1:.3%} (worst {np.max(rows, axis=0)[0] - 1:.2%}), over the bound of"
        f" their budget {of_bound - 1:.3%}; level {of_peer - 1:.2%}, today {before - 1:.0%}; pins {pins:.0%} of level's"
    )
    assert of_floor <= 1.006
    assert of_floor < of_peer
    assert pins < 1


DOMAIN = 10**6
SHARES = 1 / np.arange(1, DOMAIN + 1)
SHARES /= SHARES.sum()
COUNTS = np.maximum(np.rint(SHARES * 10**7), 1)
"""As many tuples as that; whole counts are often equal, and so tie."""

SEEDS = range(5)


@lru_cache(maxsize=2)
def zipf(seed: int, whole: bool = False) -> Frequencies:
    weights = COUNTS if whole else SHARES
    keys = pa.array(np.arange(DOMAIN) + seed * DOMAIN)
    return Frequencies(keys, weights, weights, total=float(weights.sum()), rows=DOMAIN, distinct=DOMAIN)


def last_two(counted: Frequencies, recipe: Recipe) -> tuple[Partitioner, Partitioner]:
    """The partitioners of N = 9 and 10, from N = 1 one channel at a time."""
    before, current = None, None
    for channels in range(1, 11):
        before, current = current, build_partitioner(counted, recipe, channels, current)
    return before, current


@pytest.mark.parametrize(("track", "b_lll", "b_lcl"), [(1000, 1.02, 0.99), (5000, 0.91, 0.92)])
def test_level_is_balanced_at_the_migration_of_consistent_hashing(track, b_lll, b_lcl):
    """The paper has b of 1.2 to 1.3 (LLL) and about 1.15 (LCL), at m of 1.23 to 1.34. Both have one mapping."""
    reached = {"LLL": [], "LCL": []}
    for seed in SEEDS:
        with ring_of(seed):
            before, partitioner = last_two(zipf(seed), Recipe(Scheme.HYBRID, Construction.LEVEL, max_pins=track))
        for letters, metrics in reached.items():
            metrics.append(evaluate(partitioner, zipf(seed), Resources.parse(letters), before))
    assert np.mean([metrics.b for metrics in reached["LLL"]]) <= b_lll
    assert np.mean([metrics.b for metrics in reached["LCL"]]) <= b_lcl
    assert np.mean([metrics.m for metrics in reached["LLL"]]) <= 1.0
    assert all(metrics.r_n >= metrics.r_best_pinned * (1 - 1e-9) for metrics in reached["LLL"])


def test_level_reaches_the_floor_of_what_it_may_place():
    """From N = 2 to 32; the aim was 5 percent of the floor at N = 5 and more."""
    rows = compare_schemes(
        zipf(0), range(1, 33), Recipe(max_pins=1000), schemes=[Scheme.HYBRID], constructions=[Construction.LEVEL]
    ).rows
    ratios = np.array([row.metrics.r_n / row.metrics.r_best_pinned for row in rows[1:]])
    assert (ratios >= 1 - 1e-9).all()
    assert (ratios <= 1.05).all()
    assert ratios.mean() <= 1.02
    assert np.mean([row.metrics.m for row in rows[1:]]) <= 1.0


def test_unlocked_has_the_balance_of_redist_at_two_thirds_of_its_migration():
    """LCL, sigma 0.008, 490 keys tracked. Readj is stopped by ties there.

    Over 20 rings b is 1.024 (95 % interval 0.010) and m 1.070 (0.027).
    """
    b, m = {}, {}
    resources = Resources.parse("LCL", 1.2, 0.008)
    for construction in (Construction.READJ, Construction.REDIST, Construction.UNLOCKED):
        recipe = Recipe(Scheme.HYBRID, construction, resources)
        metrics = []
        for seed in range(10):
            with ring_of(seed):
                before, partitioner = last_two(zipf(0, whole=True), recipe)
            metrics.append(evaluate(partitioner, zipf(0, whole=True), resources, before))
        b[construction], m[construction] = np.mean([(each.b, each.m) for each in metrics], axis=0)
    assert b[Construction.READJ] > 1.2
    assert b[Construction.UNLOCKED] <= min(1.03, 1.02 * b[Construction.REDIST])
    assert m[Construction.UNLOCKED] <= min(1.1, 0.75 * m[Construction.REDIST])
