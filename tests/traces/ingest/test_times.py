"""How a column becomes a time: each format, epoch units, zones, the ends of the calendar, and what is no time."""

import re
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from adapt.core.errors import BadInput, UsageError
from adapt.traces.ingest.sieve import layout_of, plain_times
from adapt.traces.ingest.times import (
    PATTERNS,
    WITH_YEAR,
    TimeFormat,
    as_timestamp,
    guess_format,
    is_in_range,
    stated_format,
)
from adapt.traces.spark.session import session_in_zone

MOMENT = datetime(2015, 5, 17, 10, 5, 3, tzinfo=UTC)


@pytest.fixture
def read(spark):
    """Reads values of one Spark type as times: microseconds since 1970, or None."""

    def read_values(values, form, kind="string", zone="UTC"):
        frame = session_in_zone(spark, zone).createDataFrame([(value,) for value in values], f"v {kind}")
        time = as_timestamp(F.col("v"), frame.schema["v"].dataType.simpleString(), TimeFormat(form))
        return [row[0] for row in frame.select(F.when(is_in_range(time), F.unix_micros(time))).collect()]

    return read_values


@pytest.fixture
def guess(spark):
    """Guesses the format of values of one Spark type."""

    def guess_values(*values, kind="string"):
        frame = spark.createDataFrame([(value,) for value in values], f"v {kind}")
        return guess_format(frame, "v", frame.schema["v"].dataType.simpleString()).name

    return guess_values


def micros(*when, zone=UTC):
    return int(datetime(*when, tzinfo=zone).timestamp()) * 1_000_000


EXAMPLES = {
    "dd/MMM/yyyy:HH:mm:ss Z": ["17/May/2015:10:05:03 +0000", "17/May/2015:12:05:03 +0200"],
    "yyyy/MM/dd[ HH:mm[:ss][.SSSSSS]]": ["2015/05/17 10:05:03", "2015/05/17 10:05:03.000000"],
    "MM/dd/yyyy[ HH:mm[:ss][.SSSSSS]]": ["05/17/2015 10:05:03"],
    "dd/MM/yyyy[ HH:mm[:ss][.SSSSSS]]": ["17/05/2015 10:05:03"],
    "dd.MM.yyyy[ HH:mm[:ss][.SSSSSS]]": ["17.05.2015 10:05:03"],
    "MM/dd/yyyy hh:mm:ss a": ["05/17/2015 10:05:03 AM"],
    "yyyyMMdd HHmmss": ["20150517 100503"],
    "yyyyMMddHHmmss": ["20150517100503"],
    "dd-MMM-yyyy[ HH:mm:ss]": ["17-May-2015 10:05:03"],
    "MMM d, yyyy[ HH:mm:ss]": ["May 17, 2015 10:05:03"],
    "yyyy-MM-dd HH:mm:ss,SSSSSS": ["2015-05-17 10:05:03,000"],
    "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]XXX'['VV']'": [
        "2015-05-17T12:05:03+02:00[Europe/Berlin]",
        "2015-05-17T10:05:03Z[UTC]",
    ],
    "yyyy-MM-dd-HH.mm.ss.SSSSSS": ["2015-05-17-10.05.03.000000"],
    "yyyyMMdd'T'HHmmss[XXX]": ["20150517T100503Z", "20150517T100503"],
    "yyyy.MM.dd HH:mm[:ss][.SSSSSS]": ["2015.05.17 10:05:03"],
    "yy/MM/dd HH:mm:ss": ["15/05/17 10:05:03"],
    "yyMMdd HHmmss": ["150517 100503"],
    "M/d/yyyy[ H:mm[:ss]]": ["5/17/2015 10:05:03"],
    "d/M/yyyy[ H:mm[:ss]]": ["17/5/2015 10:05:03"],
    "M/d/yyyy h:mm[:ss] a": ["5/17/2015 10:05:03 AM"],
    "dd-MM-yyyy[ HH:mm[:ss]]": ["17-05-2015 10:05:03"],
    "d MMM yyyy[ HH:mm:ss][.SSSSSS]": ["17 May 2015 10:05:03.000"],
    "E, d MMM yyyy HH:mm:ss z": ["Sun, 17 May 2015 10:05:03 GMT"],
    "E, d MMM yyyy HH:mm:ss Z": ["Sun, 17 May 2015 12:05:03 +0200"],
    "E MMM d HH:mm:ss[.SSSSSS] yyyy": ["Sun May 17 10:05:03 2015", "Sun May 17 10:05:03.000 2015"],
    "E MMM d HH:mm:ss Z yyyy": ["Sun May 17 12:05:03 +0200 2015"],
    "E MMM d HH:mm:ss z yyyy": ["Sun May 17 10:05:03 UTC 2015"],
    "yyyy-MM-dd'T'HH:mm:ss,SSSSSS[XXX]": ["2015-05-17T12:05:03,000+02:00", "2015-05-17T10:05:03,000"],
    "yyyy/M/d[ H:mm[:ss]]": ["2015/5/17 10:05:03"],
    "M/d/yy[ H:mm[:ss]]": ["5/17/15 10:05:03"],
    "dd-MMM-yy[ HH:mm:ss]": ["17-MAY-15 10:05:03"],
    "MMM d, yyyy h:mm[:ss] a": ["May 17, 2015 10:05:03 AM"],
}


LONG_MONTHS = {
    "MMMM d, yyyy[ HH:mm:ss]": "June 17, 2015",
    "d MMMM yyyy[ HH:mm:ss]": "17 June 2015",
    "MMM d yyyy h:mma": "Jun 17 2015  1:05PM",
    "yyyyMMdd-H:m:s": "20150617-13:5:0",
}


def test_each_known_pattern_reads_its_times_and_is_guessed_from_them(read, guess):
    for pattern, texts in EXAMPLES.items():
        assert read(texts, pattern) == [int(MOMENT.timestamp()) * 1_000_000] * len(texts), pattern
        assert guess(*texts) == pattern


def test_what_this_process_reads_is_what_spark_reads(read):
    long = {pattern: [text, text.replace("June", "May")] for pattern, text in LONG_MONTHS.items()}
    for pattern, texts in {**EXAMPLES, **long, "iso": [*ISO, *ZONED]}.items():
        changed = [text[:at] + new + text[at + 1 :] for text in texts for at in range(len(text)) for new in "0 a"]
        times, plain = plain_times(pa.array(changed), layout_of(TimeFormat(pattern), "UTC"), zoned=False)
        found = [text for text, is_plain in zip(changed, plain, strict=True) if is_plain]
        assert found
        assert read(found, pattern) == times[plain].tolist()


def test_dates_alone_are_midnights(read, guess):
    to_the_minute = {"yyyy-MM-dd HH:mm[XXX]", "yyyy-MM-dd'T'HH:mm[XXX]"}
    assert {*PATTERNS} - {*EXAMPLES} == {"yyyyMMdd", *LONG_MONTHS} | to_the_minute
    for pattern, text in LONG_MONTHS.items():
        assert read([text], pattern) == [micros(2015, 6, 17, *([13, 5] if ":" in text else []))]
        assert guess(text) == pattern
    assert (
        read(["2015-05-17T10:05Z", "2015-05-17T10:05"], "yyyy-MM-dd'T'HH:mm[XXX]") == [micros(2015, 5, 17, 10, 5)] * 2
    )
    assert guess("2015-05-17T10:05Z") == "yyyy-MM-dd'T'HH:mm[XXX]"
    assert read([" [2015-05-17T10:05:03Z] ", "May  7, 2015"], "iso") == [int(MOMENT.timestamp()) * 1_000_000, None]
    assert read(["May  7, 2015"], "MMM d, yyyy[ HH:mm:ss]") == [micros(2015, 5, 7)]  # padded
    for pattern, text in [("yyyyMMdd", "20150517"), ("dd.MM.yyyy[ HH:mm[:ss][.SSSSSS]]", "17.05.2015")]:
        assert read([text], pattern) == [micros(2015, 5, 17)]
        assert guess(text) == pattern


ISO = {
    "2015-05-17T10:05:03Z": MOMENT,
    "2015-05-17 10:05:03": MOMENT,
    " 2015-05-17T12:05:03+02:00 ": MOMENT,
    "2015-05-17T10:05:03.123456": MOMENT.replace(microsecond=123456),
    "2015-05-17T10:05:03.123456789Z": MOMENT.replace(microsecond=123456),
    "2015-05-17": MOMENT.replace(hour=0, minute=0, second=0),
    "2015-05-17T10:05": MOMENT.replace(second=0),
    "2015-05-17 10:05": MOMENT.replace(second=0),
    "2015-5-7": datetime(2015, 5, 7, tzinfo=UTC),
}


def test_iso_times_are_read_with_and_without_zone_and_fraction(read):
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    expected = [round((when - epoch).total_seconds() * 1e6) for when in ISO.values()]
    assert read(list(ISO), "iso") == expected


ZONED = ["2015-05-17 10:05:03.1 UTC", "2015-05-17T10:05:03+0200", "2015-05-17 10:05:03 -02", "[2015-05-17T10:05:03Z]"]


UNITS = {"epoch_s": 1, "epoch_ms": 10**3, "epoch_us": 10**6, "epoch_ns": 10**9}


@pytest.mark.parametrize(("unit", "a_second"), UNITS.items())
def test_epoch_units_are_read_from_numbers_and_from_text(read, guess, unit, a_second):
    whole = int(MOMENT.timestamp()) * a_second
    expected = int(MOMENT.timestamp()) * 1_000_000
    assert read([whole, 0, -a_second], unit, "bigint") == [expected, 0, -1_000_000]
    assert read([str(whole), f" {whole} ", f"+{whole}", f"{whole}.0"], unit) == [expected] * 4
    assert guess(whole, kind="bigint") == guess(str(whole)) == unit


def test_nanoseconds_are_cut_to_the_microsecond_before(read):
    nanos = [1_699_999_999_999_999_999, 1_999, 1_000, 999, -1, -1_000, -1_001]
    expected = [1_699_999_999_999_999, 1, 1, 0, -1, -1, -2]
    assert read(nanos, "epoch_ns", "bigint") == expected
    assert read([str(nano) for nano in nanos], "epoch_ns") == expected


def test_times_without_a_zone_are_of_the_zone_given(read):
    texts = ["2015-01-17 10:00:00", "2015-07-17 10:00:00", "2015-07-17T10:00:00Z"]
    expected = [micros(2015, 1, 17, 15), micros(2015, 7, 17, 14), micros(2015, 7, 17, 10)]
    assert read(texts, "iso", zone="America/New_York") == expected
    pattern = "yyyy/MM/dd[ HH:mm[:ss][.SSSSSS]]"
    slashed = [text.replace("-", "/") for text in texts[:2]]
    assert read(slashed, pattern, zone="America/New_York") == expected[:2]


def test_columns_that_are_times_already_are_taken_as_they_are(read):
    assert read([MOMENT], "iso", "timestamp") == [int(MOMENT.timestamp()) * 1_000_000]
    assert read([MOMENT.date()], "iso", "date") == [micros(2015, 5, 17)]
    naive = MOMENT.replace(tzinfo=None)
    assert read([naive], "iso", "timestamp_ntz", zone="America/New_York") == [micros(2015, 5, 17, 14, 5, 3)]


def test_the_format_that_reads_the_most_wins(guess):
    assert guess("17/05/2015", "05/05/2015", "06/06/2015") == "dd/MM/yyyy[ HH:mm[:ss][.SSSSSS]]"
    assert guess("05/17/2015", "05/05/2015") == "MM/dd/yyyy[ HH:mm[:ss][.SSSSSS]]"
    assert guess("2015-05-17", "garbage", "", None) == "iso"


def test_eight_digits_that_read_as_dates_are_dates(guess):
    assert guess("20150517", "20150518") == "yyyyMMdd"
    assert guess(20150517, 20150518, kind="bigint") == "yyyyMMdd"
    with pytest.raises(BadInput, match="numbers such as 20150517 are not in 1997 to 2050"):
        guess(20150517, 20159918, kind="int")


CLOCKS = {
    638_448_840_000_000_000: "bigint",  # DateTime(2024, 3, 1, 10, 0, 0).Ticks
    13_353_760_800_000_000: "bigint",  # Chrome's last_visit_time
    3_918_276_000: "bigint",  # NTP's seconds
    2024030110: "int",
    240301100000: "bigint",
}
"""2024-03-01 10:00 UTC on clocks that are not guessed."""

DAYS = {"2024": (2024, 1, 1), "202403": (2024, 3, 1), "240301": (2024, 3, 1), "20240301.0": (2024, 3, 1)}


@pytest.mark.parametrize("value", [*CLOCKS, *DAYS])
def test_numbers_of_other_clocks_are_refused_with_what_reads_them(spark, guess, read, value):
    kind = CLOCKS.get(value, "string")
    with pytest.raises(BadInput, match=r"are not in 1997 to 2050 in any unit|read as a date, too") as refused:
        guess(value, value, kind=kind)
    text = str(refused.value).partition("state the format: ")[2]
    expression = re.search('--time "(.+?)"', text)
    form = re.search("--time-format (?!epoch)([a-zA-Z.]+)", text)
    frame = session_in_zone(spark, "UTC").createDataFrame([(value,)], f"v {kind}")
    taken = frame.select(F.expr(expression[1] if expression else "v").alias("t"))
    time = as_timestamp(F.col("t"), taken.schema["t"].dataType.simpleString(), TimeFormat(form[1] if form else "iso"))
    expected = micros(*DAYS[value]) if value in DAYS else micros(2024, 3, 1, 10)
    assert taken.select(F.unix_micros(time)).first()[0] == expected


SNOWFLAKES = {"Twitter": 1_288_834_974_657, "Discord": 1_420_070_400_000}


@pytest.mark.parametrize(("of", "kind"), [("Twitter", "bigint"), ("Discord", "string")])
def test_snowflake_ids_are_not_taken_for_nanoseconds(spark, guess, of, kind):
    """Twitter's ids of 2024 would be of 2025, Discord's of 2008."""
    sent_ms = micros(2024, 3, 1, 10) // 1000
    ids = [(sent_ms + 7919 * at - SNOWFLAKES[of] << 22) + (at % 3 << 12) + at % 5 for at in range(9)]
    ids = ids if kind == "bigint" else list(map(str, ids))
    with pytest.raises(BadInput, match=r"read as snowflake ids, too; .*or --time-format epoch_ns") as refused:
        guess(*ids, kind=kind)
    expression = re.search(f'--time "([^"]+)" for ids of {of}', str(refused.value))[1]
    frame = session_in_zone(spark, "UTC").createDataFrame([(each,) for each in ids], f"v {kind}")
    read = [row[0] for row in frame.select(F.unix_millis(F.expr(expression))).collect()]
    assert read == [sent_ms + 7919 * at for at in range(9)]


@pytest.mark.parametrize("step_ns", [100, 1_000_000_000])
def test_nanoseconds_of_any_precision_are_no_snowflake_ids(guess, step_ns):
    start = micros(2024, 3, 1) * 1000
    nanos = [start + at * 123_456_789_123 // step_ns * step_ns for at in range(50)]
    assert guess(*nanos, kind="bigint") == "epoch_ns"
    assert guess(*map(float, nanos), kind="double") == "epoch_ns"


def test_a_guessed_unit_says_its_year_and_that_of_gps(spark):
    """GPS counts seconds from 1980-01-06; its clock is 18 s ahead of UTC."""
    said = (micros(2024, 3, 1, 10) - micros(1980, 1, 6)) // 1_000_000 + 18
    frame = session_in_zone(spark, "UTC").createDataFrame([(said,)], "v bigint")
    makes = guess_format(frame, "v", "bigint").makes
    expression = re.fullmatch(r' \(times of 2014; for GPS seconds, of 2024: --time "(.+)"\)', makes)[1]
    assert frame.select(F.unix_micros(F.expr(expression))).first()[0] == micros(2024, 3, 1, 10)
    frame = spark.createDataFrame([("1772000000000",)], "v string")
    assert guess_format(frame, "v", "string").makes == " (times of 2026)"


def test_small_numbers_are_no_times_unless_their_unit_is_stated(guess):
    for value in (0, 5400, -1_500_000_000):
        with pytest.raises(BadInput, match=rf"numbers such as {value} are not .*epoch_s makes .*--time-format epoch_s"):
            guess(value, kind="bigint")
    assert guess(0, 0, 1_710_000_000, 1_710_000_001, 1_710_000_002, kind="bigint") == "epoch_s"
    assert guess(1646861401.5, 1646861402.25, kind="double") == "epoch_s"


def test_values_that_are_no_times_are_refused_with_examples(guess):
    with pytest.raises(BadInput, match=r"no value of the first rows reads as a time \(first values: 'x', 'y'\)"):
        guess("x", "y")
    with pytest.raises(BadInput, match=r"first values: all null"):
        guess(None)


@pytest.mark.parametrize("pattern", ["MMM d HH:mm:ss", "MMM d['y'] HH:mm[, yyyy]"])
def test_a_pattern_without_a_year_is_refused(spark, pattern):
    with pytest.raises(UsageError, match=r"has no year.* --time \"concat\('2024 ', at\)\" --time-format 'yyyy M?"):
        stated_format(spark, pattern, "at")


def test_times_of_syslog_are_refused_with_what_reads_them(guess, read):
    with pytest.raises(BadInput, match=r"these have no year: .* --time-format syslog:2024$"):
        guess("Dec 31 23:59:58", "Jan  1 00:00:01")
    expected = [micros(2024, 1, 1, 0, 0, 1), micros(2024, 2, 29, 10)]
    assert read(["2024 Jan  1 00:00:01", "2024 Feb 29 10:00:00"], WITH_YEAR) == expected


def test_a_stated_format_is_taken_as_it_is(spark):
    for name in ("iso", "epoch_ms", "syslog:2023", "dd.MM.yyyy HH:mm:ss", "yyyy-MM-dd'T'HH"):
        assert stated_format(spark, name, "at") == TimeFormat(name)


@pytest.mark.parametrize("name", ["epoch", "YYYY-MM-dd", "yyyy-MM-dd'T"])
def test_a_stated_format_that_is_none_is_refused(spark, name):
    with pytest.raises(
        UsageError,
        match=r"must be one of iso, epoch_s, epoch_ms, epoch_us, epoch_ns, syslog:2024, or a pattern such as",
    ):
        stated_format(spark, name, "at")
