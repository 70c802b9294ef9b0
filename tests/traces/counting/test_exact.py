"""Exact counts and sums of columns against plain Python and DuckDB."""

from collections import Counter, defaultdict
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.counting.exact import count_keys, frequencies_of
from adapt.core.errors import BadInput, UsageError
from adapt.core.partitioning.build import Recipe, build_plan
from adapt.core.partitioning.schemes.names import Scheme
from adapt.core.stream import COLUMN_TYPES, KeyType, Weight
from adapt.traces.counting.count_cache import counts_files, summed_ascending
from adapt.traces.counting.evaluating import evaluate_plans
from adapt.traces.counting.exact import count_exactly, default_weight
from adapt.traces.spark.names import RunnerName
from adapt.traces.spark.session import SparkOptions
from adapt.traces.store import trace as traces
from adapt.traces.store.trace import Trace, open_trace
from tests.traces.small_traces import trace_of_source

ROWS = 500
KEYS = {
    KeyType.STRING: [None, "", "a", "ä", "a ", "A", "x" * 300, "\U0001f600"],
    KeyType.INT64: [None, 0, 1, 256, -1, 2**63 - 1, -(2**63)],
    KeyType.BINARY: [None, b"", b"\x00", b"\xff\xfe", b"a"],
}
ARROW = {KeyType.STRING: pa.string(), KeyType.INT64: pa.int64(), KeyType.BINARY: pa.binary()}
AMOUNTS = {"cost": [None, 0.1, 0.2, 1e10, 0.0], "bytes": [None, 2**53 + 1, 3, 0]}


def rows(key_type: KeyType, amounts: bool = True) -> pa.Table:
    """Rows in time order, keys more or less frequent, amounts that round and are missing."""
    keys = [KEYS[key_type][at * at % (1 + at % len(KEYS[key_type]))] for at in range(ROWS)]
    columns = {"ts": pa.array(range(ROWS), pa.int64()), "key": pa.array(keys, ARROW[key_type])}
    if amounts:
        columns |= {name: pa.array([held[at % len(held)] for at in range(ROWS)]) for name, held in AMOUNTS.items()}
    return pa.table(columns)


def make(folder: Path, table: pa.Table) -> Trace:
    return trace_of_source(folder / "t.trace", table)


@pytest.fixture(scope="module", params=COLUMN_TYPES)
def trace(request, tmp_path_factory) -> Trace:
    """A trace of each key type, with costs and bytes."""
    return make(tmp_path_factory.mktemp(request.param), rows(request.param))


def plain(trace: Trace, weight: Weight) -> dict:
    """The weight of each key, added up row by row."""
    table = rows(trace.key_type)
    keys = table["key"].to_pylist()
    if weight is Weight.COUNT:
        return dict(Counter(keys))
    summed: dict = defaultdict(int if weight is Weight.BYTES else float)
    for key, amount in zip(keys, table[weight.value].to_pylist(), strict=True):
        summed[key] += amount or 0
    return dict(summed)


def as_dict(counted) -> dict:
    return dict(zip(counted.keys.to_pylist(), counted.count_low.tolist(), strict=True))


@pytest.mark.parametrize("weight", list(Weight))
def test_counts_are_those_of_python(trace, weight):
    counted = count_exactly(trace, weight=weight)
    expected = plain(trace, weight)
    assert counted.key_type is trace.key_type
    assert (counted.rows, counted.distinct, counted.weight) == (ROWS, len(expected), weight)
    if weight is Weight.COST:
        # a block is added up as Python does, row by row, so even floats agree to the last bit
        assert as_dict(counted) == expected
        assert counted.total == pytest.approx(sum(expected.values()), rel=ROWS * 2**-53)
    else:
        assert as_dict(counted) == expected
        assert counted.total == float(sum(expected.values()))


@pytest.mark.parametrize("weight", list(Weight))
def test_duckdb_counts_the_same_in_our_parquet(trace, weight):
    amount = {Weight.COUNT: "1", Weight.COST: "coalesce(cost_us, 0)", Weight.BYTES: "coalesce(bytes, 0)"}[weight]
    query = f"select key, sum({amount}) from read_parquet('{trace.path}/part-*.parquet') group by key"
    expected = {key: float(total) for key, total in duckdb.sql(query).fetchall()}
    assert as_dict(count_exactly(trace, weight=weight)) == pytest.approx(expected, rel=ROWS * 2**-53)


def test_keys_stand_by_falling_count_then_key_bytes(trace):
    counted = count_exactly(trace, weight=Weight.COUNT)
    bytes_of = {
        KeyType.STRING: lambda key: key.encode(),
        KeyType.INT64: lambda key: key.to_bytes(8, "little", signed=True),
        KeyType.BINARY: lambda key: key,
    }[trace.key_type]
    expected = sorted(
        plain(trace, Weight.COUNT).items(),
        key=lambda item: (-item[1], item[0] is not None, b"" if item[0] is None else bytes_of(item[0])),
    )
    assert list(zip(counted.keys.to_pylist(), counted.count_low.tolist(), strict=True)) == expected


def test_costs_are_added_in_the_order_of_blocks(trace, monkeypatch):
    """Eight blocks, added up as plain Python adds eight blocks, come out the same to the last bit, run after run."""
    size = -(-ROWS // 8)
    monkeypatch.setattr(traces, "BLOCK_ROWS", size)
    table = rows(trace.key_type).to_pylist()
    expected: dict = {}
    for begin in range(0, ROWS, size):
        block: dict = {}
        for row in table[begin : begin + size]:
            block[row["key"]] = block.get(row["key"], 0.0) + (row["cost"] or 0.0)
        for key, amount in block.items():
            expected[key] = expected.get(key, 0.0) + amount
    assert as_dict(count_exactly(trace, weight=Weight.COST)) == expected
    assert as_dict(count_exactly(trace, weight=Weight.COST)) == expected


def test_a_trace_without_amounts_is_counted_by_rows(tmp_path):
    trace = make(tmp_path, rows(KeyType.STRING, amounts=False))
    assert default_weight(trace) is Weight.COUNT
    assert count_exactly(trace).weight is Weight.COUNT
    with pytest.raises(
        UsageError, match=r"--weight bytes: .*t\.trace has no bytes column; ingest it with --bytes COLUMN"
    ):
        count_exactly(trace, weight=Weight.BYTES)


def test_a_damaged_part_is_named_by_the_task_that_meets_it(tmp_path):
    trace = make(tmp_path, rows(KeyType.STRING))
    part = tmp_path / "t.trace" / "part-00000.parquet"
    data = bytearray(part.read_bytes())
    for at in range(len(data) // 4, 3 * len(data) // 4, 40):
        data[at] ^= 1
    part.write_bytes(data)
    with pytest.raises(BadInput, match=r"part-00000\.parquet is damaged") as damaged:
        count_exactly(open_trace(trace.path))
    assert "\n" not in str(damaged.value)


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
