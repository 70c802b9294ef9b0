"""What the scan construction promises."""

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.partitioning.constructions.redist import scan as scan_problem
from adapt.core.partitioning.measures.resources import Resources
from adapt.core.partitioning.problem.problem import Problem
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.explicit import ExplicitMap
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.names import UtilityName

KEYS = "abcdefghij"


def ring(channels):
    return ConsistentHash(channels, replicas=5)


def scan(current, hash_c, f, tracked, resources, utility):
    """The partitioner that scan builds from counts as a dictionary."""
    counted = frequencies_of(KeyCounts(pa.array(list(f)), np.array(list(f.values())), sum(f.values())))
    keys = pa.array(sorted(tracked, key=lambda key: -f[key]), counted.keys.type)
    problem = Problem.from_counts(current, hash_c, counted, keys, resources, utility)
    return HybridPartitioner(ExplicitMap(keys, scan_problem(problem)), hash_c)


@st.composite
def instances(draw):
    """A step of any kind: growing or shrinking, with keys new, kept, departed and gone, and many equal counts."""
    f = dict(
        zip(
            KEYS,
            draw(st.lists(st.integers(1, draw(st.sampled_from([2, 9, 99]))), min_size=1, max_size=10)),
            strict=False,
        )
    )
    before, after = draw(st.integers(1, 5)), draw(st.integers(1, 5))
    tracked = draw(st.sets(st.sampled_from(sorted(f))))
    explicit = draw(st.dictionaries(st.sampled_from([*KEYS, "gone"]), st.integers(0, before - 1)))
    return f, before, after, tracked, explicit


def test_light_keys_offset_the_heavy_one():
    built = scan(ring(2), ring(2), {"a": 5, "b": 3, "c": 2}, "abc", Resources(), UtilityName.A)
    assert built.channel_of("b") == built.channel_of("c") != built.channel_of("a")


def test_equal_channels_are_taken_from_the_lowest():
    built = scan(ring(3), ring(3), {"a": 5, "b": 4, "c": 3}, "abc", Resources(), UtilityName.A)
    assert dict(built.explicit) == {"a": 0, "b": 1, "c": 2}


@settings(deadline=None)
@given(instances())
def test_every_tracked_key_is_mapped_and_nothing_else(instance):
    f, before, after, tracked, explicit = instance
    built = scan(HybridPartitioner(explicit, ring(before)), ring(after), f, sorted(tracked), Resources(), UtilityName.A)
    assert set(built.explicit) == tracked
    assert all(0 <= channel < after for channel in built.explicit.values())


@settings(deadline=None)
@given(instances(), st.integers(2, 1000))
def test_the_scale_of_counts_does_not_matter(instance, scale):
    f, before, after, tracked, explicit = instance
    scaled = {key: count * scale for key, count in f.items()}
    both = [
        scan(
            HybridPartitioner(explicit, ring(before)),
            ring(after),
            counts,
            sorted(tracked),
            Resources(),
            UtilityName.APM,
        ).explicit
        for counts in (f, scaled)
    ]
    assert dict(both[0]) == dict(both[1])


def test_null_and_integers_are_keys():
    built = scan(ring(2), ring(2), {None: 5, 7: 3}, [None, 7], Resources(), UtilityName.A)
    assert dict(built.explicit) == {None: 0, 7: 1}
