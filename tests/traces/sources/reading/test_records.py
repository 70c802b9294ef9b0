"""Where records begin and end: by Python's csv module, by a plain state machine, and wherever chunks are cut."""

import csv
import io

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from adapt.traces.sources.reading.records import NEVER, OPEN_QUOTE, delimited_records, last_line_end, line_records
from tests.traces.sources.plain_records import plain_lines, plain_records

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
