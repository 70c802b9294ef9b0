"""Parquet counts in this process: sums, and what only Spark reads."""

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.errors import BadInput, UsageError
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.traces.counting.count_cache import counts_files, summed_ascending
from adapt.traces.counting.evaluating import evaluate_plans
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions

PLANS = [("p", build_plan(frequencies_of(count_keys(pa.array(["a", "b"]))), Recipe(Scheme.BOUNDED), 2))]


def test_floats_are_added_in_ascending_order_wherever_they_lie():
    amounts = [1e16, 1.0, 1.0, -0.0, 3.0]
    rows = pa.table({"key": ["a", "a", "a", None, None], "amount": amounts})
    for order in ([0, 1, 2, 3, 4], [4, 2, 1, 0, 3]):
        summed = summed_ascending(rows.take(order), "key", ["amount"])
        assert dict(zip(summed["key"].to_pylist(), summed["amount"].to_pylist(), strict=True)) == {
            "a": 1.0 + 1.0 + 1e16,
            None: 3.0,
        }


def test_what_only_spark_reads_is_not_read_in_this_process(tmp_path):
    pq.write_table(pa.table({"key": ["a"], "count": [Decimal("1.5")]}), tmp_path / "decimal.parquet")
    (tmp_path / "by-key" / "key=a").mkdir(parents=True)
    pq.write_table(pa.table({"count": [1]}), tmp_path / "by-key" / "key=a" / "0.parquet")
    for name in ("decimal.parquet", "by-key"):
        assert counts_files(tmp_path / name).only_spark
        with pytest.raises(UsageError, match="need Spark; omit --master"):
            evaluate_plans(PLANS, tmp_path / name, spark_options=SparkOptions(runner=RunnerName.IN_PROCESS))


def test_spark_reads_them(spark, tmp_path):
    (tmp_path / "by-key" / "key=a").mkdir(parents=True)
    pq.write_table(pa.table({"count": [Decimal("1.5")]}), tmp_path / "by-key" / "key=a" / "0.parquet")
    assert evaluate_plans(PLANS, tmp_path / "by-key").keys == 1


def test_damaged_files_are_named(tmp_path):
    pq.write_table(pa.table({"key": ["a"], "count": [1]}), tmp_path / "counts.parquet")
    data = (tmp_path / "counts.parquet").read_bytes()
    (tmp_path / "counts.parquet").write_bytes(data[:-20] + data[-12:])
    with pytest.raises(BadInput, match=r"counts\.parquet is damaged: .*; get the files again"):
        evaluate_plans(PLANS, tmp_path / "counts.parquet")


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (
            {"key": [1.5], "count": [1]},
            "key column 'key' must be text, binary, whole numbers, decimals, dates or times",
        ),
        ({"key": ["a"], "count": ["1"]}, "column 'count' must be numeric"),
    ],
)
def test_columns_of_other_types_are_refused(tmp_path, rows, sentence):
    pq.write_table(pa.table(rows), tmp_path / "counts.parquet")
    with pytest.raises(UsageError, match=sentence):
        evaluate_plans(PLANS, tmp_path / "counts.parquet")
