"""Parts of a stream, tallied apart and added up, against the metrics of all its keys at once."""

from functools import reduce
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.errors import BadInput, UsageError
from adapt.core.partitioning.measures.floors import floor_keys
from adapt.core.partitioning.measures.metrics import evaluate
from adapt.core.partitioning.measures.resources import ResourceFunction, Resources
from adapt.core.partitioning.measures.tally import Tally, tallies
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.uniform import UniformPartitioner
from tests.tiers import examples

RING = ConsistentHash(3, replicas=20)
LETTERS = st.text("CLQ", min_size=3, max_size=3)
KEYS = [None, "", *(f"k{number}" for number in range(30))]
MAPPED = st.dictionaries(st.sampled_from([*KEYS, "never seen"]), st.integers(0, 2), max_size=8)
COUNTS = st.dictionaries(st.sampled_from(KEYS), st.integers(0, 10**6), min_size=1)


def tallied(partitioners, counted, cuts, resources):
    """The tallies of the keys, cut into parts, each an arbitrary one of these first."""
    keys, counts = pa.array(list(counted), pa.string()), np.array(list(counted.values()))
    ends = [0, *sorted(cut % (len(keys) + 1) for cut in cuts), len(keys)]
    parts = [tallies(partitioners, keys[first:end], counts[first:end], resources) for first, end in pairwise(ends)]
    return [reduce(Tally.plus, of_one) for of_one in zip(*parts, strict=True)]


@examples(30)
@given(COUNTS, MAPPED, MAPPED, st.lists(st.integers(0, 99), max_size=3), LETTERS)
def test_parts_add_up_to_the_metrics_of_the_whole(counted, first, second, cuts, letters):
    resources = Resources.parse(letters, (1.2, 1.1, 1.5))
    partitioners = [UniformPartitioner(4), HybridPartitioner(first, RING), HybridPartitioner(second, RING)]
    whole = tallied(partitioners, counted, cuts, resources)
    keys, counts = pa.array(list(counted), pa.string()), np.array(list(counted.values()))
    frequencies = frequencies_of(KeyCounts(keys, counts, int(counts.sum())))
    before = None
    for partitioner, tally in zip(partitioners, whole, strict=True):
        expected = evaluate(partitioner, frequencies, resources, before)
        for name, wanted in expected.as_data().items():
            found = tally.metrics(partitioner, resources).as_data()[name]
            assert found == wanted or found == pytest.approx(wanted, rel=1e-9), name
        assert tally.keys == len(counted)
        before = partitioner


@examples(40)
@given(COUNTS, MAPPED, st.lists(st.integers(0, 99), max_size=3), st.randoms(use_true_random=False))
def test_neither_cut_nor_order_changes_a_digit(counted, mapped, cuts, random):
    resources = Resources.parse("LQL")
    weights = {key: count * 0.1 for key, count in counted.items()}
    mixed = list(weights.items())
    random.shuffle(mixed)
    partitioners = [RING, HybridPartitioner(mapped, RING)]
    (_, whole), (_, parts) = (
        tallied(partitioners, weights, [], resources),
        tallied(partitioners, dict(mixed), cuts, resources),
    )
    assert whole.metrics(partitioners[1], resources) == parts.metrics(partitioners[1], resources)


def test_it_takes_memory_by_channels_and_not_by_keys():
    keys, counts = pa.array(np.arange(100_000)), np.arange(100_000) + 1
    [tally] = tallies([RING], keys, counts, Resources())
    assert tally.heaviest.tolist() == list(range(100_000, 100_000 - floor_keys(RING.channels), -1))
    assert tally.loads[ResourceFunction.LINEAR].limbs.size < 20
    assert len(tally.tracked) == 0


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (-1.0, "must be .* -1"),
        (np.nan, "must be .* nan"),
        (np.inf, "must be .* inf"),
        (1e200, "has a load Q of inf"),
    ],
)
def test_a_count_that_is_none_is_refused(count, said):
    with pytest.raises(BadInput, match=f"key 'b' {said}"):
        tallies([RING], pa.array(["a", "b"]), np.array([1.0, count]), Resources.parse("QQQ"))


def test_keys_of_another_type_than_the_explicit_ones_are_refused():
    with pytest.raises(UsageError, match="int64 keys, but the pinned keys are string"):
        tallies([HybridPartitioner({"a": 1}, RING)], pa.array([1]), np.array([1]), Resources())
