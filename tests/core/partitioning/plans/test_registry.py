import pyarrow as pa
import pytest

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.engines.flink.scheme import FlinkPartitioner
from adapt.core.engines.flink_sql.scheme import FlinkSqlPartitioner
from adapt.core.engines.kafka.scheme import KafkaPartitioner
from adapt.core.engines.names import SCHEMES_BY_NAME, Engine
from adapt.core.engines.registry import definition_of, key_groups_of
from adapt.core.engines.spark.scheme import SparkPartitioner
from adapt.core.errors import UsageError
from adapt.core.keys.names import HashName
from adapt.core.partitioning.measures.resources import ResourceFunction
from adapt.core.partitioning.plans.registry import (
    SCHEMES,
    Parts,
    follow,
    make_partitioner,
    max_parallelism_of,
)
from adapt.core.partitioning.schemes.consistent import ConsistentHash
from adapt.core.partitioning.schemes.hybrid import HybridPartitioner
from adapt.core.partitioning.schemes.jump import JumpHash, Maglev, Rendezvous
from adapt.core.partitioning.schemes.key_groups import KeyGroups
from adapt.core.partitioning.schemes.names import MAPPED_SCHEMES, Scheme
from adapt.core.partitioning.schemes.uniform import UniformPartitioner

ALL = list(SCHEMES_BY_NAME.values())
HASHED = sorted(set(ALL) - MAPPED_SCHEMES)
NOBODY = frequencies_of(KeyCounts(pa.array([], pa.string()), pa.array([], pa.int64()).to_numpy(), 0))


def test_every_scheme_is_made():
    assert list(SCHEMES) == list(Scheme)


def test_a_scheme_is_made_of_what_it_needs():
    ring = ConsistentHash(4, 7, HashName.XXHASH64)
    made = {scheme: make_partitioner(scheme, 4, HashName.XXHASH64, 7, max_parallelism=10) for scheme in ALL}
    assert made == {
        Scheme.UNIFORM: UniformPartitioner(4, HashName.XXHASH64),
        Scheme.CONSISTENT: ring,
        **dict.fromkeys(MAPPED_SCHEMES, HybridPartitioner({}, ring)),
        Scheme.JUMP: JumpHash(4, HashName.XXHASH64),
        Scheme.RENDEZVOUS: Rendezvous(4, HashName.XXHASH64),
        Scheme.MAGLEV: Maglev(4, HashName.XXHASH64),
        Scheme.KEY_GROUPS: KeyGroups(4, HashName.XXHASH64, 10),
        Engine.SPARK: SparkPartitioner(4),
        Engine.KAFKA: KafkaPartitioner(4),
        Engine.FLINK: FlinkPartitioner(4, 10),
        **{engine: definition_of(engine).placement(4, None) for engine in list(Engine)[3:]},
        Engine.FLINK_SQL: FlinkSqlPartitioner(4, 10),
    }


@pytest.mark.parametrize("scheme", HASHED)
def test_explicit_keys_of_a_scheme_without_a_map_are_refused(scheme):
    with pytest.raises(UsageError, match=f"scheme {scheme} does not support pinned keys"):
        make_partitioner(scheme, 4, explicit={"a": 1})


@pytest.mark.parametrize("scheme", Scheme)
@pytest.mark.parametrize("channels", [0, -1, 2**31])
def test_an_impossible_number_of_channels_is_refused(scheme, channels):
    with pytest.raises(UsageError, match=f"{channels}|{channels:,}"):
        make_partitioner(scheme, channels)


@pytest.mark.parametrize("scheme", [scheme for scheme in ALL if key_groups_of(scheme)])
def test_key_groups_are_kept_as_long_as_the_channels_fit_in_them(scheme):
    def groups(channels, current, given=None):
        parts = Parts(channels, max_parallelism=given)
        return max_parallelism_of(follow(scheme, NOBODY, ResourceFunction.LINEAR, parts, current))

    before = make_partitioner(scheme, 80)
    assert max_parallelism_of(before) == 128
    assert [groups(n, before) for n in (1, 100, 128, 129)] == [128, 128, 128, 256]
    assert groups(100, None) == groups(100, UniformPartitioner(80)) == 256
    assert groups(100, before, 1000) == 1000
