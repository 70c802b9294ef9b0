"""The price of a placement, against Eqs. 18 to 20 word for word."""

from math import prod
from statistics import fmean

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.frequencies.exact import KeyCounts, frequencies_of
from adapt.core.partitioners.consistent import ConsistentHash
from adapt.core.partitioners.hybrid import HybridPartitioner
from adapt.core.partitioners.placement import Placement
from adapt.core.partitioners.problem import Problem
from adapt.core.resources.functions import Resources

BETA = {"C": lambda f: f**0, "L": lambda f: f, "Q": lambda f: f * f}
KEYS = "abcdefgh"
counts_of_keys = st.lists(st.integers(1, 9), min_size=1, max_size=8).map(
    lambda counts: dict(zip(KEYS, counts, strict=False))
)
letters = st.text("CLQ", min_size=3, max_size=3)


def ring(channels):
    return ConsistentHash(channels, replicas=5)


def problem_of(counts, current, following, resources, tracked=None):
    """The step over counts as a dictionary; all keys are tracked if not said otherwise."""
    keys = pa.array(sorted(tracked or counts, key=lambda key: (-counts[key], key)))
    counted = frequencies_of(KeyCounts(pa.array(list(counts)), np.array(list(counts.values())), sum(counts.values())))
    return Problem.of(current, following, counted, keys, resources)


def literal_rho(placed, counts, channels, letters, alphas):
    """Eqs. 19 and 20 of a partial map; constant resources left out, and an even placement is 0 whatever theta is."""
    factors = []
    for letter, alpha in zip(letters, alphas, strict=True):
        if letter != "C":
            load = [sum(BETA[letter](counts[key]) for key in placed if placed[key] == i) for i in range(channels)]
            theta = (alpha - 1) / (1 + alpha / (channels - 1)) if channels > 1 else 1
            factors.append((max(load) - min(load)) / (theta * fmean(load)))
    return prod(factors) ** (1 / len(factors)) if factors else 0


def literal_gamma(placed, departed, counts, current, next_ring, letter):
    """Eq. 18 of a partial map; a key that stopped coming has f = 0."""
    state = {key: BETA[letter](counts.get(key, 0)) for key in {*counts, *departed}}
    lost = sum(state[key] for key in departed if current.channel_of(key) != next_ring.channel_of(key))
    moved = sum(state[key] for key, channel in placed.items() if current.channel_of(key) != channel)
    return (lost + moved) / (sum(state.values()) / next_ring.channels)


@settings(deadline=None)
@given(counts_of_keys, letters, st.integers(1, 4), st.integers(1, 4), st.data())
def test_penalties_are_the_equations(counts, letters, before, after, data):
    alphas = data.draw(st.tuples(*[st.sampled_from([1.1, 1.2, 2.0])] * 3))
    explicit = data.draw(st.dictionaries(st.sampled_from([*KEYS, "gone"]), st.integers(0, before - 1)))
    current, following = HybridPartitioner(explicit, ring(before)), ring(after)
    departed = [key for key in explicit if key not in counts]
    problem = problem_of(counts, current, following, Resources.parse(letters, alphas))
    placement = Placement(problem)
    placed = {}
    for row, key in enumerate(problem.keys.to_pylist()):
        options = [placed | {key: channel} for channel in range(after)]
        assert placement.balance_penalties(row).tolist() == pytest.approx(
            [literal_rho(option, counts, after, letters, alphas) for option in options]
        )
        assert placement.migration_penalties(row).tolist() == pytest.approx(
            [literal_gamma(option, departed, counts, current, following, letters[0]) for option in options]
        )
        placed = options[data.draw(st.integers(0, after - 1))]
        placement.place(row, placed[key])


def test_only_constant_resources_are_always_balanced():
    placement = Placement(problem_of({"a": 5}, ring(3), ring(3), Resources.parse("CCC")))
    assert placement.balance_penalties(0).tolist() == [0, 0, 0]


def test_a_tolerance_of_one_still_tells_channels_apart():
    placement = Placement(problem_of({"a": 5, "b": 3}, ring(2), ring(2), Resources.parse("LLL", 1)))
    placement.place(0, 0)
    same, other = placement.balance_penalties(1)
    assert same > other > 0


def test_keys_without_weight_cost_nothing():
    placement = Placement(problem_of({"a": 0}, ring(2), ring(2), Resources()))
    assert placement.balance_penalties(0).tolist() == [0, 0]
    assert placement.migration_penalties(0).tolist() == [0, 0]
