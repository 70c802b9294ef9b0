"""One construction step as arrays."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.partitioning.measures.imbalance import channel_loads
from adapt.core.partitioning.measures.population import Population
from adapt.core.partitioning.measures.resources import ResourceFunction, Resources
from adapt.core.partitioning.problem.problem import Problem, explicit_map
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner

COUNTED = frequencies_of(KeyCounts(pa.array(["a", "b", "c", "d", None]), np.array([9, 7, 5, 3, 1]), 25))


def ring(channels):
    return ConsistentHash(channels, replicas=5)


def test_a_step_holds_what_algorithms_2_to_4_begin_with():
    before = HybridPartitioner({"a": 3, "c": 0, "d": 2, None: 1, "gone": 3}, ring(4))
    after = ring(2)
    problem = Problem.from_counts(before, after, COUNTED, pa.array(["a", "b"]), Resources.parse("QCL"))
    assert problem.counts.tolist() == [9, 7]
    assert problem.home.tolist() == [3, before.channel_of("b")]
    assert problem.hashed.tolist() == [after.channel_of("a"), after.channel_of("b")]
    assert problem.functions == (ResourceFunction.QUADRATIC, ResourceFunction.LINEAR)
    assert problem.loads.tolist() == [[81, 49], [9, 7]]
    assert problem.state.tolist() == [81, 49]
    left = {"c": 25, "d": 9, None: 1, "gone": 0}
    assert problem.owed == sum(state for key, state in left.items() if after.channel_of(key) != before.channel_of(key))
    assert problem.ideal == (81 + 49 + sum(left.values())) / 2


def test_keys_of_removed_channels_start_where_the_ring_sends_them():
    problem = Problem.from_counts(
        HybridPartitioner({"a": 3, "b": 1}, ring(4)), ring(2), COUNTED, pa.array(["a", "b"]), Resources()
    )
    assert problem.start.tolist() == [ring(2).channel_of("a"), 1]


@pytest.mark.parametrize("letters", ["LLL", "LQC"])
def test_the_residual_is_what_the_untracked_keys_load_onto_the_ring(letters):
    resources = Resources.parse(letters)
    tracked = pa.array(["b", None])
    problem = Problem.from_counts(ring(2), ring(3), COUNTED, tracked, resources)
    others = frequencies_of(KeyCounts(pa.array(["a", "c", "d"]), np.array([9, 5, 3]), 17))
    loads = channel_loads(ring(3).channels_of(others.keys), others, resources, 3)
    assert problem.residual().tolist() == loads.tolist()


def test_the_residual_of_lossy_counts_includes_what_was_not_listed():
    lossy = replace(COUNTED, total=100, epsilon=0.1, complete_above=10, distinct=40)
    residual = Problem.from_counts(ring(2), ring(3), lossy, lossy.keys, Resources.parse("LLC")).residual()
    assert residual.sum(axis=1) == pytest.approx([75, 75, Population.from_counts(lossy).unlisted])


def test_only_a_hybrid_partitioner_has_an_explicit_map():
    assert dict(explicit_map(HybridPartitioner({"a": 1}, ring(2)))) == {"a": 1}
    assert dict(explicit_map(ring(2))) == {}
