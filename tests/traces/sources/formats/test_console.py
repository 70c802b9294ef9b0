"""What the formatter of kafka-console-consumer prints is read field by field."""

import numpy as np
import pyarrow as pa
import pytest

from adapt.core.errors import UsageError
from adapt.traces.ingest.ingest import ingest
from adapt.traces.ingest.mapping import Mapping
from adapt.traces.lint import lint
from adapt.traces.sources.formats.console import console_format, is_dump


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
