"""Placements: what is counted, and where partitions are then."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.elastic.policies.placements import Counting, PlannedPlacement, range_placement
from adapt.core.errors import UsageError
from adapt.core.partitioning.build import Recipe
from adapt.core.partitioning.schemes.names import Construction, Scheme

PARTITIONS = 20


def planned(scheme=Scheme.HYBRID, costed=False):
    recipe = Recipe(scheme, Construction.SCAN, max_pins=3 if scheme is Scheme.HYBRID else None, replicas=50)
    return PlannedPlacement(recipe, PARTITIONS, Counting(10.0, 1e-2), costed)


def counted(placement, partitions, cost_s=-1.0, at_s=0.0):
    partitions = np.array(partitions, np.int32)
    placement.count(partitions, np.full(len(partitions), cost_s), np.full(len(partitions), at_s))


@given(st.integers(1, 30), st.integers(1, 12))
def test_ranges_are_those_of_kafka(partitions, workers):
    owners = range_placement(partitions).place(workers).owners
    for worker, range_of in enumerate(np.array_split(np.arange(partitions), workers)):
        assert np.flatnonzero(owners == worker).tolist() == range_of.tolist()


@pytest.mark.parametrize("scheme", [Scheme.UNIFORM, Scheme.CONSISTENT, Scheme.HYBRID, Scheme.BOUNDED, Scheme.JUMP])
def test_the_first_plan_is_hashing_and_any_scheme_follows_the_workers(scheme):
    placement = planned(scheme)
    for workers in (3, 5, 2):
        placed = placement.place(workers)
        assert set(placed.owners.tolist()) <= set(range(workers))
        assert len(placed.owners) == len(placed.weights) == PARTITIONS
        counted(placement, [1, 1, 1, 2, 3])
    assert placed.weights[:4].tolist() == [0, 6, 2, 2]


def test_heavy_partitions_that_hashing_brings_together_are_taken_apart():
    placement = planned()
    hashed = placement.place(3).owners
    together = np.flatnonzero(hashed == np.bincount(hashed).argmax())[:3]
    counted(placement, np.repeat(together, 100))
    assert len(set(placement.place(3).owners[together].tolist())) == 3


def test_what_came_long_ago_counts_no_longer():
    placement = planned()
    counted(placement, [7] * 50, at_s=1.0)
    counted(placement, [8] * 50, at_s=8.0)
    assert np.flatnonzero(placement.place(2).weights).tolist() == [7, 8]
    counted(placement, [9], at_s=100.0)
    assert np.flatnonzero(placement.place(2).weights).tolist() == [9]


def test_tuples_weigh_what_they_cost_where_they_say_so():
    placement = planned(costed=True)
    counted(placement, [1, 1, 1], 0.5)
    counted(placement, [2], 4.0)
    assert placement.place(2).weights[[1, 2]].tolist() == [1.5, 4.0]


@given(st.lists(st.tuples(st.integers(0, PARTITIONS - 1), st.floats(0, 0.5)), max_size=60))
@settings(max_examples=30)
def test_few_tuples_are_counted_as_they_are(tuples):
    placement, at_s = planned(), 0.0
    for partition, later_s in tuples:
        at_s = min(at_s + later_s, 9.9)
        counted(placement, [partition], at_s=at_s)
    expected = np.bincount([partition for partition, _ in tuples], minlength=PARTITIONS)
    assert placement.place(2).weights.tolist() == expected.tolist()


def test_counting_that_counts_nothing_is_refused():
    for wrong in (lambda: Counting(0.0), lambda: Counting(1.0, 0.0), lambda: Counting(1.0, 1.0)):
        with pytest.raises(UsageError):
            wrong()
