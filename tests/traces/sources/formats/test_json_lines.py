"""JSON lines: one schema for all objects, and lines that are no object refused."""

import json

import pytest

from adapt.core.errors import BadInput, UsageError
from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping


def write(path, *lines):
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def rows_of(source, *wanted):
    found = source.frame(list(wanted)).orderBy("_file", "_line").collect()
    return [row.asDict(recursive=True) for row in found]


def test_fields_keep_their_types_and_may_be_missing(opened, tmp_path):
    objects = [{"n": 1, "t": "2015-05-17", "x": 0.5}, {"n": None, "x": 2}, {"n": 2**60, "deep": {"a b": [1]}}, {}]
    source = opened(write(tmp_path / "a.jsonl", *objects))
    assert sorted(source.columns) == ["deep", "n", "t", "x"]
    frame = source.frame(["n", "t", "x", "deep"])
    assert dict(frame.dtypes)["n"] == "bigint"
    assert dict(frame.dtypes)["t"] == "string"
    assert dict(frame.dtypes)["deep"] == "struct<a b:array<bigint>>"
    rows = rows_of(source, "n", "t", "x", "deep")
    assert [row["n"] for row in rows] == [1, None, 2**60, None]
    assert [row["x"] for row in rows] == [0.5, 2.0, None, None]
    assert rows[2]["deep"] == {"a b": [1]}
    assert [row["_reason"] for row in rows] == [None] * 4


def test_a_field_of_several_types_is_text(opened, tmp_path):
    source = opened(write(tmp_path / "a.jsonl", {"k": 1}, {"k": "a"}, {"k": {"b": 2}}))
    assert [row["k"] for row in rows_of(source, "k")] == ["1", "a", '{"b":2}']


def test_fields_that_differ_in_case_or_have_odd_names_are_different_fields(opened, tmp_path):
    names = ["user", "User", "user.name", "a b", "Größe", "a`b"]
    source = opened(write(tmp_path / "a.jsonl", {name: name for name in names}))
    assert sorted(source.columns) == sorted(names)
    (row,) = rows_of(source, *names)
    assert [row[name] for name in names] == names


BAD = [
    '{"a": 1',
    "[1, 2]",
    '[{"a": 1}]',
    "12",
    '"text"',
    "null",
    "text",
    '{"a": 1} {"a": 2}',
    '{"a": 1}{"a": 2}',
    '{"a": 1}, {"a": 2}',
    '{"a": 1} and more',
]


def test_a_line_that_is_not_one_object_is_refused_and_the_others_kept(opened, tmp_path):
    source = opened(write(tmp_path / "a.jsonl", '{"a": 7}', *BAD, ' {"a": 8} ', "{}"))
    rows = rows_of(source, "a")
    assert [row["_line"] for row in rows if row["_reason"] is None] == [1, len(BAD) + 2, len(BAD) + 3]
    assert [row["a"] for row in rows if row["_reason"] is None] == [7, 8, None]
    assert {row["_reason"] for row in rows if row["_reason"]} == {"not a JSON object"}


@pytest.mark.parametrize("line", ["{}", '{"a": '])
def test_lines_without_any_field_are_refused(opened, tmp_path, line):
    with pytest.raises(BadInput, match=r"a\.jsonl: no line is a JSON object with a field"):
        opened(write(tmp_path / "a.jsonl", line))


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("event.usr.id", r"column 'event.usr.id' does not exist; did you mean 'event.user.id'\?"),
        ("upper(evnt)", r"column 'evnt' does not exist; did you mean 'event'\?|Available: event, event.user.id, ts"),
    ],
)
@pytest.mark.usefixtures("spark")
def test_nested_fields_are_offered_by_their_path(tmp_path, key, said):
    write(tmp_path / "a.jsonl", {"event": {"user": {"id": 1}}, "ts": 1_431_857_103})
    with pytest.raises(UsageError, match=said):
        ingest([str(tmp_path / "a.jsonl")], tmp_path / "a.trace", Mapping(key, "ts"))
