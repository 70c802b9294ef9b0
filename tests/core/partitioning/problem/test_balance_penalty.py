"""The folded balance penalty against Eqs. 19 and 20 word for word."""

from math import prod
from statistics import fmean

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.problem import Balance, Problem
from adapt.core.partitioning.schemes.consistent import ConsistentHash

BETA = {"C": lambda f: f**0, "L": lambda f: f, "Q": lambda f: f * f}


def balance_of(counts, channels, letters, alphas=1.2):
    keys = pa.array(range(len(counts)))
    counted = frequencies_of(KeyCounts(keys, np.array(counts), sum(counts)))
    ring = ConsistentHash(channels, replicas=5)
    return Balance.from_problem(
        Problem.from_counts(ring, ring, counted, counted.keys, Resources.parse(letters, alphas))
    )


def folded(balance, placed, channels):
    """rho by the folded form."""
    product = 1.0
    for loads, power in zip(balance.loads, balance.powers, strict=True):
        load = np.bincount(placed, weights=loads, minlength=channels)
        product *= ((load.max() - load.min()) / load.sum()) ** power
    return balance.scale * product ** (1 / balance.root) if balance.root else 0.0


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=8).map(lambda counts: sorted(counts, reverse=True)),
    st.text("CLQ", min_size=3, max_size=3),
    st.integers(2, 5),
    st.tuples(*[st.sampled_from([1.1, 1.2, 2.0])] * 3),
    st.data(),
)
def test_folding_keeps_the_penalty(counts, letters, channels, alphas, data):
    placed = data.draw(st.lists(st.integers(0, channels - 1), min_size=len(counts), max_size=len(counts)))
    factors = []
    for letter, alpha in zip(letters, alphas, strict=True):
        if letter != "C":
            load = [
                sum(BETA[letter](f) for f, i in zip(counts, placed, strict=True) if i == at) for at in range(channels)
            ]
            theta = (alpha - 1) / (1 + alpha / (channels - 1))
            factors.append((max(load) - min(load)) / (theta * fmean(load)))
    rho = prod(factors) ** (1 / len(factors)) if factors else 0
    assert folded(balance_of(counts, channels, letters, alphas), placed, channels) == pytest.approx(rho)


def test_resources_of_one_function_are_one():
    balance = balance_of([5, 3], 4, "LCL")
    assert (balance.loads.tolist(), balance.powers.tolist(), balance.root) == ([[5, 3]], [1], 1)
    two = balance_of([5, 3], 4, "LQL")
    assert (two.loads.tolist(), two.powers.tolist(), two.root) == ([[5, 3], [25, 9]], [2, 1], 3)


def test_only_constant_resources_are_always_balanced():
    assert folded(balance_of([5], 3, "CCC"), [0], 3) == 0


def test_a_tolerance_of_one_still_tells_placements_apart():
    balance = balance_of([5, 3], 2, "LLL", 1)
    assert folded(balance, [0, 0], 2) > folded(balance, [0, 1], 2) > 0
