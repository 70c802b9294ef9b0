"""What a comparison shows first."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.partitioning.compare import compare_schemes
from adapt.core.partitioning.schemes.names import Construction
from adapt.core.verdict.compared import best_plan, best_sentence


@pytest.fixture(scope="module")
def comparisons():
    """Keys that can be placed, and one that is too heavy."""
    found = []
    for counts in ([300, 290, 280, 270, 260, 250] + [1] * 400, [900] + [10] * 99):
        keys = pa.array([f"key{at}" for at in range(len(counts))])
        stream = frequencies_of(KeyCounts(keys, np.array(counts), sum(counts)))
        found.append(compare_schemes(stream, [2, 4], constructions=[Construction.LEVEL]))
    return found


def test_the_best_of_whole_keys_is_named_or_the_best_that_splits_them(comparisons):
    placed, split = (best_sentence(each.table(), 4, 1.2) for each in comparisons)
    assert placed.startswith("best is hybrid (level), imbalance 1.0")
    assert "406 pinned keys" in placed
    assert "Best with splitting is w-choices, imbalance 1.00" in split
    assert best_sentence(comparisons[0].table(), 3, 1.2) == ""


def test_the_plan_that_stands_for_the_comparison_is_the_one_that_the_sentence_names(comparisons):
    plans = comparisons[0].plans
    for limit in (1.0, 1.2, 2.0):
        plan = best_plan(plans, 4, limit)
        name = f"{plan.scheme} ({plan.construction})" if plan.construction else plan.scheme
        assert f" is {name}, imbalance {plan.metrics['imbalance']:.3f}" in best_sentence(
            comparisons[0].table(), 4, limit
        )
    most_even = min(each.metrics["imbalance"] for each in plans)
    assert best_plan(plans, 4, 1.0).metrics["imbalance"] == most_even
    assert best_plan(plans, 4, 100.0).metrics["m"] == min(each.metrics["m"] for each in plans)
    assert best_plan(plans, 2, 1.2) is None
