"""Columns added up on Spark against sums in plain Python, for every type of key, however the work is cut."""

from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.core.stream import COLUMN_TYPES, KeyType, Weight
from adapt.traces.counting.exact import count_exactly, measurable, measure_block, measure_columns, with_columns
from adapt.traces.spark.session import SparkOptions
from adapt.traces.store import trace as traces
from adapt.traces.store.trace import Trace, blocks_of, part_entry
from tests.traces.small_traces import trace_of_source

ROWS = 500
KEYS = {
    KeyType.STRING: [None, "", "a", "ä", "A", "x" * 300],
    KeyType.INT64: [None, 0, 1, 256, -1, -(2**63)],
    KeyType.BINARY: [None, b"", b"\x00", b"\xff\xfe", b"a"],
}
ARROW = {KeyType.STRING: pa.string(), KeyType.INT64: pa.int64(), KeyType.BINARY: pa.binary()}
AMOUNTS = {"cost": [None, 0.1, 0.2, 1e10, 0.0], "bytes": [None, 2**40 + 1, 3, 0]}


def rows(key_type: KeyType, amounts=AMOUNTS) -> pa.Table:
    """Rows in time order, keys more or less frequent, amounts that round and are missing."""
    keys = [KEYS[key_type][at * at % (1 + at % len(KEYS[key_type]))] for at in range(ROWS)]
    columns = {"ts": pa.array(range(ROWS), pa.int64()), "key": pa.array(keys, ARROW[key_type])}
    return pa.table(
        columns | {name: pa.array([of[at % len(of)] for at in range(ROWS)]) for name, of in amounts.items()}
    )


def make(folder: Path, table: pa.Table) -> Trace:
    return trace_of_source(folder / "t.trace", table)


@pytest.fixture(scope="module", params=COLUMN_TYPES)
def trace(request, tmp_path_factory) -> Trace:
    """A trace of each key type, with costs and bytes."""
    return make(tmp_path_factory.mktemp(request.param), rows(request.param))


def plain(key_type: KeyType, source: str) -> dict:
    """What a column adds up to by key, row by row."""
    table = rows(key_type)
    amounts = [1] * ROWS if source == "count" else table[source].to_pylist()
    summed: dict = defaultdict(float)
    for key, amount in zip(table["key"].to_pylist(), amounts, strict=True):
        summed[key] += amount or 0
    return summed


def test_all_keys_add_up_to_the_stream(trace):
    keys = pa.array(KEYS[trace.key_type], ARROW[trace.key_type])
    for column in measure_columns(trace, keys, ["count", "cost", "bytes"]):
        expected = plain(trace.key_type, column.source)
        assert dict(zip(keys.to_pylist(), column.values.tolist(), strict=True)) == {
            k: expected[k] for k in KEYS[trace.key_type]
        }
        assert column.total == pytest.approx(sum(expected.values()), rel=1e-15)
        assert column.unlisted == 0


@pytest.mark.usefixtures("spark")
def test_the_cut_into_blocks_changes_no_whole_number_and_no_cluster_changes_any(trace, monkeypatch):
    keys = pa.array(KEYS[trace.key_type], ARROW[trace.key_type])
    whole = measure_columns(trace, keys, ["bytes"])
    monkeypatch.setattr(traces, "BLOCK_ROWS", 37)
    cut = [
        measure_columns(
            trace, keys, ["bytes", "cost"], spark_options=SparkOptions(conf={"spark.sql.shuffle.partitions": n})
        )
        for n in ("1", "7")
    ]
    assert cut[0][0].values.tolist() == whole[0].values.tolist()
    for one, other in zip(*cut, strict=True):
        assert (one.values.tolist(), one.total) == (other.values.tolist(), other.total)


def test_exact_counts_of_that_weight_are_not_added_up_again(trace):
    counted = count_exactly(trace, weight=Weight.BYTES)
    told = with_columns(trace, counted, ["count", "bytes"])
    assert [column.source for column in told.measured] == ["bytes", "count"]
    assert told.column("bytes").values.tolist() == counted.count_low.tolist()
    assert told.column("count").total == ROWS


def test_what_the_trace_lacks_is_refused_with_what_it_has(tmp_path):
    bare = make(tmp_path, rows(KeyType.STRING, {"cost": [1.5]}))
    assert measurable(bare) == (Weight.COUNT, Weight.COST)
    with pytest.raises(UsageError, match="has no bytes column; ingest it with --bytes COLUMN"):
        measure_columns(bare, pa.array(["a"]), ["bytes"])
    with pytest.raises(UsageError, match=r"has no byts column; available: cost, count"):
        measure_columns(bare, pa.array(["a"]), ["byts"])


@pytest.mark.parametrize("cost", [-1.0, float("nan"), float("inf")])
def test_costs_that_are_no_amount_are_refused(tmp_path, cost):
    part = tmp_path / "part-00000.parquet"
    pq.write_table(pa.table({"key": ["a"], "cost_us": [cost]}), part, write_page_checksum=True)
    (block,) = blocks_of(tmp_path, [part_entry(tmp_path, part)])
    with pytest.raises(BadInput, match=rf"cost must be finite and at least 0 in every row \(got {cost:g}\)"):
        measure_block(block, pa.array(["a"]), [Weight.COST])
