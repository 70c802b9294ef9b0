"""The audit of a trace: of all keys or a sample, in this process or on Spark."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.engines.names import Engine
from adapt.core.engines.registry import definition_of
from adapt.core.errors import BadInput
from adapt.traces.counting import partitions
from adapt.traces.counting.count import Counting, count_trace
from adapt.traces.counting.partitions import audited
from adapt.traces.spark.session import SparkOptions
from tests.traces.small_traces import write_trace

ROWS = 6_000


def topic(folder, keys, partition):
    trace = write_trace(folder, {"ts": np.arange(len(keys)) * 1000, "key": keys, "partition": partition})
    return trace, count_trace(trace, Counting(epsilon=0.001))


@pytest.fixture
def split(tmp_path):
    """A topic that two clients write, with null keys and rows without a partition."""
    chance = np.random.default_rng(1)
    texts = pa.array([f"k{at}" for at in (2_000 ** chance.random(ROWS)).astype(int)])
    homes = [definition_of(engine).placement(8, None).channels_of(texts) for engine in (Engine.SARAMA, Engine.KAFKA)]
    partition = np.where(chance.random(ROWS) < 0.7, *homes)
    nulls, unknown = chance.random(ROWS) < 0.05, chance.random(ROWS) < 0.1
    keys = pa.array([None if is_null else key for key, is_null in zip(texts.to_pylist(), nulls, strict=True)])
    trace, counted = topic(tmp_path / "t.trace", keys, pa.array(partition.astype(np.int32), mask=unknown))
    return trace, counted, np.bincount(partition[~unknown], minlength=8)


@pytest.mark.usefixtures("spark")
def test_a_sample_of_keys_gives_the_same_answer_wherever_it_runs(split, monkeypatch):
    trace, counted, loads = split
    whole = audited(trace, counted, 8)
    assert [each.name for each in whole.producers] == ["Sarama's FNV-1a", "Java's murmur2"]
    assert whole.producers[0].share.share == pytest.approx(0.7, abs=0.02)
    assert whole.loads == pytest.approx(list(loads / loads.sum()))
    monkeypatch.setattr(partitions, "MOST_KEYS", 500)
    some = audited(trace, counted, 8)
    assert some.loads == whole.loads
    assert some.split_keys == pytest.approx(whole.split_keys, rel=0.1)
    assert some.producers[0].share.low <= 0.7 <= some.producers[0].share.high
    assert audited(trace, counted, 8, spark_options=SparkOptions(in_process_rows=0)) == some


def test_hashed_keys_and_unknown_partitions_have_no_audit(tmp_path):
    trace, counted = topic(tmp_path / "t.trace", ["a", "b"], pa.array([None, None], pa.int32()))
    assert audited(trace, counted, 2) is None
    known, counted = topic(tmp_path / "k.trace", ["a", "b"], pa.array([0, 1], pa.int32()))
    assert audited(known, counted, 2) is not None
    made = replace(known.manifest.made, parameters={"cleaning": {"hash_keys": "SHA-256"}})
    assert audited(replace(known, manifest=replace(known.manifest, made=made)), counted, 2) is None


def test_numbers_that_are_no_partitions_are_refused(tmp_path):
    trace, counted = topic(tmp_path / "t.trace", ["a", "b"], pa.array([0, 2**31 - 1], pa.int32()))
    with pytest.raises(BadInput, match=r"t.trace: 2,147,483,647 is not a partition; ingest again"):
        audited(trace, counted, 2)
