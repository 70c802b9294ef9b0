"""What the driver holds: said before the work, refused above the limit, and not exceeded."""

import logging

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import EnvironmentFailure
from adapt.core.out_of_sample.windows import MOST_PANES
from adapt.core.stream import KeyType, Weight
from adapt.traces.counting import lossy as lossily
from adapt.traces.counting.exact import ROWS_A_PARTITION, count_exactly, measure_columns
from adapt.traces.counting.lossy import count_lossy
from adapt.traces.spark import runner, session
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions, check_held, held_bytes, result_bytes, shown
from adapt.traces.store.frequencies import HEAVIEST, MOST_KEYS
from tests.conftest import REPOSITORY
from tests.traces.small_traces import write_trace


def test_a_result_is_its_rows_times_its_columns():
    assert result_bytes(10**8, "key bigint, block bigint, count bigint") == 24 * 10**8
    assert result_bytes(10, "key string, count double") == 480
    assert held_bytes(10, "key string, count double") == session.COPIES * 480


def test_a_result_above_the_limit_is_refused_with_its_size(caplog):
    with caplog.at_level(logging.INFO):
        check_held("counting keys", 10**6, "key string, count bigint", "1g")
    assert caplog.messages == ["counting keys: this process holds at most 1,000,000 rows, 192 MB"]
    said = r"100,000,000 rows would come to this process, 4,800 MB, above spark.driver.maxResultSize \(1g\); .*=6g$"
    with pytest.raises(EnvironmentFailure, match=said):
        check_held("counting keys", 10**8, "key string, count bigint", "1g")
    check_held("counting keys", 10**8, "key string, count bigint", "0")


@pytest.mark.parametrize("kind", [pa.int64(), pa.string()])
def test_no_result_is_larger_than_announced(spark, tmp_path, monkeypatch, kind):
    told, found = [], []
    monkeypatch.setattr(runner, "check_held", lambda _, rows, schema, limit: told.append(result_bytes(rows, schema)))
    to_table = runner.SparkRunner._run

    def run(self, asked, then):
        table = to_table(self, asked, then)
        found.append(table.nbytes)
        return table

    monkeypatch.setattr(runner.SparkRunner, "_run", run)
    keys = pa.array(np.random.default_rng(3).zipf(1.3, 5_000) % 900, pa.int64())
    if kind == pa.string():
        keys = pa.array([f"{key:032d}" for key in keys.to_pylist()])
    rows = {"ts": range(5_000), "key": keys, "bytes": pa.array(range(5_000), pa.int64())}
    trace, options = write_trace(tmp_path / "t.trace", rows), SparkOptions(runner=RunnerName.SPARK)
    counted = count_exactly(trace, spark_options=options)
    count_lossy(trace, 0.01, spark_options=options)
    measure_columns(trace, counted.keys, ["bytes"], spark_options=options)
    assert len(told) == len(found) == 3
    assert all(size <= most for size, most in zip(found, told, strict=True))


def test_the_documentation_has_these_numbers():
    """10^9 rows are 954 blocks, and lossy counting lists at most 2/epsilon keys."""
    page = (REPOSITORY / "docs" / "command-line.md").read_text()
    lossy = lossily._schema(KeyType.STRING, Weight.COUNT)
    counts = "key string, block bigint, count bigint"
    sums = "group bigint, pane bigint, cell bigint, count bigint, block bigint"
    for rows, schema in (
        (954 + 200_001, lossy),
        (954 + 10**8, lossy),
        (MOST_KEYS, counts),
        (HEAVIEST, counts),
        (MOST_PANES * 500_000, sums),
    ):
        assert f"| {shown(held_bytes(rows, schema))}" in page
    assert f"{MOST_KEYS:,}" in page
    assert f"{HEAVIEST:,}" in page
    assert f"{ROWS_A_PARTITION:,}" in page
