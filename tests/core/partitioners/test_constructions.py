"""Every construction of the paper against its literal form, and what sets each apart."""

import os
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.frequencies.exact import KeyCounts, frequencies_of
from adapt.core.partitioners.consistent import ConsistentHash
from adapt.core.partitioners.construct import CONSTRUCTIONS
from adapt.core.partitioners.hybrid import HybridPartitioner
from adapt.core.partitioners.names import Construction, UtilityName
from adapt.core.partitioners.problem import Problem
from adapt.core.resources.functions import Resources

from .literal import LITERAL

LETTERS = ["".join(letters) for letters in product("CLQ", repeat=3)]
UTILITIES = list(UtilityName)
of_the_paper = pytest.mark.parametrize("construction", [Construction(name) for name in LITERAL])


def random_problem(seed: int, most_keys: int, most_channels: int, most_count: int) -> Problem:
    """A step of any kind: growing, shrinking or neither; keys new, kept, departed and gone; many equal counts."""
    random = np.random.default_rng(seed)
    keys = int(random.integers(1, most_keys + 1))
    before, after = random.integers(1, most_channels + 1, 2).tolist()
    counts = random.integers(1, int(random.choice([2, 9, most_count])) + 1, keys)
    counted = frequencies_of(KeyCounts(pa.array([f"k{key}" for key in range(keys)]), counts, int(counts.sum())))
    tracked = counted.keys.filter(pa.array(random.random(keys) < random.choice([0.6, 0.9, 1])))
    explicit = {f"k{key}": int(random.integers(before)) for key in range(keys + 1) if random.random() < 0.6}
    current = HybridPartitioner(explicit, ConsistentHash(before, 5))
    resources = Resources.parse(str(random.choice(LETTERS)), random.choice([1.1, 1.2, 2, 3], 3).tolist())
    utility = UTILITIES[int(random.integers(len(UTILITIES)))]
    moves = int(random.integers(1, 4)) if random.random() < 0.2 else None
    return Problem.of(current, ConsistentHash(after, 5), counted, tracked, resources, utility, moves)


@of_the_paper
@pytest.mark.parametrize("first", range(0, 2400, 600))
def test_the_mapping_is_that_of_the_literal_form(construction, first):
    for seed in range(first, first + 600):
        problem = random_problem(seed, most_keys=12, most_channels=6, most_count=99)
        assert CONSTRUCTIONS[construction](problem).tolist() == LITERAL[construction](problem), f"seed {seed}"


@of_the_paper
@pytest.mark.parametrize("letters", LETTERS)
def test_the_mapping_is_that_of_the_literal_form_for_every_choice_of_functions(construction, letters):
    counts = np.array([9, 7, 7, 4, 2, 2, 2, 1])
    counted = frequencies_of(KeyCounts(pa.array(list("abcdefgh")), counts, int(counts.sum())))
    current = HybridPartitioner({"a": 0, "b": 0, "c": 1, "d": 2, "gone": 1}, ConsistentHash(3, 5))
    tracked = counted.keys.filter(pa.array([True] * 3 + [False] + [True] * 3 + [False]))
    for utility in UtilityName:
        problem = Problem.of(current, ConsistentHash(4, 5), counted, tracked, Resources.parse(letters), utility)
        assert CONSTRUCTIONS[construction](problem).tolist() == LITERAL[construction](problem)


@pytest.mark.skipif("ADAPT_SOAK" not in os.environ, reason="the long tier")
@of_the_paper
@pytest.mark.parametrize("seed", range(100_000, 100_300))
def test_the_mapping_of_larger_instances_is_that_of_the_literal_form(construction, seed):
    problem = random_problem(seed, most_keys=60, most_channels=16, most_count=10_000)
    assert CONSTRUCTIONS[construction](problem).tolist() == LITERAL[construction](problem)
