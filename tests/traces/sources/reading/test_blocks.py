"""Records of files, cut into blocks and ranges wherever they end."""

import csv
import io

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adapt.core.errors import BadInput
from adapt.traces.sources.formats.delimited import Delimited
from adapt.traces.sources.formats.text import pattern_format
from adapt.traces.sources.reading import blocks
from adapt.traces.sources.reading.blocks import cut, read_blocks
from adapt.traces.sources.reading.files import source_files
from adapt.traces.sources.reading.records import NEVER, OPEN_QUOTE, delimited_records, last_line_end, line_records
from tests.traces.sources.plain_records import plain_lines, plain_records

PLAIN = Delimited(("x", "y"))
HEADED = Delimited(("x", "y"), header=("x", "y"))
LINES = pattern_format("(?P<x>.*)")


def file_of(tmp_path, content, name="source.csv"):
    path = tmp_path / name
    path.write_bytes(content)
    (file,) = source_files([str(path)])
    return file


def rows_of(file, form, wanted=None, **options):
    wanted = form.columns if wanted is None else wanted
    rows = []
    for block in cut(0, file, form):
        for batch in read_blocks([block], form, wanted, **options):
            rows += batch.to_pylist()
    return rows


def small_blocks(monkeypatch, size, chunk):
    monkeypatch.setattr(blocks, "BLOCK_BYTES", size)
    monkeypatch.setattr(blocks, "CHUNK_BYTES", chunk)


contents = st.lists(
    st.sampled_from(
        [b"a", b"b", b",", b'"', b"\n", b"\r\n", b"\r", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", "é".encode()]
    ),
    max_size=60,
).map(b"".join)


@given(content=contents, size=st.integers(1, 20), chunk=st.integers(1, 9), form=st.sampled_from([PLAIN, LINES]))
def test_small_blocks_hold_the_rows_and_lines_of_one_block(tmp_path_factory, content, size, chunk, form):
    content = b"a,b\n" + content  # a file that begins like UTF-16 is refused
    file = file_of(tmp_path_factory.mktemp("cut"), content)
    whole = rows_of(file, form, with_text=True)
    with pytest.MonkeyPatch.context() as monkeypatch:
        small_blocks(monkeypatch, size, chunk)
        pieces = cut(0, file, form)
        assert rows_of(file, form, with_text=True) == whole
    assert [piece.offset for piece in pieces] == sorted({piece.offset for piece in pieces})


def test_a_long_file_is_cut_where_records_begin(tmp_path, monkeypatch):
    small_blocks(monkeypatch, 10, 4)
    file = file_of(tmp_path, b'a,"b\nb"\nc,d\ne,f\ng,h\n')
    assert [(block.offset, block.line) for block in cut(0, file, PLAIN)] == [(0, 1), (12, 4)]


def test_every_row_knows_its_file_and_line(tmp_path):
    file = file_of(tmp_path, b"\nx,y\n\n1,2\n")
    assert rows_of(file, HEADED, wanted=("x", "y", "_path")) == [
        {"_file": 0, "_line": 4, "_reason": None, "_text": None, "x": "1", "y": "2", "_path": "source.csv"}
    ]


def test_a_header_is_passed_over_once_in_a_file_of_many_blocks(tmp_path, monkeypatch):
    small_blocks(monkeypatch, 4, 4)
    file = file_of(tmp_path, b"x,y\n1,2\nx,y\n3,4\n")
    assert [(row["_line"], row["x"]) for row in rows_of(file, HEADED)] == [(2, "1"), (3, "x"), (4, "3")]


def test_a_byte_order_mark_is_no_part_of_the_first_value(tmp_path):
    file = file_of(tmp_path, b"\xef\xbb\xbfa,b\n")
    assert rows_of(file, PLAIN)[0]["x"] == "a"


def test_a_row_that_is_not_utf_8_is_refused_and_its_neighbours_kept(tmp_path):
    file = file_of(tmp_path, "é,b\n".encode() + b"c\xff,d\n1\n" + "e,ö\n".encode())
    assert [(row["_line"], row["_reason"], row["_text"], row["x"], row["y"]) for row in rows_of(file, PLAIN)] == [
        (1, None, None, "é", "b"),
        (2, "not UTF-8 text", "c\\xff,d", None, None),
        (3, "1 fields instead of 2", "1", None, None),
        (4, None, None, "e", "ö"),
    ]


@pytest.mark.parametrize("first", [b"x,z\n", b"x\n", b"1,2\n", b"y,x\n"])
def test_a_file_with_another_header_is_refused(tmp_path, first):
    file = file_of(tmp_path, first + b"1,2\n")
    with pytest.raises(BadInput, match=r"does not begin with that of the first file \(x, y\) but with"):
        rows_of(file, HEADED)


def test_a_record_that_never_ends_is_refused_with_its_line(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "LONGEST_RECORD", 100)
    small_blocks(monkeypatch, 1 << 20, 50)
    file = file_of(tmp_path, b"a,b\nc,d\n" + b'"' + b"e" * 300)
    with pytest.raises(BadInput, match=r"source\.csv line 3: a record must not exceed .*a quote that is never closed"):
        rows_of(file, PLAIN)


def test_a_file_that_went_away_is_refused_by_name(tmp_path):
    file = file_of(tmp_path, b"a,b\n")
    (tmp_path / "source.csv").unlink()
    with pytest.raises(BadInput, match="cannot be read: No such file"):
        rows_of(file, PLAIN)


COMMA, QUOTE = ord(","), ord('"')

texts = st.text(alphabet='ab,"\r\n', max_size=40).map(str.encode)
cuts = st.lists(st.integers(1, 7), max_size=30)


def as_bytes(text):
    return np.frombuffer(text, np.uint8)


def found(text, *, quote=QUOTE, at_end=True):
    """(first byte, end, line, fields) of each record."""
    records = delimited_records(as_bytes(text), COMMA, quote, at_end=at_end)
    return listed(records)


def listed(records, byte=0, line=0):
    places = zip(records.starts, records.ends, records.lines, records.fields, strict=True)
    return [(int(start) + byte, int(end) + byte, int(at) + line, int(fields)) for start, end, at, fields in places]


def in_chunks(text, cuts, reader):
    """The records of a text that arrives in chunks of these sizes, what is unfinished being carried over."""
    sizes = iter([*cuts, len(text)])
    rest, position, line, records = b"", 0, 0, []
    arrived = 0
    while True:
        chunk = text[arrived : arrived + next(sizes, len(text))]
        arrived += len(chunk)
        at_end = arrived == len(text)
        data = rest + chunk
        some = reader(as_bytes(data), at_end=at_end)
        records += listed(some, position, line)
        position += some.used
        line += some.used_lines
        rest = data[some.used :]
        if at_end:
            return records, position, line


def test_records_end_at_line_ends_of_any_kind():
    assert found(b"a,b\nc\r\nd\re") == [(0, 3, 0, 2), (4, 5, 1, 1), (7, 8, 2, 1), (9, 10, 3, 1)]


def test_a_line_end_inside_quotes_ends_no_record_but_counts_as_a_line():
    assert found(b'"a\r\nb",c\nd') == [(0, 8, 0, 2), (9, 10, 2, 1)]


def test_a_quote_inside_an_unquoted_field_is_itself():
    assert found(b'a"b,c\nd') == [(0, 5, 0, 2), (6, 7, 1, 1)]


def test_an_unclosed_quote_spoils_only_its_own_line():
    assert found(b'a,b\n"c,d\ne,f\n') == [(0, 3, 0, 2), (4, 8, 1, OPEN_QUOTE), (9, 12, 2, 2)]


@given(texts)
@example(b'"a""\n')
@example(b'","\r\r\n"')
def test_records_are_those_of_the_plain_state_machine(text):
    assert found(text) == plain_records(text)


@given(texts, cuts)
@example(b"a\r\nb", [2])
@example(b'"a""b"\n', [3])
def test_records_do_not_depend_on_where_chunks_end(text, cuts):
    whole = delimited_records(as_bytes(text), COMMA, QUOTE, at_end=True)

    def reader(data, *, at_end):
        return delimited_records(data, COMMA, QUOTE, at_end=at_end)

    assert in_chunks(text, cuts, reader) == (listed(whole), len(text), whole.used_lines)


@given(
    st.lists(st.lists(st.text(alphabet='ab,"\r\né', max_size=6), min_size=1, max_size=4), max_size=8),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
)
def test_what_the_csv_module_writes_is_found_row_by_row(rows, line_end, quoting):
    written = io.StringIO()
    csv.writer(written, lineterminator=line_end, quoting=quoting).writerows(rows)
    text = written.getvalue().encode()
    read = [row for row in csv.reader(io.StringIO(text.decode(), newline="")) if row]
    assert [fields for _, _, _, fields in found(text)] == [len(row) for row in read]


@given(texts)
def test_what_the_csv_module_reads_strictly_has_the_same_rows(text):
    try:
        rows = [row for row in csv.reader(io.StringIO(text.decode(), newline=""), strict=True) if row]
    except csv.Error:
        return
    assert [fields for _, _, _, fields in found(text)] == [len(row) for row in rows]


@given(texts)
def test_lines_are_those_between_line_feeds(text):
    records = line_records(as_bytes(text), at_end=True)
    assert listed(records) == plain_lines(text)
    assert (records.used, records.used_lines) == (len(text), text.count(b"\n"))


@given(texts)
def test_the_last_line_end_is_where_the_records_end(text):
    data = as_bytes(text)
    for quote, found_by in (
        (QUOTE, delimited_records(data, COMMA, QUOTE, at_end=False)),
        (NEVER, delimited_records(data, COMMA, NEVER, at_end=False)),
        (NEVER, line_records(data, at_end=False)),
    ):
        ends = last_line_end(data, quote)
        assert ends is None or (ends.used, ends.used_lines) == (found_by.used, found_by.used_lines)
