"""Avro containers as fastavro and our own hands write them, read back without Spark."""

import datetime
import decimal
import io
import json
import zlib

import fastavro
import pyarrow as pa
import pytest

from adapt.core.errors import BadInput, EnvironmentFailure
from adapt.traces.sources.formats import avro
from adapt.traces.sources.formats.avro import avro_files
from adapt.traces.sources.reading.files import source_files

SCHEMA = {
    "type": "record",
    "name": "Click",
    "namespace": "shop",
    "fields": [
        {"name": "user", "type": ["null", "string"]},
        {"name": "n", "type": "long"},
        {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}},
        {"name": "ms", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 10, "scale": 2}},
        {"name": "either", "type": ["null", "int", "string"]},
        {"name": "number", "type": ["int", "double"]},
        {"name": "raw", "type": "bytes"},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "tags", "type": {"type": "map", "values": "long"}},
        {"name": "at", "type": {"type": "record", "name": "At", "fields": [{"name": "x", "type": "float"}]}},
        {"name": "from", "type": ["null", "At"]},
    ],
}


def click(at):
    return {
        "user": [None, "", "é 日本", "line\nbreak"][at % 4],
        "n": [2**63 - 1, -(2**63)][at % 2],
        "t": datetime.datetime(2015, 5, 17, 10, 5, 3, at, datetime.UTC),
        "ms": None if at % 3 else datetime.datetime(1, 1, 1, tzinfo=datetime.UTC),
        "day": datetime.date(9999, 12, 31),
        "price": decimal.Decimal(at * 100 - 5).scaleb(-2),
        "either": [None, at, f"text {at}"][at % 3],
        "number": [at, at + 0.5][at % 2],
        "raw": b"\xff\x00",
        "kind": "AB"[at % 2],
        "tags": {"a": at},
        "at": {"x": 0.5},
        "from": None if at % 2 else {"x": 1.5},
    }


CLICKS = [click(at) for at in range(50)]


def written(path, records=CLICKS, schema=SCHEMA, **settings):
    with path.open("wb") as file:
        fastavro.writer(file, schema, records, sync_interval=200, **settings)
    return path


def rows_of(path, *wanted):
    files = source_files([str(path)])
    form = avro_files(files)
    batches = [
        batch
        for at, file in enumerate(files)
        for block in form.cut(at, file)
        for batch in form.read(block, wanted or form.columns)
    ]
    return pa.Table.from_batches(batches).to_pylist()


def expected(click):
    either = None if click["either"] is None else str(click["either"])
    return click | {"either": either, "number": float(click["number"]), "tags": list(click["tags"].items())}


@pytest.mark.parametrize("codec", ["null", "deflate", "bzip2", "xz"])
def test_what_fastavro_wrote_is_read_back(tmp_path, codec):
    rows = rows_of(written(tmp_path / "a.avro", codec=codec))
    assert [row.pop("_line") for row in rows] == list(range(1, 51))
    for row, sent in zip(rows, CLICKS, strict=True):
        assert {name: row[name] for name in sent} == expected(sent)


def packed_by_hand(path, codec, pack):
    """A container whose one block is packed by us."""
    plain = io.BytesIO()
    fastavro.writer(plain, SCHEMA, CLICKS, codec="null", sync_interval=1 << 20)
    plain.seek(0)
    header = avro.header_of(plain)
    count, block = avro._number(plain), avro._bytes(plain)
    told = b"".join(map(avro._sized, (b"avro.schema", json.dumps(SCHEMA).encode(), b"avro.codec", codec.encode())))
    head = avro.MAGIC + avro._varint(2) + told + avro._varint(0) + header.sync
    path.write_bytes(head + avro._varint(count) + avro._sized(pack(block)) + header.sync)
    return path


@pytest.mark.parametrize(
    ("codec", "pack"),
    [
        ("snappy", lambda data: pa.compress(data, "snappy", asbytes=True) + zlib.crc32(data).to_bytes(4, "big")),
        ("zstandard", lambda data: pa.compress(data, "zstd", asbytes=True)),
    ],
)
def test_snappy_and_zstd_need_no_further_library(tmp_path, codec, pack):
    assert [row["n"] for row in rows_of(packed_by_hand(tmp_path / "a.avro", codec, pack), "n")] == [
        sent["n"] for sent in CLICKS
    ]


def test_files_of_several_schemas_have_the_fields_of_all(tmp_path):
    field = [{"name": "n", "type": "long"}, {"name": "more", "type": "string"}]
    written(tmp_path / "a.avro", CLICKS[:2])
    written(tmp_path / "b.avro", [{"n": 1, "more": "x"}], {"type": "record", "name": "Other", "fields": field})
    rows = rows_of(tmp_path, "n", "user", "more")
    assert [(row["n"], row["user"], row["more"]) for row in rows] == [
        *((sent["n"], sent["user"], None) for sent in CLICKS[:2]),
        (1, None, "x"),
    ]


def test_the_file_that_lacks_a_field_is_named(opened, tmp_path):
    written(tmp_path / "a.avro", CLICKS[:2])
    other = {"type": "record", "name": "Other", "fields": [{"name": "user", "type": "string"}]}
    written(tmp_path / "b.avro", [{"user": "x"}], other)
    source = opened(tmp_path)
    assert source.without("n").label.endswith("b.avro")
    assert source.without("user") is None
    assert source.without("no field") is None


def test_a_field_of_two_types_is_refused_by_both_files(tmp_path):
    written(tmp_path / "a.avro", CLICKS[:1])
    other = {"type": "record", "name": "Other", "fields": [{"name": "n", "type": "string"}]}
    written(tmp_path / "b.avro", [{"n": "x"}], other)
    with pytest.raises(BadInput, match=r"n is string in b\.avro and int64 in a\.avro; write both as one type"):
        rows_of(tmp_path)


def test_a_field_of_two_widths_is_read_as_the_wider(tmp_path):
    for name, kind, value in (("a", "int", 1), ("b", "long", 2**40)):
        schema = {"type": "record", "name": name, "fields": [{"name": "n", "type": kind}]}
        written(tmp_path / f"{name}.avro", [{"n": value}], schema)
    assert [row["n"] for row in rows_of(tmp_path, "n")] == [1, 2**40]


def test_a_record_that_holds_itself_is_text_inside(tmp_path):
    tree = {
        "type": "record",
        "name": "Tree",
        "fields": [{"name": "v", "type": "int"}, {"name": "left", "type": ["null", "Tree"]}],
    }
    path = written(tmp_path / "a.avro", [{"v": 1, "left": {"v": 2, "left": None}}], tree)
    assert rows_of(path, "left")[0]["left"] == '{"v": 2, "left": null}'


@pytest.mark.parametrize("cut", [40, -100])
def test_a_truncated_file_is_refused_by_name(tmp_path, cut):
    path = written(tmp_path / "a.avro")
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(BadInput, match=r"a\.avro is truncated or not an Avro container \("):
        rows_of(path)


def test_values_that_are_no_records_are_refused(tmp_path):
    with pytest.raises(BadInput, match="its values are not records"):
        rows_of(written(tmp_path / "a.avro", ["a"], "string"))


def test_an_unknown_codec_is_refused_by_its_name(tmp_path):
    path = packed_by_hand(tmp_path / "a.avro", "lz4", bytes)
    with pytest.raises(BadInput, match=r"a\.avro has an unsupported codec 'lz4'; write it with one of null, deflate"):
        rows_of(path)


def test_without_fastavro_one_line_names_the_extra(tmp_path, monkeypatch):
    path = written(tmp_path / "a.avro")
    monkeypatch.setitem(__import__("sys").modules, "fastavro", None)
    with pytest.raises(EnvironmentFailure, match=r"pip install 'adapt-streams\[avro\]'"):
        rows_of(path)
