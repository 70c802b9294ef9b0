"""JSON as it lies about: whatever holds the objects, the rows are those that Python's own reader finds."""

import gzip
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapt.core.errors import BadInput
from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.sources import sniff
from adapt.traces.sources.formats.json_layout import JSON, json_layout
from adapt.traces.sources.formats.json_lines import JsonLines
from adapt.traces.sources.names import FormatName
from adapt.traces.sources.reading import blocks, files
from adapt.traces.sources.reading.blocks import cut, read_blocks
from adapt.traces.sources.reading.files import source_files
from adapt.traces.sources.reading.records import WHOLE_LINE
from adapt.traces.sources.sniff import ReadOptions, offered_columns, recognize

ROWS = [
    {"user": f"u{at % 3}", "at": f"2024-03-01T10:00:{at:02d}Z", "note": 'a }{ ]" \\ b', "in": {"n": at}}
    for at in range(40)
]
WRITTEN = {
    "an array": json.dumps(ROWS),
    "an array over many lines": json.dumps(ROWS, indent=2),
    "an array without indents": json.dumps(ROWS, indent=0),
    "what jq prints": "".join(json.dumps(row, indent=2) + "\n" for row in ROWS),
    "one directly after another": "".join(map(json.dumps, ROWS)),
    "arrays of several answers": json.dumps(ROWS[:9]) + "\n" + json.dumps(ROWS[9:]),
    "records of CloudTrail": json.dumps({"Records": ROWS}),
    "a page": json.dumps({"next": "[{", "tags": ["a"], "items": ROWS, "count": 40}, indent=1),
    "hits of a search": json.dumps(
        {"took": 3, "hits": {"total": {"value": 40}, "hits": ROWS}, "a": {"b": {"c": [{}]}}}
    ),
}


def read(folder, text, name="a.json", chunk=None):
    """The rows of a file as objects, with their lines and reasons."""
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    (file,) = source_files([str(folder / name)])
    form = recognize([file], ReadOptions()).form
    with pytest.MonkeyPatch.context() as patch:
        if chunk:
            patch.setattr(blocks, "CHUNK_BYTES", chunk)
            patch.setattr(blocks, "BLOCK_BYTES", 2 * chunk)
        places = cut(0, file, form)
        found = [
            row for block in places for batch in read_blocks([block], form, [WHOLE_LINE]) for row in batch.to_pylist()
        ]
    rows = [row[WHOLE_LINE] and json.loads(row[WHOLE_LINE]) for row in found]
    return rows, [row["_line"] for row in found], [row["_reason"] for row in found]


@pytest.mark.parametrize("chunk", [None, 64, 1000])
@pytest.mark.parametrize("name", WRITTEN)
def test_objects_are_rows_wherever_they_lie(tmp_path, name, chunk):
    rows, lines, reasons = read(tmp_path, WRITTEN[name], chunk=chunk)
    assert rows == ROWS
    assert lines == list(range(1, 41))
    assert reasons == [None] * 40


values = st.recursive(
    st.none() | st.integers(-9, 9) | st.text('a"\\{}[],: ', max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('ab"', max_size=2), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.lists(st.dictionaries(st.text("xy", min_size=1, max_size=2), values, min_size=1), min_size=2, max_size=6),
    st.sampled_from([None, 0, 2]),
    st.integers(1, 40),
)
@example([{"x": '"}'}, {"x": "\\"}], 0, 1)
def test_rows_do_not_depend_on_where_chunks_end(tmp_path_factory, objects, indent, chunk):
    folder = tmp_path_factory.mktemp("json")
    for text in (json.dumps(objects, indent=indent), json.dumps({"a": {"b": objects}, "c": 1}, indent=indent)):
        if json_layout(text.encode(), whole=True).what == JSON:
            assert read(folder, text, chunk=chunk)[0] == objects


@pytest.mark.parametrize(
    ("text", "good", "reasons"),
    [
        ('{"Records": [{"a": 1}, {"a": 2}, {"a": "x', [{"a": 1}, {"a": 2}], ["the object is cut off"]),
        ('[\n  {"a": 1},\n  {"a": 2},\n  {\n    "a":', [{"a": 1}, {"a": 2}], ["the object is cut off"]),
        ('[{"a": 1}, 5, "x,y", null, [{"b": 1}], {"a": 2}]', [{"a": 1}, {"b": 1}, {"a": 2}], ["not a JSON object"] * 3),
        ('[{"a": 1}, {"a": "never\n}, {"a": 2}]', [{"a": 1}, {"a": 2}], ["not a JSON object"]),
    ],
)  # fmt: skip
def test_what_is_no_object_is_rejected_alone(tmp_path, text, good, reasons):
    rows, lines, found = read(tmp_path, text)
    assert [row for row in rows if row] == good
    assert [reason for reason in found if reason] == reasons
    assert lines == list(range(1, len(rows) + 1))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": [{"x": 1}], "b": {"c": [{"y": 2}]}}', r"two arrays of objects, a and b\.c; .*jq -c '\.a\[\]'"),
        ('[\n  {"a": [\n  {"a": 2},\n  {"a": 3}\n]', r"an object is never closed, but others follow"),
        ('{"a": [{"x": 1}]} {}', r"a\.json: an object without the array a follows"),
        ('{"a": [{"x": 1}], "b": [{}]}', r"a\.json: there are two arrays of objects, a and b"),
    ],
)  # fmt: skip
def test_what_would_lose_rows_is_refused(tmp_path, monkeypatch, text, says):
    monkeypatch.setattr(sniff, "HEAD_BYTES", 12)
    monkeypatch.setattr(files, "LONGEST_HEAD", 12)
    with pytest.raises(BadInput, match=says):
        read(tmp_path, text)


def test_an_object_around_an_array_lies_next_to_no_other(tmp_path):
    (tmp_path / "a.json").write_text('{"Records": [{"a": 1}]}')
    (tmp_path / "b.json").write_text('{"a": 1}\n{"a": 2}\n')
    with pytest.raises(BadInput, match=r"a\.json is one object around the array Records, but b\.json is not; .* jsonl"):
        recognize(source_files([str(tmp_path)]), ReadOptions())


def event(before, after, op, at):
    return {"before": before, "after": after, "source": {"table": "t"}, "op": op, "ts_ms": at}


CHANGES = [
    event(None, {"id": 1, "price": 1.10}, "c", 1),
    event({"id": 1, "price": 1.10}, {"id": 1}, "u", 2),
    event({"id": 1}, None, "d", 3),
    event(None, {}, "r", 4),
    event(None, None, "t", 5),
]
IMAGES = [
    {"id": 1, "price": 1.10, "__op": "c", "__ts_ms": 1},
    {"id": 1, "__op": "u", "__ts_ms": 2},
    {"id": 1, "__op": "d", "__ts_ms": 3},
    {"__op": "r", "__ts_ms": 4},
    None,
]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("schema", [False, True])
def test_the_row_of_a_change_is_its_image(tmp_path, schema, indent):
    events = [{"schema": {"fields": [{"op": 1}]}, "payload": each} if schema else each for each in CHANGES]
    rows, lines, reasons = read(tmp_path, "\n".join(json.dumps(each, indent=indent) for each in [*events, None]) + "\n")
    assert rows == IMAGES
    assert lines == [1, 2, 3, 4, 5]
    assert reasons == [None] * 4 + ["the change has no row"]


def batch(*spans, service="shop"):
    attributes = [{"key": "service.name", "value": {"stringValue": service}}]
    scope = {"name": "lib", "attributes": [{"key": "x", "value": {"intValue": "1"}}]}
    return {
        "resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": [{"scope": scope, "spans": spans}]}]
    }


def span(at, **attributes):
    held = [{"key": key, "value": value} for key, value in attributes.items()]
    return {"name": "GET", "startTimeUnixNano": str(at), "attributes": held, "events": [{"name": "e"}], "status": {}}


FLAT = {"name": "GET", "events": [{"name": "e"}], "resource.service.name": "shop"}


@pytest.mark.parametrize("indent", [None, 1])
def test_the_rows_of_a_batch_are_its_spans_with_flat_attributes(tmp_path, indent):
    nested = {"kvlistValue": {"values": [{"key": "k", "value": {"arrayValue": {"values": [{"boolValue": True}]}}}]}}
    batches = [
        batch(span(1, user={"stringValue": "ann"}), span(2, n={"intValue": "7"})),
        batch(),
        batch(span(3, m=nested)),
    ]
    rows, lines, _ = read(tmp_path, "\n".join(json.dumps(each, indent=indent) for each in batches))
    assert rows == [
        FLAT | {"startTimeUnixNano": "1", "attributes.user": "ann"},
        FLAT | {"startTimeUnixNano": "2", "attributes.n": 7},
        FLAT | {"startTimeUnixNano": "3", "attributes.m": {"k": [True]}},
    ]
    assert lines == sorted({*lines})


@pytest.mark.parametrize("chunk", [None, 64])
def test_the_resources_of_one_document_are_read_one_by_one(tmp_path, chunk):
    document = {"resourceSpans": [*batch(span(1), span(2))["resourceSpans"], *batch(span(3))["resourceSpans"]]}
    rows, lines, _ = read(tmp_path, json.dumps(document, indent=2), chunk=chunk)
    assert rows == [FLAT | {"startTimeUnixNano": str(at)} for at in (1, 2, 3)]
    assert lines == [1, 2, 3]


def test_a_batch_that_is_cut_off_is_one_rejected_row(tmp_path):
    whole = json.dumps(batch(span(1), span(2)))
    rows, _, reasons = read(tmp_path, f"{whole}\n{whole[:-9]}\n{whole}\n")
    assert [bool(row) for row in rows] == [True, True, False, True, True]
    assert reasons[2] == "not a JSON object"


def test_columns_are_offered_of_the_rows(tmp_path):
    for name, text in (("a", {"Records": ROWS}), ("b", CHANGES[0]), ("c", batch(span(1, user={"stringValue": "ann"})))):
        (tmp_path / f"{name}.json").write_text(json.dumps(text, indent=2))
    assert offered_columns([str(tmp_path / "a.json")]) == ("user", "at", "note", "in.n")
    assert offered_columns([str(tmp_path / "b.json")]) == ("id", "price", "__op", "__ts_ms")
    assert "`attributes.user`" in offered_columns([str(tmp_path / "c.json")])


def test_packed_files_of_several_layouts_are_one_source_without_spark(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(json.dumps(ROWS[:20]).encode()))
    (tmp_path / "b.json").write_text("".join(json.dumps(row) + "\n" for row in ROWS[20:]))
    made = ingest([str(tmp_path)], tmp_path / "out.trace", Mapping("user"))
    assert made.to_arrow()["key"].to_pylist() == [row["user"] for row in ROWS]
    assert made.rejects.rows == 0


def test_lines_stay_what_they_are_when_stated(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"Records": [{"a": 1}]}))
    assert recognize(source_files([str(tmp_path)]), ReadOptions(FormatName.JSONL)).form == JsonLines()
