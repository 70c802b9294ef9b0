import pytest

from adapt.core.errors import UsageError
from adapt.core.hashing.names import HashName
from adapt.core.partitioners.consistent import ConsistentHash
from adapt.core.partitioners.hybrid import HybridPartitioner
from adapt.core.partitioners.names import Scheme
from adapt.core.partitioners.registry import SCHEMES, make_partitioner
from adapt.core.partitioners.uniform import UniformPartitioner


def test_every_scheme_is_made():
    assert set(SCHEMES) == set(Scheme)


def test_a_scheme_is_made_of_what_it_needs():
    ring = ConsistentHash(4, 7, HashName.XXHASH64)
    made = [make_partitioner(scheme, 4, HashName.XXHASH64, 7) for scheme in Scheme]
    assert made == [UniformPartitioner(4, HashName.XXHASH64), ring, HybridPartitioner({}, ring)]


@pytest.mark.parametrize("scheme", [Scheme.UNIFORM, Scheme.CONSISTENT])
def test_explicit_keys_of_a_scheme_without_a_map_are_refused(scheme):
    with pytest.raises(UsageError, match=f"scheme {scheme} has no explicit map, but 1 keys are"):
        make_partitioner(scheme, 4, explicit={"a": 1})
