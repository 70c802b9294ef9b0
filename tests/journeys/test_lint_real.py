"""What ingest, lint and report tell unasked of real streams, in the words that a user reads."""

import pytest

from tests.tiers import soak

pytestmark = pytest.mark.usefixtures("spark")


def told(said) -> list[str]:
    """The lint's lines of what ingest says, with plain spaces."""
    return [line.replace("\u202f", " ") for line in said.err.splitlines() if line.startswith("lint: ")]


def test_a_web_log_is_told_of_by_ingest_lint_and_report(adapt, real_traces, tmp_path):
    log, trace = real_traces("weblog-2015/apache_logs"), tmp_path / "web.trace"
    lines = told(adapt.done("ingest", log, "--format", "clf", "--key", "path", "--bytes", "bytes", "-o", trace))
    assert lines[0] == (
        "lint: severe: minute-of-hour: Minute 05 of the hour has all rows in 84 hours; an even share is 1.67 %."
    )
    assert lines[1] == (
        "lint: warning: bytes-skew: The hottest key by bytes, /misc/sample.log, has 47.4 % of the bytes and 0.24 % of"
        " the rows; the hottest by rows, /favicon.ico, has 8.07 % of the rows."
    )
    assert "source-order: 9,447 of the 9,999 rows of the source are late, by up to 59 s" in lines[2]
    reported = adapt.done("report", trace, "--html", tmp_path / "web.html")
    assert "Lint: 3 findings (1 severe, 1 warning, 1 note): minute-of-hour, bytes-skew, source-order." in reported.err
    assert "minute-of-hour" in reported.out
    assert "Minute 05 of the hour" in (tmp_path / "web.html").read_text()


@soak
def test_the_clocks_of_two_venues_are_told(adapt, real_traces, tmp_path):
    day = "unix_micros(to_timestamp(regexp_extract(_path, '([0-9]{8})_', 1), 'yyyyMMdd'))"
    instrument = "split(_path, '/')[3]"
    lines = told(
        adapt.done(
            *("ingest", real_traces("fx-ticks"), "--key", instrument, "-o", tmp_path / "fx.trace"),
            *("--stream", f"concat(split(_path, '/')[1], ':', {instrument})"),
            *("--time", f"timestamp_micros({day} + bigint(double(_c0) * 1000))"),
        )
    )
    assert any("clocks: The clock of fxcm:eurusd, fxcm:nzdusd is 5 h behind the others" in line for line in lines)
