"""Parquet and ORC sources: values and types as they are, rows numbered in their file."""

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import orc

from adapt.core.errors import BadInput
from adapt.traces.sources.reading.table_files import wider
from adapt.traces.spark.session import spark_failures

ODD_NAMES = ["a b", "a%20b", "a+b", "ä ö", "日本", "a#b", "a[1]", "a{b,c}", "a?b*", "a\\b", "a&b=c"]


def write(path, columns):
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path, row_group_size=2)
    return path


def rows_of(source, *wanted):
    return [row.asDict() for row in source.frame([*wanted, "_path"]).orderBy("_file", "_line").collect()]


def test_rows_are_numbered_in_their_file(opened, tmp_path):
    first = write(tmp_path / "a.parquet", {"k": list(range(7))})
    second = write(tmp_path / "b.parquet", {"k": [7]})
    assert [(row["_file"], row["_line"], row["k"], row["_path"]) for row in rows_of(opened(first, second), "k")] == [
        *((0, at + 1, at, "a.parquet") for at in range(7)),
        (1, 1, 7, "b.parquet"),
    ]


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        (pa.array([1, None, -(2**63), 2**63 - 1], pa.int64()), "bigint"),
        (pa.array([1, None], pa.int32()), "int"),
        (pa.array([b"", None, b"\xff\x00", b"x" * 65_536], pa.binary()), "binary"),
        (pa.array(["", None, "é", "x" * 65_536]), "string"),
        (pa.array(["a", "b", "a"]).dictionary_encode(), "string"),
        (pa.array([Decimal("1.50")]), "decimal(3,2)"),
    ],
)
def test_keys_of_any_type_come_as_they_are(opened, tmp_path, keys, kind):
    frame = opened(write(tmp_path / "a.parquet", {"k": keys})).frame(["k"])
    assert dict(frame.dtypes)["k"] == kind
    values = [row.k if row.k is None or kind != "binary" else bytes(row.k) for row in frame.orderBy("_line").collect()]
    assert values == keys.to_pylist()


def test_no_row_is_lost_to_an_odd_file_name(opened, tmp_path):
    paths = [write(tmp_path / "in {odd} [folder]" / f"{name}.parquet", {"k": [name]}) for name in ODD_NAMES]
    rows = rows_of(opened(*paths), "k")
    assert [(row["_file"], row["_path"]) for row in rows] == [(at, path.name) for at, path in enumerate(paths)]
    assert [row["k"] for row in rows] == ODD_NAMES


def test_columns_named_like_the_readers_own_are_hidden(opened, tmp_path):
    source = opened(write(tmp_path / "a.parquet", {"_line": ["x"], "_path": ["y"], "k": [1]}))
    assert source.columns == ("k",)
    assert [(row["_line"], row["_path"], row["k"]) for row in rows_of(source, "k")] == [(1, "a.parquet", 1)]


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_in_nanoseconds_are_times_cut_to_the_microsecond(opened, tmp_path, zone):
    times = pa.array([1_700_000_000_123_456_789, -1, None], pa.timestamp("ns", zone))
    nested = pa.StructArray.from_arrays([times], ["t"], mask=pa.array([False, False, True]))
    source = opened(write(tmp_path / "a.parquet", {"t": times, "n": nested}))
    frame = source.frame(["t", "n"])
    kind = "timestamp" if zone else "timestamp_ntz"
    assert dict(frame.dtypes) | {"t": kind, "n": f"struct<t:{kind}>"} == dict(frame.dtypes)
    texts = [row[0] for row in frame.selectExpr("string(t)").collect()]
    assert texts == ["2023-11-14 22:13:20.123456", "1969-12-31 23:59:59.999999", None]
    assert [row[0] for row in frame.selectExpr("string(n.t)").collect()] == texts
    assert frame.where("_line = 3").first()["n"] is None


def test_a_column_of_two_types_is_refused_by_both_files_if_it_is_used(opened, tmp_path):
    paths = [write(tmp_path / "a.parquet", {"k": [1], "n": [1]}), write(tmp_path / "b.parquet", {"k": ["x"], "n": [2]})]
    source = opened(*paths)
    assert [row["n"] for row in rows_of(source, "n")] == [1, 2]
    with pytest.raises(BadInput, match=r"k is string in b\.parquet and int64 in a\.parquet; write both as one type"):
        source.first_rows(2, ["k"])


@pytest.mark.parametrize(
    ("one", "other", "widest"),
    [
        (pa.array([1], pa.int64()), pa.array([2], pa.int32()), pa.int64()),
        (pa.array([1], pa.int8()), pa.array([2], pa.uint32()), pa.int64()),
        (pa.array([1], pa.int64()), pa.array([0.5]), pa.float64()),
        (pa.array([None], pa.null()), pa.array(["x"]), pa.string()),
        (pa.array([1], pa.timestamp("us", "UTC")), pa.array([2], pa.timestamp("ms", "UTC")), pa.timestamp("us", "UTC")),
        (pa.array([1], pa.timestamp("us")), pa.array([2], pa.timestamp("us", "UTC")), None),
        (pa.array([1]), pa.array(["1"]), None),
        (pa.array([True]), pa.array([1]), None),
    ],
)
def test_types_of_several_files_become_the_widest(opened, tmp_path, one, other, widest):
    assert wider(one.type, other.type) == wider(other.type, one.type) == widest
    paths = [write(tmp_path / f"{at}.parquet", {"k": column}) for at, column in enumerate((one, other))]
    for files in (paths, paths[::-1]) if widest is not None else ():
        read = opened(*files).first_rows(2, ["k"])["k"]
        assert (read.type, len(read)) == (widest, 2)


def test_files_of_other_columns_are_one_table_by_name(opened, tmp_path):
    paths = [
        write(tmp_path / "a.parquet", {"k": [1], "x": ["a"]}),
        write(tmp_path / "b.parquet", {"y": [0.5], "k": [2]}),
    ]
    source = opened(*paths)
    assert source.columns == ("k", "x", "y")
    assert [(row["k"], row["x"], row["y"]) for row in rows_of(source, "k", "x", "y")] == [
        (1, "a", None),
        (2, None, 0.5),
    ]


def test_folders_of_a_hive_table_are_columns_with_types(opened, tmp_path):
    folders = ["day=2024-01-01/hour=3/at=a%2Fb%20c", "day=2024-01-02/hour=07/at=__HIVE_DEFAULT_PARTITION__"]
    for at, folder in enumerate(folders):
        write(tmp_path / folder / "part-0.parquet", {"k": [at]})
    source = opened(tmp_path)
    assert source.columns == ("k", "day", "hour", "at")
    wanted = ["k", "day", "hour", "at"]
    kinds = dict(opened(tmp_path).frame(wanted).dtypes)
    assert kinds | {"day": "date", "hour": "string", "at": "string"} == kinds
    assert [(row["k"], str(row["day"]), row["hour"], row["at"]) for row in rows_of(source, *wanted)] == [
        (0, "2024-01-01", "3", "a/b c"),
        (1, "2024-01-02", "07", None),
    ]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["7", "42", "-1", "0"], "bigint"),
        (["007", "7", "042"], "string"),
        (["٧", "7"], "string"),
        (["2024-02-30", "2024-03-01"], "string"),
        (["a%2Fb", "a b", "%C3%A9", "%FF", "%FE", "50%"], "string"),
    ],
)
def test_values_of_folders_are_never_merged(opened, tmp_path, values, kind):
    for value in values:
        write(tmp_path / f"k={value}" / "p.parquet", {"x": [value]})
    source = opened(tmp_path)
    shown = {"a%2Fb": "a/b", "%C3%A9": "é", "%FF": "ÿ", "%FE": "þ"}
    assert dict(opened(tmp_path).frame(["k"]).dtypes)["k"] == kind
    assert {row["x"]: str(row["k"]) for row in rows_of(source, "x", "k")} == {v: shown.get(v, v) for v in values}


ODD = {
    "clock": pa.array([1, 2, 3], pa.time64("us")),
    "half": pa.array([1, 2, 3], pa.float16()),
    "id": pa.array([bytes(16)] * 3, pa.uuid()),
    "nested": pa.StructArray.from_arrays([pa.array([1, 2, 3], pa.time32("s"))], ["at"]),
    "wide": pa.array([Decimal(1)] * 3, pa.decimal256(50, 2)),
}


@pytest.mark.parametrize("int96", [False, True])
def test_columns_that_spark_cannot_read_are_refused_only_if_they_are_used(opened, tmp_path, int96):
    plain = {
        "k": ["a", None, "b"],
        "u8": pa.array([1, 2, 255], pa.uint8()),
        "u64": pa.array([1, 2, 2**64 - 1], pa.uint64()),
        "ns": pa.array([1000, 2000, 3000], pa.timestamp("ns")),
        "local": pa.array([1, 2, 3], pa.timestamp("us")),
        "none": pa.nulls(3),
        "list": [[1], [], None],
    }
    pq.write_table(pa.table({**ODD, **plain}), tmp_path / "odd.parquet", use_deprecated_int96_timestamps=int96)
    pq.write_table(pa.table(plain), tmp_path / "plain.parquet", use_deprecated_int96_timestamps=int96)
    source, only = opened(tmp_path / "odd.parquet"), opened(tmp_path / "plain.parquet")
    assert source.frame(list(plain)).select(*plain).toArrow() == only.frame(list(plain)).select(*plain).toArrow()
    assert source.columns == (*ODD, *plain)
    assert {*source.readable} == {*plain, "id"}, "Spark does not read UUIDs, ingest does"
    for name in ODD.keys() - {"id"}:
        with pytest.raises(BadInput, match=f"Spark cannot read column '{name}' of type"):
            opened(tmp_path / "odd.parquet").frame(["k", name])


def patched(path, old, new):
    """A file with bytes of its footer replaced, where they occur last."""
    content = path.read_bytes()
    body, length = content[:-8], int.from_bytes(content[-8:-4], "little")
    before, found, after = body.rpartition(old)
    assert found
    length += len(new) - len(old)
    path.write_bytes(before + new + after + length.to_bytes(4, "little") + b"PAR1")
    return path


@pytest.mark.parametrize("why", ["codec", "decimal", "logical type"])
def test_valid_files_that_spark_fails_on_are_read(spark, opened, tmp_path, why):
    table, path, read = pa.table({"k": ["d", "e", None]}), tmp_path / "a.parquet", ["d", "e", None]
    if why == "codec":
        pq.write_table(table, path, compression="brotli")
    elif why == "decimal":  # the String of the footer, as Decimal(4, 2): one byte is 100 or 101 hundredths
        pq.write_table(table, path, store_schema=False, write_statistics=False, use_dictionary=False)
        decimal = b"\x25\x0a\x15\x04\x15\x08\x2c\x5c\x15\x04\x15\x08\x00\x00"
        patched(path, b"\x25\x00\x4c\x1c\x00\x00", decimal)
        read = [Decimal("1.00"), Decimal("1.01"), None]
    else:  # UUID, as a logical type of number 40
        pq.write_table(table.append_column("u", pa.array([bytes(16)] * 3, pa.uuid())), path, store_schema=False)
        patched(path, b"\xec\x00\x00", b"\x0c\x50\x00\x00")
    with pytest.raises(BadInput, match=r"a\.parquet cannot be read by Spark \("), spark_failures("reading"):
        spark.read.parquet(str(path)).collect()
    assert [row["k"] for row in rows_of(opened(path), "k")] == read


def test_only_a_file_that_no_reader_reads_is_called_damaged(spark, tmp_path):
    path = write(tmp_path / "a.parquet", {"k": [str(at) for at in range(5000)]})
    content = bytearray(path.read_bytes())
    content[200:260] = bytes(byte ^ 0xA5 for byte in content[200:260])
    (tmp_path / "broken.parquet").write_bytes(content)
    pq.write_table(pa.table({"k": ["a"]}), tmp_path / "brotli.parquet", compression="brotli")
    refused = {
        "broken": r"broken\.parquet is damaged: [^;]+; get the file again",
        "brotli": r"brotli\.parquet cannot be read by Spark \(ClassNotFoundException: .*BrotliCodec\); write it again",
    }
    for name, message in refused.items():
        frame = spark.read.parquet(str(tmp_path / f"{name}.parquet"))
        with pytest.raises(BadInput, match=message), spark_failures("reading"):
            frame.collect()


@pytest.fixture
def small_pieces(spark):
    """Files are read in many pieces."""
    names = ("spark.sql.files.maxPartitionBytes", "spark.sql.files.openCostInBytes")
    before = {name: spark.conf.get(name) for name in names}
    for name in names:
        spark.conf.set(name, "20000")
    yield
    for name, value in before.items():
        spark.conf.set(name, value)


def test_rows_are_numbered_in_their_file_though_it_is_read_in_pieces(opened, tmp_path, small_pieces):
    rows = 60_000
    numbers = pa.array([at * 7919 % 100_003 for at in range(rows)])
    for name in ("a", "b"):
        orc.write_table(pa.table({"n": numbers}), tmp_path / f"{name}.orc", stripe_size=1 << 14, compression="zlib")
    frame = opened(tmp_path).frame(["n"])
    assert frame.rdd.getNumPartitions() > 4
    assert frame.where("n != (_line - 1) * 7919 % 100003").count() == 0
    told = [tuple(row) for row in frame.groupBy("_file").agg({"_line": "max", "n": "count"}).orderBy("_file").collect()]
    assert told == [(0, rows, rows), (1, rows, rows)]


def test_a_truncated_file_is_refused_by_name(opened, tmp_path):
    orc.write_table(pa.table({"k": list(range(100))}), tmp_path / "a.orc")
    data = (tmp_path / "a.orc").read_bytes()
    (tmp_path / "a.orc").write_bytes(data[:-10])
    with pytest.raises(BadInput, match=r"a\.orc is truncated or not valid ORC"):
        opened(tmp_path / "a.orc")


def test_a_union_refuses_a_file_only_if_it_is_used(opened, tmp_path):
    union = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["x", "y"])])
    nested = pa.StructArray.from_arrays([union], ["u"])
    orc.write_table(pa.table({"k": ["a", "b"], "u": union, "n": nested}), tmp_path / "a.orc")
    source = opened(tmp_path / "a.orc")
    assert source.readable == ("k",)
    with pytest.raises(BadInput, match=r"a\.orc: Spark cannot read column 'n' of type union"):
        source.first_rows(1, ["n"])
    assert [(row["_line"], row["k"]) for row in source.frame(["k"]).orderBy("_line").collect()] == [(1, "a"), (2, "b")]
