"""Counted keys on disk and as CSV: read back as they were, or refused with the line or file at fault."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.counting.exact import KeyCounts, frequencies_of
from adapt.core.counting.frequencies import Frequencies, MeasuredColumn
from adapt.core.errors import BadInput
from adapt.core.stream import KeyType, Weight
from adapt.traces.store.frequencies import read_counts, read_frequencies, write_frequencies
from adapt.traces.store.manifest import Provenance

MADE = Provenance("test", {"weight": "count"})
COLUMNS = {
    "string": pa.array(["a", None, "", "ü"]),
    "int64": pa.array([1, None, -(2**63), 256], pa.int64()),
    "binary": pa.array([b"\xff", None, b"", b"a"], pa.binary()),
}


def counted(keys: pa.Array, counts=(7, 5, 5, 1), weight: Weight = Weight.COUNT) -> Frequencies:
    return frequencies_of(KeyCounts(keys, np.array(counts), 18), weight)


def same(one: Frequencies, other: Frequencies) -> bool:
    return (
        one.keys.equals(other.keys)
        and one.count_low.tolist() == other.count_low.tolist()
        and one.count_high.tolist() == other.count_high.tolist()
        and one.count_low.dtype == other.count_low.dtype
        and (one.total, one.rows, one.weight, one.epsilon, one.complete_above, one.distinct)
        == (other.total, other.rows, other.weight, other.epsilon, other.complete_above, other.distinct)
    )


@pytest.mark.parametrize("keys", COLUMNS.values(), ids=COLUMNS)
def test_counted_keys_are_read_back_as_they_were(tmp_path, keys):
    written = write_frequencies(counted(keys), tmp_path / "f", MADE)
    read, manifest = read_frequencies(tmp_path / "f", check_all=True)
    assert same(read, counted(keys))
    assert manifest.content_hash == written.content_hash
    assert manifest.made == replace(MADE, inputs=[])


def test_measured_columns_are_read_back_and_are_part_of_the_content(tmp_path):
    plain = counted(COLUMNS["string"])
    columns = MeasuredColumn("bytes", np.array([0.1 + 0.2, 0, 5, 7]), 99.5), MeasuredColumn("count", np.ones(4), 4.0)
    measured = replace(plain, measured=columns)
    written = write_frequencies(measured, tmp_path / "f", MADE)
    read, _ = read_frequencies(tmp_path / "f", check_all=True)
    assert same(read, plain)
    assert [(c.source, c.values.tolist(), c.total) for c in read.measured] == [
        (c.source, c.values.tolist(), c.total) for c in columns
    ]
    assert written.content_hash != write_frequencies(plain, tmp_path / "plain", MADE).content_hash
    assert read_frequencies(tmp_path / "plain")[0].measured == ()


def test_the_content_hash_tells_counts_apart_and_not_the_makers(tmp_path):
    one = write_frequencies(counted(COLUMNS["string"]), tmp_path / "1", MADE)
    same_counts = write_frequencies(counted(COLUMNS["string"]), tmp_path / "2", Provenance("another"))
    other = write_frequencies(counted(COLUMNS["string"], (7, 5, 5, 2)), tmp_path / "3", MADE)
    assert one.content_hash == same_counts.content_hash != other.content_hash


def csv(tmp_path, text, encoding="utf-8"):
    path = tmp_path / "counts.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode(encoding))
    return path


@pytest.mark.parametrize(
    "text",
    [
        "key,count\nb,1\na,2\n",
        "b,1\na,2\n",
        "\ufeffKey, Count\r\nb,1\r\na,2",
        '\n\nkey,count\n\n"b",1\n"a","2"\n',
        "b,1.0\na,2e0",
    ],
)
def test_a_csv_is_read_with_or_without_its_header(tmp_path, text):
    read = read_counts(csv(tmp_path, text))
    assert (read.keys.to_pylist(), read.count_low.tolist(), read.total, read.rows) == (["a", "b"], [2, 1], 3.0, 3)
    assert read.count_low.dtype == np.int64


def test_keys_may_hold_commas_quotes_and_line_ends(tmp_path):
    assert read_counts(csv(tmp_path, '"a,b",1\n"say ""no""",2\n"x\ny",3\n,4\n')).keys.to_pylist() == [
        "",
        "x\ny",
        'say "no"',
        "a,b",
    ]


def test_further_columns_are_measured_by_their_headings(tmp_path):
    path = csv(tmp_path, "key,count,note,state bytes\nb,1,x,2.5\na,2,,0\n")
    read = read_counts(path, sources=["state bytes", "count"])
    assert read.keys.to_pylist() == ["a", "b"]
    assert read.column("state bytes").values.tolist() == [0, 2.5]
    assert (read.column("state bytes").total, read.column("count").values.tolist()) == (2.5, [2, 1])
    assert read_counts(path).measured == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("key,count,x\na,1,2\nb,1\n", "line 3: expected 3 fields: key, count, x (got 2)"),
        ("key,count,x\na,1,2\nb,1,-2\n", "line 3: the x must be a number, at least 0 (got '-2')"),
        ("key,count,x\n\na,1,much\n", "line 3: the x must be a number, at least 0 (got 'much')"),
        ("key,count,x\na,1,\n", "line 2: the x must be a number, at least 0 (got '')"),
        ("key,count,x\na,1,nan\n", "line 2: the x must be a number, at least 0 (got 'nan')"),
        ("key,count,x,x\na,1,1,1\n", "2 columns are named 'x'; rename all but one"),
        ("key,count,x\na,1,1e308\nb,1,1e308\n", "the sum of column x is inf; it must be below 2^63"),
    ],
)
def test_a_bad_row_of_a_measured_column_is_refused_with_its_line(tmp_path, text, told):
    with pytest.raises(BadInput) as refused:
        read_counts(csv(tmp_path, text), sources=["x"])
    assert told in str(refused.value)
    assert "counts.csv" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("key,count\na,1\nb\n", "line 3: expected 2 fields: key, count (got 1)"),
        ("a,1,2\n", "line 1: expected 2 fields: key, count (got 3)"),
        ("a,1\nb,many\n", "line 2: the count must be a number, at least 0 (got 'many')"),
        ("a,-1\n", "line 1: the count must be a number, at least 0 (got '-1')"),
        ("a,nan\n", "line 1: the count must be a number, at least 0 (got 'nan')"),
        ("a,inf\n", "line 1: the count must be a number, at least 0 (got 'inf')"),
        ("a,1_000\n", "line 1: the count must be a number, at least 0 (got '1_000')"),
        ("a,\n", "line 1: the count must be a number, at least 0 (got '')"),
        ("a,1\nb,1\na,2\n", "line 3: key 'a' is on line 1 too; add their counts up"),
        ('a,1\n"b,1\n', "line 2: unexpected end of data"),
        ("a,1\n" + "x" * 200_000 + ",1\n", "line 2: field larger than"),
        ("", "has no rows"),
        ("key,count\n", "has no rows"),
        ("a,1e308\nb,1e308\n", "the sum of column count is inf; it must be below 2^63"),
        (b"a,1\n\xff,1\n", "is not UTF-8 CSV"),
    ],
)
def test_a_bad_row_is_refused_with_its_line(tmp_path, text, told):
    with pytest.raises(BadInput) as refused:
        read_counts(csv(tmp_path, text))
    assert told in str(refused.value)
    assert "counts.csv" in str(refused.value)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("text", "key_type", "told"),
    [
        ("1,1\n01,1\n", KeyType.INT64, "line 2: int64 keys must be 64-bit integers in decimal (got '01')"),
        ("key,count\n1,1\nx,1\n", KeyType.INT64, "line 3: int64 keys must be 64-bit integers in decimal (got 'x')"),
        ("abc,1\n", KeyType.BINARY, "line 1: binary keys must be bytes in hex (got 'abc')"),
        ("ff,1\nFF,1\n", KeyType.BINARY, "key ff is repeated"),
    ],
)
def test_a_bad_key_of_a_type_is_refused_with_its_line(tmp_path, text, key_type, told):
    with pytest.raises(BadInput) as refused:
        read_counts(csv(tmp_path, text), key_type)
    assert told in str(refused.value)


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), st.integers(0, 2**53), min_size=1, max_size=8))
def test_any_text_is_a_key(tmp_path_factory, counts):
    import csv as csv_module

    path = tmp_path_factory.mktemp("csv") / "counts.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv_module.writer(file).writerows([("key", "count"), *counts.items()])
    read = read_counts(path)
    assert dict(zip(read.keys.to_pylist(), read.count_low.tolist(), strict=True)) == counts
