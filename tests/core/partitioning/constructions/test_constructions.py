"""Every construction of the paper against its literal form, and what sets each apart."""

import os
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import MeasuredColumn
from adapt.core.partitioning.constructions.readj import readjust
from adapt.core.partitioning.constructions.registry import CONSTRUCTIONS
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.problem import Balance, Problem
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.names import Construction, UtilityName

from .literal import LITERAL

SOAK = bool(os.environ.get("ADAPT_SOAK"))
LETTERS = ["".join(letters) for letters in product("CLQ", repeat=3)]
UTILITIES = list(UtilityName)
of_the_paper = pytest.mark.parametrize("construction", [Construction(name) for name in LITERAL])


@cache
def random_problem(seed: int, most_keys: int, most_channels: int, most_count: int, columns: int = 0) -> Problem:
    """A step of any kind: growing, shrinking or neither; keys new, kept, departed and gone; many equal counts.

    Of its resources some are measured by one of so many columns, if there are any.
    """
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
    if columns:
        measured = tuple(column_of(random, f"column {at}", keys, most_count) for at in range(columns))
        counted = replace(counted, measured=measured)
        sources = [None, *(f"column {at}" for at in range(columns)), "count"]
        resources = replace(resources, measured=tuple(sources[int(random.integers(columns + 2))] for _ in range(3)))
    return Problem.from_counts(current, ConsistentHash(after, 5), counted, tracked, resources, utility)


@of_the_paper
def test_the_mapping_is_that_of_the_literal_form(construction, promise):
    for seed in range(cases := 2400 if SOAK else 120):
        problem = random_problem(seed, most_keys=12, most_channels=6, most_count=99)
        assert CONSTRUCTIONS[construction](problem).tolist() == LITERAL[construction](problem), f"seed {seed}"
    promise("constructions").checked(cases)


@of_the_paper
def test_the_mapping_with_pinned_keys_is_that_of_the_literal_form(construction, promise):
    for seed in range(cases := 600 if SOAK else 60):
        problem = random_problem(seed, most_keys=12, most_channels=6, most_count=99)
        random = np.random.default_rng(seed)
        keys, channels = len(problem.counts), problem.channels
        pinned = np.where(random.random(keys) < 0.3, random.integers(0, channels, keys), -1).astype(np.int32)
        problem = replace(problem, pinned=pinned)
        placed = CONSTRUCTIONS[construction](problem)
        assert placed.tolist() == LITERAL[construction](problem), f"seed {seed}"
        assert (placed == pinned)[pinned >= 0].all()
    promise("constructions").checked(cases)


@of_the_paper
def test_the_mapping_within_a_limit_over_all_keys_is_that_of_the_literal_form(construction, promise):
    held = 0
    for seed in range(cases := 600 if SOAK else 60):
        free = random_problem(seed, most_keys=12, most_channels=6, most_count=99)
        random = np.random.default_rng(seed)
        budget = float(random.integers(0, int(free.state.sum()) + 1))
        problem = replace(free, budget=lambda most=budget: most)
        placed = CONSTRUCTIONS[construction](problem)
        assert placed.tolist() == LITERAL[construction](problem), f"seed {seed}"
        held += placed.tolist() != CONSTRUCTIONS[construction](free).tolist()
    assert held > 6
    promise("constructions").checked(cases)


def column_of(random, name: str, keys: int, most: int) -> MeasuredColumn:
    """Whole numbers or fractions of two, many of them equal, some nothing; other keys may have some too."""
    values = random.integers(0, int(random.choice([2, 9, most])) + 1, keys) / random.choice([1.0, 8.0])
    return MeasuredColumn(name, values, float(values.sum() + random.integers(0, 2) * 50))


@of_the_paper
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_the_mapping_of_measured_loads_is_that_of_the_literal_form(construction, columns, promise):
    distinct = 0
    for seed in range(cases := 400 if SOAK else 40):
        problem = random_problem(seed, most_keys=10, most_channels=5, most_count=99, columns=columns)
        distinct = max(distinct, len(Balance.from_problem(problem).loads))
        assert CONSTRUCTIONS[construction](problem).tolist() == LITERAL[construction](problem), f"seed {seed}"
    assert distinct == 3
    promise("constructions").checked(cases)


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize("letters", ["LLL", "LCL", "CCC"])
def test_a_measured_load_that_is_the_count_has_the_mapping_of_a_linear_one(construction, letters):
    for seed in range(60 if SOAK else 15):
        random = np.random.default_rng(seed)
        counts = random.integers(0, 99, 20)
        counted = frequencies_of(KeyCounts(pa.array(range(20)), counts, int(counts.sum())))
        counted = replace(counted, measured=(MeasuredColumn("tuples", counted.count_low.astype(float), counted.total),))
        before, after = ConsistentHash(int(random.integers(1, 6)), 5), ConsistentHash(int(random.integers(2, 6)), 5)
        linear = Resources.parse(letters)
        measured = replace(linear, measured=tuple("tuples" if letter == "L" else None for letter in letters))
        one, other = (Problem.from_counts(before, after, counted, counted.keys, each) for each in (linear, measured))
        assert other.keys.equals(one.keys)
        assert build(construction, other) == build(construction, one)


@of_the_paper
@pytest.mark.parametrize("letters", LETTERS)
def test_the_mapping_is_that_of_the_literal_form_for_every_choice_of_functions(construction, letters):
    counts = np.array([9, 7, 7, 4, 2, 2, 2, 1])
    counted = frequencies_of(KeyCounts(pa.array(list("abcdefgh")), counts, int(counts.sum())))
    current = HybridPartitioner({"a": 0, "b": 0, "c": 1, "d": 2, "gone": 1}, ConsistentHash(3, 5))
    tracked = counted.keys.filter(pa.array([True] * 3 + [False] + [True] * 3 + [False]))
    for utility in UTILITIES if SOAK else [UTILITIES[LETTERS.index(letters) % len(UTILITIES)]]:
        problem = Problem.from_counts(
            current, ConsistentHash(4, 5), counted, tracked, Resources.parse(letters), utility
        )
        assert CONSTRUCTIONS[construction](problem).tolist() == LITERAL[construction](problem)


@pytest.mark.skipif("ADAPT_SOAK" not in os.environ, reason="the long tier")
@of_the_paper
def test_the_mapping_of_larger_instances_is_that_of_the_literal_form(construction, promise):
    for seed in range(100_000, 100_200):
        problem = random_problem(seed, most_keys=60, most_channels=16, most_count=10_000)
        assert build(construction, problem) == LITERAL[construction](problem), f"seed {seed}"
    promise("constructions").checked(200)


def step_of(counts, before, channels=None, **options):
    """Keys a, b, c ... of these counts, all tracked, from these channels; channels as many as before if not given."""
    names = [chr(ord("a") + at) for at in range(len(counts))]
    counted = frequencies_of(KeyCounts(pa.array(names), np.array(counts), sum(counts)))
    current = HybridPartitioner(dict(zip(names, before, strict=True)), ConsistentHash(max(before) + 1, 5))
    ring = ConsistentHash(channels or current.channels, 5)
    return Problem.from_counts(current, ring, counted, counted.keys, Resources(), **options)


def build(construction, problem):
    return CONSTRUCTIONS[construction](problem).tolist()


def test_readj_moves_the_first_of_two_equal_keys():
    assert build(Construction.READJ, step_of([3, 3], [0, 0], 2)) == [1, 0]


def test_readj_takes_the_most_gain_for_the_count_that_it_moves():
    """Loads are 7 and 3. Swapping a and c levels them to 6 and 4 by moving 1; moving b, to 4 and 6 by moving 3."""
    assert build(Construction.READJ, step_of([4, 3, 3], [0, 0, 1])) == [1, 0, 0]


def test_readj_leaves_balanced_keys_alone():
    assert build(Construction.READJ, step_of([3, 3, 3, 3], [0, 1, 0, 1])) == [0, 1, 0, 1]


def test_readj_stops_where_two_channels_tie_at_the_least_and_one_key_is_the_most():
    """Moving any key leaves one of the two as empty as it was, and no other channel can take a: nothing lowers rho."""
    counts, before = [9, 2, 2, 2, 1, 1], [0, 1, 1, 1, 2, 3]
    for utility in UtilityName:
        assert build(Construction.READJ, step_of(counts, before, utility=utility)) == before


def test_the_printed_gain_can_choose_another_mapping():
    """What is kept depends on the candidate kept before it, so the mapping is another, as the literal forms agree."""
    problems = [random_problem(seed, most_keys=12, most_channels=6, most_count=99) for seed in range(200)]
    differ = [p for p in problems if build(Construction.READJ, p) != build(Construction.READJ_PRINTED, p)]
    assert len(differ) > 10


@of_the_paper
def test_no_key_stays_on_a_channel_that_is_gone(construction):
    problem = step_of([5, 4, 3, 2, 1], [4, 3, 2, 1, 0], 2)
    assert set(build(construction, problem)) == {0, 1}


@of_the_paper
def test_nothing_tracked_is_nothing_placed(construction):
    problem = random_problem(0, 3, 3, 9)
    nothing = Problem.from_counts(
        ConsistentHash(2, 5), ConsistentHash(3, 5), frequencies_of(KeyCounts(problem.keys[:0], np.array([], int), 0)),
        problem.keys[:0], Resources(),
    )  # fmt: skip
    assert build(construction, nothing) == []


@of_the_paper
def test_keys_without_weight_have_a_channel_all_the_same(construction):
    counted = frequencies_of(KeyCounts(pa.array(["a", "b", "c"]), np.array([5, 0, 0]), 5))
    problem = Problem.from_counts(ConsistentHash(2, 5), ConsistentHash(3, 5), counted, counted.keys, Resources())
    assert all(0 <= channel < 3 for channel in build(construction, problem))
    assert build(construction, problem) == LITERAL[construction](problem)


@of_the_paper
@pytest.mark.parametrize("seed", range(20 if SOAK else 4))
def test_the_scale_of_counts_does_not_matter(construction, seed):
    """Costs are counted in any unit; factors of two keep even the last digit."""
    random = np.random.default_rng(seed)
    counts = random.integers(1, 99, 30)
    keys = pa.array(range(30))
    mappings = []
    for scaled in (counts, counts / 1024):
        counted = frequencies_of(KeyCounts(keys, scaled, scaled.sum()))
        problem = Problem.from_counts(
            ConsistentHash(4, 5), ConsistentHash(6, 5), counted, counted.keys, Resources.parse("LQL")
        )
        mappings.append(build(construction, problem))
    assert mappings[0] == mappings[1]


@pytest.mark.parametrize("construction", [Construction.READJ, Construction.READJ_PRINTED])
@pytest.mark.parametrize("letters", ["LLL", "LQL"])
def test_readj_ends_where_costs_have_fractions_that_no_sum_of_them_is_exact_for(construction, letters):
    random = np.random.default_rng(0)
    for _ in range(100 if SOAK else 25):
        costs = random.integers(1, 9, 30) * 0.1
        counted = frequencies_of(KeyCounts(pa.array(range(30)), costs, costs.sum()))
        problem = Problem.from_counts(
            ConsistentHash(3, 5), ConsistentHash(4, 5), counted, counted.keys, Resources.parse(letters)
        )
        before, after = (np.bincount(at, costs, 4) for at in (problem.start, CONSTRUCTIONS[construction](problem)))
        assert letters != "LLL" or np.ptp(after) <= np.ptp(before)


def test_readj_goes_on_from_any_mapping():
    problem = random_problem(3, most_keys=40, most_channels=6, most_count=99)
    done = readjust(problem, as_printed=False)
    assert readjust(problem, as_printed=False, channel_of=done).tolist() == done.tolist()
    assert readjust(problem, as_printed=False, channel_of=problem.start).tolist() == done.tolist()
