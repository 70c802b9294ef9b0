"""Delimited text, logs, patterns, and what consoles of Kafka print."""

import csv
import io
import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapt.core.errors import UsageError
from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.lint import lint
from adapt.traces.sources.formats.console import ENVELOPE, console_format, is_dump
from adapt.traces.sources.formats.delimited import Delimited
from tests.traces.sources.kcat_printing import Message, envelope

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


def test_envelopes_are_known_by_what_they_begin_with():
    assert ENVELOPE.match(envelope(Message(b"k", b"p")))
    assert ENVELOPE.match(envelope(Message(None, None, ts=-1, headers=[("a", "b")])))
    assert ENVELOPE.match(json.dumps({"topic": "t", "partition": 0, "offset": 1, "key": None}))
    assert not ENVELOPE.match(json.dumps({"topic": "t", "time": 0, "offset": 1, "key": None}))


def dumped(properties, rows):
    """Rows of timestamp, partition, offset, headers, key and value, as DefaultMessageFormatter prints them."""
    on = {name for name, value in (each.split("=", 1) for each in properties) if value == "true"} | {"print.value"}
    separator = next((each.split("=", 1)[1] for each in properties if each.startswith("key.separator")), "\t")
    names = ("timestamp", "partition", "offset", "headers", "key", "value")
    begins = {"timestamp": "CreateTime:", "partition": "Partition:", "offset": "Offset:"}
    lines = [
        separator.join(
            f"{begins.get(name, '')}{cell}" for name, cell in zip(names, row, strict=True) if f"print.{name}" in on
        )
        for row in rows
    ]
    return [f"{line}\n" for line in lines]


ROWS = [
    (1_431_857_103_000, 2, 17, "trace:1,origin:web", "ann", '{"a": "x\ty"}'),
    (1_431_857_103_200, 0, 40, "NO_HEADERS", "null", "plain"),
    (1_431_857_104_000, 2, 18, "NO_HEADERS", "é|b", "null"),
]
ALL = tuple(f"print.{name}=true" for name in ("timestamp", "partition", "offset", "headers", "key"))


def read(form, lines):
    data = "".join(lines).encode()
    records = form.records(np.frombuffer(data, np.uint8), at_end=True)
    parsed = form.parse(np.frombuffer(data, np.uint8), records, form.columns)
    assert parsed.reasons is None
    return pa.table(parsed.columns).to_pylist()


EXPECTED = [
    {"ts": "1431857103000", "partition": "2", "offset": "17", "headers": "trace:1,origin:web", "key": "ann"},
    {"ts": "1431857103200", "partition": "0", "offset": "40", "headers": None, "key": None},
    {"ts": "1431857104000", "partition": "2", "offset": "18", "headers": None, "key": "é|b"},
]


@pytest.mark.parametrize(
    ("separator", "left_out"),
    [("\t", ""), ("~", "timestamp"), ("|-|", "partition"), ("\t", "offset"), ("~", "headers"), ("|-|", "key")],
)
def test_any_set_of_properties_is_read_as_stated(separator, left_out):
    properties = [*(each for each in ALL if f"print.{left_out}=" not in each), f"key.separator={separator}"]
    lines = dumped(properties, ROWS)
    names = {"timestamp": "ts"}.get(left_out, left_out)
    found = read(
        console_format([*properties, f"print.{left_out or 'value'}={str(not left_out).lower()}"], lines), lines
    )
    values = [ROWS[0][5], "plain", None]
    assert found == [
        {**{name: cell for name, cell in row.items() if name != names}, "value": value}
        for row, value in zip(EXPECTED, values, strict=True)
    ]


def test_fields_and_separator_are_guessed_where_lines_show_them():
    for separator in ("\t", "|", ";"):
        rows = [(*row[:4], row[4].replace("|", ""), row[5]) for row in ROWS]
        lines = dumped([*ALL, f"key.separator={separator}"], rows)
        assert is_dump(lines)
        assert console_format((), lines).columns == ("ts", "partition", "offset", "headers", "key", "value")
    assert console_format((), dumped(["print.timestamp=true"], ROWS[1:])).columns == ("ts", "value")
    assert console_format((), ["NO_TIMESTAMP\tann\t1\n"]).columns == ("ts", "key", "value")
    assert not is_dump(["CreateTime,user\n", "1,ann\n"])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("print.kay=true", "--property 'print.kay' is unknown; did you mean 'print.key'"),
        ("print.key=yes", "--property print.key must be true or false"),
        ("key", "--property must be NAME=VALUE"),
        ("line.separator=;", "line.separator must be a line end"),
    ],
)
def test_wrong_properties_are_refused(given, said):
    with pytest.raises(UsageError, match=said):
        console_format((given,), ["CreateTime:1\ta\n"])


@pytest.mark.usefixtures("spark")
def test_a_dump_becomes_a_trace_with_partitions_and_null_keys(tmp_path):
    (tmp_path / "orders.txt").write_text("".join([*dumped(ALL, ROWS), "Processed a total of 3 messages\n"]))
    done = ingest([str(tmp_path / "orders.txt")], tmp_path / "t.trace", Mapping("key"))
    rows = pa.Table.from_batches(done.trace.batches()).to_pylist()
    assert [(row["key"], row["partition"]) for row in rows] == [("ann", 2), (None, 0), ("é|b", 2)]
    assert [int(row["ts"].timestamp() * 1000) for row in rows] == [row[0] for row in ROWS]
    assert "format console" in done.guesses
    assert done.rejects.rows == 1
    (finding,) = (each for each in lint(tmp_path / "t.trace").findings if each.id == "null-text")
    assert finding.evidence == "1 row has a null key, which their source prints as 'null'."
