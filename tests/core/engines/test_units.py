"""Units of engines: on any number of workers they are where the engine's own placement puts their keys."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.engines.flink.scheme import FlinkPartitioner
from adapt.core.engines.names import Engine
from adapt.core.engines.risingwave.scheme import RisingWavePartitioner
from adapt.core.engines.units import EngineUnits
from adapt.core.errors import UsageError

KEYS = pa.array([*(f"user-{number}" for number in range(2_000)), "", None])


def units(engine, pool, per_worker=None, groups=None):
    return EngineUnits.of_pool(engine, pool, per_worker, groups, 64)


@given(st.integers(1, 40), st.integers(40, 300))
def test_key_groups_follow_the_parallelism_as_in_flink(workers, groups):
    job = units(Engine.FLINK, 40, groups=groups)
    placed = job.owners(workers)[job.partitioner().channels_of(KEYS)]
    assert np.array_equal(placed, FlinkPartitioner(workers, groups).channels_of(KEYS))


@given(st.integers(1, 256))
def test_vnodes_are_those_of_a_fragment(workers):
    job = units(Engine.RISINGWAVE, 256)
    placed = job.owners(workers)[job.partitioner().channels_of(KEYS)]
    assert np.array_equal(placed, RisingWavePartitioner(workers).channels_of(KEYS))


def test_partitions_keep_their_keys():
    """Kafka deals ranges of partitions, the first ones longer; Spark deals one after another."""
    topic, shuffle = units(Engine.KAFKA, 3, per_worker=4), units(Engine.SPARK, 3)
    assert (topic.count, topic.partitioner().channels, shuffle.count) == (12, 12, 200)
    assert topic.owners(5).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4]
    assert shuffle.owners(3)[:7].tolist() == [0, 1, 2, 0, 1, 2, 0]
    assert units(Engine.FLINK, 4).count == 128
    assert "Flink places 128 key groups" in units(Engine.FLINK, 4).sentence
    assert units(Engine.kinesis_over((0, 2**126, 2**127)), 5).count == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((Engine.PULSAR, 4), "pulsar has no fixed units of work"),
        ((Engine.FLINK, 4, 64), "--partitions does not set the key groups of flink; give max-parallelism"),
        ((Engine.RISINGWAVE, 4, 64), "--partitions does not set the vnodes of risingwave"),
        ((Engine.KAFKA, 4, None, 128), "max-parallelism is the number of Flink's key groups; kafka has partitions"),
        ((Engine.FLINK, 4, None, 3), "--max-parallelism must be from 4"),
    ],
)
def test_units_that_cannot_be_are_refused(arguments, said):
    with pytest.raises(UsageError, match=said):
        units(*arguments)
