"""Lines taken apart by patterns: web server logs, and a user's own expressions."""

import numpy as np
import pytest

from adapt.core.errors import UsageError
from adapt.traces.sources.formats.text import log_format, pattern_format

REQUEST = '10.0.0.1 - ann [17/May/2015:10:05:03 +0000] "GET /a?b=c HTTP/1.1" 200 512'


def parsed(form, *lines):
    data = np.frombuffer("\n".join(lines).encode(), np.uint8)
    result = form.parse(data, form.records(data, at_end=True), form.columns)
    rows = [
        dict(zip(form.columns, row, strict=True))
        for row in zip(*(result.columns[name].to_pylist() for name in form.columns), strict=True)
    ]
    return rows, [None] * len(rows) if result.reasons is None else result.reasons.to_pylist()


def log_line(line):
    (row,), (reason,) = parsed(log_format(), line)
    assert reason is None
    return row


def test_a_common_log_line_is_taken_apart():
    row = log_line(REQUEST)
    assert (row["host"], row["ident"], row["user"]) == ("10.0.0.1", None, "ann")
    assert row["time"] == "17/May/2015:10:05:03 +0000"
    assert (row["method"], row["path"], row["protocol"]) == ("GET", "/a?b=c", "HTTP/1.1")
    assert (row["status"], row["bytes"]) == ("200", "512")


def test_a_combined_log_line_has_referrer_and_agent_too():
    row = log_line(f'{REQUEST} "http://x.example/" "Browser/1.0 (a; b)"')
    assert (row["referrer"], row["agent"]) == ("http://x.example/", "Browser/1.0 (a; b)")


def test_a_path_may_hold_spaces_and_the_protocol_may_be_missing():
    assert log_line('h - - [t] "GET /a b HTTP/1.1" 200 5')["path"] == "/a b"
    old = log_line('h - - [t] "GET /a" 200 5')
    assert (old["path"], old["protocol"]) == ("/a", "")


@pytest.mark.parametrize(
    "line",
    [
        "not a log line",
        'h - - [t] "GET / HTTP/1.1" abc 5',
        'h - - [t] "GET / HTTP/1.1" 200 5 "referrer" "agent without an end',
    ],
)
def test_a_malformed_line_is_refused_and_its_neighbours_kept(line):
    rows, reasons = parsed(log_format(), REQUEST, line, REQUEST)
    assert reasons == [None, "not a line of the Common or Combined Log Format", None]
    assert [row["host"] for row in rows] == ["10.0.0.1", None, "10.0.0.1"]


def test_the_named_groups_of_a_pattern_are_its_columns():
    form = pattern_format(r"^(?P<level>[A-Z]+) (?P<user>\S+)")
    rows, reasons = parsed(form, "WARN ann: x", "nothing", "INFO bob")
    assert form.columns == ("level", "user")
    assert rows == [{"level": "WARN", "user": "ann:"}, {"level": None, "user": None}, {"level": "INFO", "user": "bob"}]
    assert reasons == [None, "does not match the pattern", None]


def test_a_pattern_may_match_any_part_of_a_line_and_any_letters():
    assert parsed(pattern_format(r"user=(?P<user>\S+)"), "x user=Zoë y")[0] == [{"user": "Zoë"}]


@pytest.mark.parametrize("pattern", ["(?P<a>", "(?P<a>x)(y)", "(?P<a>(?!x))"])
def test_a_pattern_that_does_not_compile_is_refused(pattern):
    with pytest.raises(UsageError, match="--pattern does not compile"):
        pattern_format(pattern)


def test_a_pattern_without_named_groups_is_refused():
    with pytest.raises(UsageError, match="--pattern must have a named group"):
        pattern_format("abc")
