"""How far the constructions are from the optimum of the balance that they lower: max - min over the tracked keys.

Mean gaps are printed with `pytest -s`. What is asserted holds for every instance, and says why; or it is what the paper
reports of its algorithms, on the average.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from statistics import fmean

import numpy as np
import pyarrow as pa
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.partitioning.constructions.registry import CONSTRUCTIONS
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.names import Construction, UtilityName

SEEDS = range(200)
ROUNDING = 1e-9


def step(seed: int) -> Problem:
    """8 to 14 keys, all tracked, somewhere on 3 to 5 channels: even seeds uniform counts, odd ones Zipf."""
    random = np.random.default_rng(seed)
    channels, keys = int(random.integers(3, 6)), int(random.integers(8, 15))
    zipf = np.rint(1000 / np.arange(1, keys + 1) ** random.uniform(0.5, 1.5)).astype(int)
    counts = zipf if seed % 2 else random.integers(1, 1000, keys)
    names = [f"k{key}" for key in range(keys)]
    counted = frequencies_of(KeyCounts(pa.array(names), counts, int(counts.sum())))
    explicit = dict(zip(names, random.integers(0, channels, keys).tolist(), strict=True))
    ring = ConsistentHash(channels, 5)
    return Problem.from_counts(HybridPartitioner(explicit, ring), ring, counted, counted.keys, Resources())


def least_spread(problem: Problem) -> float:
    """The least (max - min) / mean of any assignment, by scipy's integer program: y[key, channel], then max and min."""
    channels, keys = problem.channels, len(problem.counts)
    loads = np.kron(problem.counts / problem.counts.mean(), np.eye(channels))  # near 1, for the solver's tolerances
    one, ends = np.kron(np.eye(keys), np.ones(channels)), np.ones((channels, 1))
    none = np.zeros((channels, 1))
    rows = [
        LinearConstraint(np.hstack([one, np.zeros((keys, 2))]), 1, 1),
        LinearConstraint(np.hstack([loads, -ends, none]), -np.inf, 0),
        LinearConstraint(np.hstack([loads, none, -ends]), 0, np.inf),
    ]
    cells = keys * channels
    found = milp(
        np.append(np.zeros(cells), [1, -1]),
        integrality=np.append(np.ones(cells), [0, 0]),
        bounds=Bounds(0, np.append(np.ones(cells), [np.inf, np.inf])),
        constraints=rows,
        options={"mip_rel_gap": 0},
    )
    assert found.success
    return spread(problem, found.x[:cells].reshape(keys, channels).argmax(axis=1))


@cache
def solved() -> tuple[tuple[int, Problem, float], ...]:
    steps = [(seed, step(seed)) for seed in SEEDS]
    return tuple((seed, problem, least_spread(problem)) for seed, problem in steps)


def spread(problem: Problem, placement: np.ndarray) -> float:
    loads = np.bincount(placement, problem.counts, minlength=problem.channels)
    return float((loads.max() - loads.min()) / loads.mean())


def built(construction: Construction, utility: UtilityName) -> Iterator[tuple[int, Problem, float, float]]:
    """Of each instance: its seed, the problem, the spread that the construction leaves, and the optimum."""
    for seed, problem, best in solved():
        placement = CONSTRUCTIONS[construction](replace(problem, utility=utility))
        yield seed, problem, spread(problem, placement), best


def mean_gap(construction: Construction, utility: UtilityName) -> float:
    return fmean(reached - best for _, _, reached, best in built(construction, utility))


@pytest.mark.parametrize("utility", [UtilityName.A, UtilityName.APM])
@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_no_construction_is_below_the_optimum(construction, utility):
    gaps = []
    for seed, _, reached, best in built(construction, utility):
        assert reached >= best - ROUNDING, f"seed {seed}"
        gaps.append((seed, reached - best))
    uniform, zipf = (fmean(gap for seed, gap in gaps if seed % 2 == odd) for odd in (0, 1))
    met = sum(gap <= ROUNDING for _, gap in gaps)
    print(
        f"\n{construction}, {utility}: mean gap {uniform:.3f} of an average channel for uniform counts, {zipf:.3f} for"
        f" Zipf; worst {max(gap for _, gap in gaps):.3f}; optimal in {met} of {len(gaps)}"
    )


@pytest.mark.parametrize("construction", [Construction.SCAN, Construction.REDIST])
def test_minding_balance_alone_leaves_no_more_than_the_heaviest_key_between_channels(construction):
    # By induction. On the emptiest channel a key of load l would leave max - min at what it was, or at l: the channel
    # it makes the fullest stands at most l above what was the least. The channel that is chosen is no worse.
    for seed, problem, reached, _ in built(construction, UtilityName.A):
        assert reached <= problem.counts[0] * problem.channels / problem.counts.sum() + ROUNDING, f"seed {seed}"


@pytest.mark.parametrize("utility", [UtilityName.A, UtilityName.APM])
@pytest.mark.parametrize("construction", [Construction.READJ, Construction.READJ_PRINTED])
def test_readjusting_never_ends_less_even_than_it_began(construction, utility):
    # Every readjustment must lower max - min (Algorithm 4).
    for seed, problem, reached, _ in built(construction, utility):
        assert reached <= spread(problem, problem.start) + ROUNDING, f"seed {seed}"


@pytest.mark.parametrize("utility", [UtilityName.A, UtilityName.APM])
def test_of_the_papers_three_readj_is_nearest_the_optimum(utility):
    # The paper has the best balance from readj: b 1.2, against 1.32 from scan and redist (LLL, defaults). Its mean gap
    # is a tenth (A) and a fifth (APM) of the next one's here; half is asked.
    readj = mean_gap(Construction.READJ, utility)
    assert readj <= min(mean_gap(Construction.SCAN, utility), mean_gap(Construction.REDIST, utility)) / 2
