"""Columns read by their stored codes, against Arrow's own reading of the same files."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.traces.dictionary_pages import dictionary_column

KEYS = {
    pa.string(): st.text(st.characters(codec="utf-8"), max_size=40),
    pa.binary(): st.binary(max_size=40),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
}


def columns(path):
    """Both readings of every row group."""
    file = pq.ParquetFile(path, read_dictionary=["key"])
    for group in range(file.num_row_groups):
        read = file.read_row_group(group, columns=["key"])["key"]
        yield dictionary_column(path, file, group, "key"), read


def rows(column, kind):
    return column.cast(kind).to_pylist()


@given(
    data=st.data(),
    kind=st.sampled_from(list(KEYS)),
    codec=st.sampled_from(["none", "zstd", "snappy", "gzip"]),
    nullable=st.booleans(),
    most=st.sampled_from([1, 2, 3, 40]),
    page=st.sampled_from([1, 1 << 20]),
)
def test_it_reads_what_arrow_reads(tmp_path_factory, data, kind, codec, nullable, most, page):
    path = tmp_path_factory.mktemp("pages") / "keys.parquet"
    distinct = data.draw(st.lists(KEYS[kind], min_size=1, max_size=most))
    places = data.draw(st.lists(st.sampled_from(distinct), min_size=1, max_size=300))
    stretches = [key for key in places for _ in range(data.draw(st.sampled_from([1, 1, 9])))]
    table = pa.table([pa.array(stretches, kind)], pa.schema([pa.field("key", kind, nullable)]))
    layout = {"compression": codec, "data_page_size": page, "write_batch_size": 64, "write_page_checksum": True}
    pq.write_table(table, path, row_group_size=500, **layout)
    for own, read in columns(path):
        assert rows(own, kind) == rows(read, kind)
        assert own.dictionary.type == kind
        assert len(own.dictionary) == len(set(own.dictionary.to_pylist()))


@pytest.mark.parametrize("distinct", [1, 2, 200, 70_000])
@pytest.mark.parametrize("kind", list(KEYS), ids=str)
def test_it_reads_codes_of_every_width(tmp_path, distinct, kind):
    numbers = np.random.default_rng(distinct).integers(0, distinct, 100_000)
    keys = pa.array(numbers) if kind == pa.int64() else pa.array([f"k{number}" for number in numbers]).cast(kind)
    pq.write_table(pa.table({"key": keys}), tmp_path / "p", compression="zstd", dictionary_pagesize_limit=1 << 24)
    ((own, _),) = columns(tmp_path / "p")
    assert own.cast(kind).equals(keys)


def test_it_reads_what_spark_writes(spark, tmp_path):
    frame = spark.range(0, 50_000).selectExpr("concat('k', id % 777) key")
    frame.coalesce(1).write.parquet(str(tmp_path / "of-spark"))
    (part,) = (tmp_path / "of-spark").glob("part-*")
    for own, read in columns(part):
        assert rows(own, pa.string()) == rows(read, pa.string())


@pytest.mark.parametrize(
    ("keys", "layout"),
    [
        (["a", None, "a"], {}),
        (["a", "b"] * 99, {"use_dictionary": False}),
        (["a", "b"] * 99, {"data_page_version": "2.0"}),
        ([f"k{at % 500}" for at in range(2000)], {"dictionary_pagesize_limit": 400, "data_page_size": 500}),
        ([1.0, 1.0], {}),
    ],
    ids=["nulls", "plain", "version 2", "half a dictionary", "another type"],
)
def test_it_leaves_other_columns_to_arrow(tmp_path, keys, layout):
    pq.write_table(pa.table({"key": keys}), tmp_path / "p", **layout)
    assert all(own is None for own, _ in columns(tmp_path / "p"))


def test_a_damaged_page_is_left_to_arrow_whatever_byte_it_is(tmp_path):
    path = tmp_path / "p"
    keys = pa.array([f"k{at % 7}" for at in range(90)])
    pq.write_table(pa.table({"key": keys}), path, compression="none", write_page_checksum=True, write_statistics=False)
    file, whole = pq.ParquetFile(path), path.read_bytes()
    column = file.metadata.row_group(0).column(0)
    for at in range(column.dictionary_page_offset, column.dictionary_page_offset + column.total_compressed_size):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        own = dictionary_column(path, file, 0, "key")
        assert own is None or own.cast(pa.string()).equals(keys)  # some header fields are of no account


def test_damage_without_a_checksum_never_reads_beyond_a_page(tmp_path):
    path = tmp_path / "p"
    pq.write_table(pa.table({"key": [f"k{at % 7}" for at in range(90)]}), path, compression="none")
    file, whole = pq.ParquetFile(path), path.read_bytes()
    column = file.metadata.row_group(0).column(0)
    for at in range(column.dictionary_page_offset, column.dictionary_page_offset + column.total_compressed_size):
        for byte in (0, 1, 0x7F, 0xFF):
            path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
            own = dictionary_column(path, file, 0, "key")
            assert own is None or len(own) == 90
