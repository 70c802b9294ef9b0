"""Delimited text becomes columns: what the csv module reads, with records of another width refused."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.traces.sources.formats.delimited import Delimited

cells = st.text(alphabet='ab,;"\r\n é', max_size=6)


def parsed(form, text, wanted=None):
    data = np.frombuffer(text.encode(), np.uint8)
    records = form.records(data, at_end=True)
    result = form.parse(data, records, wanted or form.columns)
    rows = list(zip(*(result.columns[name].to_pylist() for name in wanted or form.columns), strict=True))
    return rows, [None] * len(rows) if result.reasons is None else result.reasons.to_pylist()


@given(st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=8), st.sampled_from(["\n", "\r\n", "\r"]))
def test_values_are_those_the_csv_module_wrote(rows, line_end):
    written = io.StringIO()
    csv.writer(written, lineterminator=line_end, quoting=csv.QUOTE_ALL).writerows(rows)
    assert parsed(Delimited(("x", "y", "z")), written.getvalue()) == (rows, [None] * len(rows))


@given(st.lists(st.lists(cells, min_size=1, max_size=4), min_size=1, max_size=8))
def test_records_of_another_width_are_refused_and_the_others_kept(rows):
    written = io.StringIO()
    csv.writer(written, quoting=csv.QUOTE_ALL).writerows(rows)
    kept, reasons = parsed(Delimited(("x", "y")), written.getvalue())
    assert kept == [tuple(row) if len(row) == 2 else (None, None) for row in rows]
    assert reasons == [None if len(row) == 2 else f"{len(row)} fields instead of 2" for row in rows]


def test_an_unclosed_quote_is_refused_by_name_and_costs_no_other_row():
    rows, reasons = parsed(Delimited(("x", "y")), 'a,b\n"c,d\ne,f\n')
    assert rows == [("a", "b"), (None, None), ("e", "f")]
    assert reasons == [None, "a quote is never closed", None]


def test_no_wanted_column_still_counts_the_rows():
    data = np.frombuffer(b"1,2\n3\n", np.uint8)
    form = Delimited(("x", "y"))
    result = form.parse(data, form.records(data, at_end=True), [])
    assert result.columns == {}
    assert result.reasons.to_pylist() == [None, "1 fields instead of 2"]


@pytest.mark.parametrize("delimiter", ["\t", ";", "|", " "])
def test_any_delimiter_parts_fields(delimiter):
    text = delimiter.join(["a", '"b,c"', "d"]) + "\n"
    assert parsed(Delimited(("x", "y", "z"), delimiter), text)[0] == [("a", "b,c", "d")]


def test_without_a_quote_character_quotes_are_part_of_the_value():
    assert parsed(Delimited(("x", "y"), quote=""), '"a,b"\n')[0] == [('"a', 'b"')]
