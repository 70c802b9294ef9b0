"""Event times, by column type, stated format or guess.

Spark's `bigint(...)` makes 0 of NaN, and the largest number of infinity, so that such rows would share a key.
"""

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import reduce
from math import isnan
from typing import Any

from adapt.core.errors import BadInput, UsageError
from adapt.traces.sources.reading.table_files import nanos_to_micros, quoted
from adapt.traces.spark.lazy import Column, DataFrame, F, SparkSession, Window

EPOCH_UNITS = {"epoch_s": 1_000_000.0, "epoch_ms": 1_000.0, "epoch_us": 1.0, "epoch_ns": 0.001}
"""Microseconds in one unit of a numeric time."""

ISO = "iso"

PATTERNS = (
    "dd/MMM/yyyy:HH:mm:ss Z",
    "yyyy/MM/dd[ HH:mm[:ss][.SSSSSS]]",
    "MM/dd/yyyy[ HH:mm[:ss][.SSSSSS]]",
    "dd/MM/yyyy[ HH:mm[:ss][.SSSSSS]]",
    "dd.MM.yyyy[ HH:mm[:ss][.SSSSSS]]",
    "MM/dd/yyyy hh:mm:ss a",
    "yyyyMMdd HHmmss",
    "yyyyMMddHHmmss",
    "yyyyMMdd",
    "dd-MMM-yyyy[ HH:mm:ss]",
    "MMM d, yyyy[ HH:mm:ss]",
    "yyyy-MM-dd HH:mm:ss,SSSSSS",
    "yyyy-MM-dd HH:mm[XXX]",
    "yyyy-MM-dd'T'HH:mm[XXX]",
    "yyyy-MM-dd'T'HH:mm:ss[.SSSSSS]XXX'['VV']'",
    "yyyy-MM-dd-HH.mm.ss.SSSSSS",
    "yyyyMMdd'T'HHmmss[XXX]",
    "yyyy.MM.dd HH:mm[:ss][.SSSSSS]",
    "yy/MM/dd HH:mm:ss",
    "yyMMdd HHmmss",
    "M/d/yyyy[ H:mm[:ss]]",
    "d/M/yyyy[ H:mm[:ss]]",
    "M/d/yyyy h:mm[:ss] a",
    "dd-MM-yyyy[ HH:mm[:ss]]",
    "d MMM yyyy[ HH:mm:ss][.SSSSSS]",
    "E, d MMM yyyy HH:mm:ss z",
    "E, d MMM yyyy HH:mm:ss Z",
    "E MMM d HH:mm:ss[.SSSSSS] yyyy",
    "E MMM d HH:mm:ss Z yyyy",
    "E MMM d HH:mm:ss z yyyy",
    "yyyy-MM-dd'T'HH:mm:ss,SSSSSS[XXX]",
    "yyyy/M/d[ H:mm[:ss]]",
    "M/d/yy[ H:mm[:ss]]",
    "dd-MMM-yy[ HH:mm:ss]",
    "MMM d, yyyy h:mm[:ss] a",
    "MMM d yyyy h:mma",
    "MMMM d, yyyy[ HH:mm:ss]",
    "d MMMM yyyy[ HH:mm:ss]",
    "yyyyMMdd-H:m:s",
)
"""Tried in this order after ISO 8601 and epoch numbers."""

DIGITS = ("yyyyMMdd", "yyyyMMddHHmmss")
"""Patterns that look like whole numbers."""

UNDIGITED = (ISO, *(form for form in PATTERNS if form not in DIGITS))
"""Formats by which a column of times is found."""

SYSLOG = "syslog:"
"""Before a year: times as syslog writes them, from that year on."""

KNOWN = (ISO, *EPOCH_UNITS, f"{SYSLOG}2024")

A_PATTERN = "a pattern such as dd.MM.yyyy HH:mm:ss"

WHOLE = ("bigint", "int", "smallint", "tinyint")
"""Whole-number types of Spark."""

USUAL_NAMES = ("ts", "time", "timestamp", "datetime", "date", "event_time", "eventtime", "created_at", "time_hour")

MOST_LOOKED_AT = 40
"""Columns examined for times."""

PLAUSIBLE_S = (852_076_800, 2_524_608_000)
"""1997 and 2050 in seconds since 1970: numbers outside are not guessed to be times.

Seconds since 1900, 1904 or 2001, and .NET ticks read as nanoseconds, would fall outside."""

_PLAUSIBLE = "1997 to 2050"

RECENT = tuple((PLAUSIBLE_S[0] * scale, PLAUSIBLE_S[1] * scale) for scale in (1, 1e3, 1e6, 1e9))
"""Plausible numbers in each unit."""

_WHOLE_PATTERNS = {
    "yyyy": "%Y",
    "yyyyMM": "%Y%m",
    "yyMMdd": "%y%m%d",
    "yyyyMMdd": "%Y%m%d",
    "yyyyMMddHH": "%Y%m%d%H",
    "yyyyMMddHHmm": "%Y%m%d%H%M",
    "yyMMddHHmmss": "%y%m%d%H%M%S",
    "yyyyMMddHHmmss": "%Y%m%d%H%M%S",
    "yyyyMMddHHmmssSSS": "%Y%m%d%H%M%S%f",  # which Spark reads with a point before the fraction
    "yyyyMMddHHmmssSSSSSS": "%Y%m%d%H%M%S%f",
}
"""Patterns that a whole number may have; but for `DIGITS`, they are advised, not guessed."""

_OTHER_CLOCKS = (
    (".NET ticks", 62_135_596_800, 1e7, "timestamp_micros(bigint({0}) div 10 - 62135596800000000)"),
    ("Windows FILETIME", 11_644_473_600, 1e7, "timestamp_micros(bigint({0}) div 10 - 11644473600000000)"),
    ("microseconds since 1601", 11_644_473_600, 1e6, "timestamp_micros(bigint({0}) - 11644473600000000)"),
    ("seconds since 1900", 2_208_988_800, 1, "timestamp_seconds(bigint({0}) - 2208988800)"),
    ("Julian days", 210_866_760_000, 1 / 86400, "timestamp_millis(bigint(round(({0} - 2440587.5) * 86400000)))"),
    (
        "Excel days",
        2_209_161_600,
        1 / 86400,
        "timestamp_ntz'1899-12-30' + make_dt_interval(0, 0, 0, round({0} * 86400, 3))",
    ),
)
"""Clocks that are advised, but not guessed: name, seconds from their start to 1970, units per second, expression."""

_SNOWFLAKES = (("Twitter", 1_288_834_974_657), ("Discord", 1_420_070_400_000))
"""Ids as large as nanoseconds: milliseconds since these of 1970, 10 bits of machine, 12 bits of sequence."""

_GPS_S = 315_964_782
"""Seconds from 1970 to the start of GPS time, without its 18 leap seconds."""

_GPS_UNTIL = 2035
"""Later times than this year are not suspected to be of GPS."""

_SIZES = {"epoch_s": 1e11, "epoch_ms": 1e14, "epoch_us": 1e17}
"""Below which numbers are closest to each unit."""

NUMBER = r"^\s*[-+]?\d+(\.\d+)?\s*$"

_WITHOUT_YEAR = r"^\s*[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d"
"""Times as syslog writes them."""

WITH_YEAR = "yyyy MMM [ ]d HH:mm:ss"

_MOST_NEW_YEARS = 100
"""Changes of the year in all files; more are lines that lie in no order."""


EARLIEST_US = -62_135_596_800_000_000  # year 1
LATEST_US = 253_402_300_799_999_999  # year 9999


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """Format of times."""

    name: str  # `iso`, an epoch unit, or a Spark datetime pattern
    guessed: bool = False  # whether it was guessed
    makes: str = ""  # what the guess makes of numbers, and what else they may be


def as_timestamp(value: Column, kind: str, form: TimeFormat) -> Column:
    """A column as times, null where unreadable; see also `is_in_range`.

    Times without a zone are in the session's zone.

    Args:
        kind: Short name of the column's Spark type.
        form: Format, ignored if the type is a time.
    """
    if kind in ("timestamp", "timestamp_ntz", "date"):
        return value.cast("timestamp")
    if form.name in EPOCH_UNITS:
        return F.timestamp_micros(_micros(value, kind, EPOCH_UNITS[form.name]))
    text = F.regexp_replace(F.trim(value.cast("string")), r"^\[(.*)\]$", "$1")
    if form.name == ISO:
        # the cast alone would also read "10:05" (today) and "2015" (a year)
        has_date = (F.substring(text, 5, 1) == "-") & (F.instr(F.substring(text, 1, 4), ":") == 0)
        return F.when(has_date, text.cast("timestamp"))
    return F.try_to_timestamp(undated(text, form.name), F.lit(without_weekday(form.name)))


def without_weekday(pattern: str) -> str:
    """A pattern without the weekday, which Spark refuses."""
    return re.sub(r"^E+,? +", "", pattern)


def undated(text: Column, pattern: str) -> Column:
    """Texts for a pattern, without weekdays and padding."""
    text = text if pattern == without_weekday(pattern) else F.regexp_replace(text, r"^[A-Za-z]+,? +", "")
    return F.regexp_replace(text, " +", " ") if "MMM" in pattern else text


def with_years(rows: DataFrame, time: Column, form: TimeFormat, *, ordered: bool) -> tuple[Column, TimeFormat]:
    """Times with a year in front, and their format.

    The year goes up where, from one line of a file to the next, the month falls by half a year or more, and down where
    it rises by that: a late line of December is of the old year.

    Args:
        ordered: Whether the order of lines is that of arrival.
    """
    if not form.name.startswith(SYSLOG):
        return time, form
    if not ordered:
        raise UsageError(f"--time-format {form.name} needs lines in order; a table or a Spark DataFrame has none")
    months = F.instr(F.lit("JanFebMarAprMayJunJulAugSepOctNovDec"), F.substring(F.trim(time), 1, 3)) + 2
    dated = rows.select("_file", "_line", (months / 3).alias("month")).where("month >= 1")
    risen = F.col("month") - F.lag("month").over(Window.partitionBy("_file").orderBy("_line"))
    turns = dated.select("_file", "_line", risen.alias("risen")).where("abs(risen) >= 6").limit(_MOST_NEW_YEARS + 1)
    found = turns.collect()
    if len(found) > _MOST_NEW_YEARS:
        raise BadInput(
            f"--time-format {form.name}: the year would change more than {_MOST_NEW_YEARS} times; the lines are not in"
            " order of time: sort them, or put the year in front of each"
        )
    year = F.lit(int(form.name.removeprefix(SYSLOG)))
    for file, line, by in found:
        is_after = (F.col("_file") == file) & (F.col("_line") >= line)
        year += F.when(is_after, -1 if by > 0 else 1).otherwise(0)
    return F.concat_ws(" ", year.cast("string"), F.trim(time)), TimeFormat(WITH_YEAR)


def is_in_range(time: Column) -> Column:
    """Whether a time is in the years 1 to 9999."""
    return F.coalesce(F.unix_micros(time).between(EARLIEST_US, LATEST_US), F.lit(False))


def _micros(value: Column, kind: str, factor: float) -> Column:
    if kind in WHOLE or kind == "string":
        whole = value.cast("bigint")
        # whole numbers throughout: a double cannot hold today's nanoseconds
        exact = whole * F.lit(int(factor)) if factor >= 1.0 else nanos_to_micros(whole)
        # a product beyond int64 is not a time; text with a fraction is read as a decimal
        fits = F.abs(whole.cast("double") * F.lit(factor)) < F.lit(9.2e18)
        plain = value.rlike(r"^\s*[-+]?\d+\s*$") if kind == "string" else F.lit(True)
        return F.when(plain & fits, exact.cast("bigint")).otherwise(_decimal_micros(value, factor))
    return _decimal_micros(value, factor)


def _decimal_micros(value: Column, factor: float) -> Column:
    scaled = value.cast("decimal(38,9)") * F.lit(str(factor)).cast("decimal(20,3)")
    # beyond int64 the cast would wrap around
    return F.when(scaled.between(EARLIEST_US, LATEST_US), F.round(scaled).cast("bigint"))


def stated_format(spark: SparkSession, name: str, given: str) -> TimeFormat:
    """The stated time format.

    Args:
        given: The column or expression of the times, as given.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if name != ISO and name not in EPOCH_UNITS and not re.fullmatch(rf"{SYSLOG}\d{{4}}", name):
        try:
            spark.sql("values '2015-05-17'").select(F.try_to_timestamp("col1", F.lit(without_weekday(name)))).collect()
        except (PySparkException, Py4JError) as error:
            raise UsageError(
                f"--time-format must be one of {', '.join(KNOWN)}, or {A_PATTERN} (got {name!r})"
            ) from error
        fixed = re.sub(r"'[^']*'|\[[^]]*\]", "", name)
        if not re.search("[yuY]", fixed):
            raise UsageError(
                f"--time-format {name!r} has no year, so all times would be of 1970; put it in front: --time"
                f" \"concat('2024 ', {given})\" --time-format 'yyyy {name}'; or for lines of syslog, --time-format"
                f" {SYSLOG}2024"
            )
    return TimeFormat(name)


def guess_format(sample: DataFrame, given: str, kind: str) -> TimeFormat:
    """The format of a sample in Spark; see `format_of`."""

    def rows(tried: Sequence[str]) -> list[Any]:
        value = F.col(sample.columns[0])
        number = F.coalesce(value.rlike(NUMBER), F.lit(False)) if kind == "string" else value.isNotNull()
        reads = (is_in_range(as_timestamp(value, kind, TimeFormat(name))) for name in tried)
        return sample.select(value, value.cast("double"), number, value.cast("string"), *reads).collect()

    return format_of(given, kind, rows)


def format_of(given: str, kind: str, rows_of: Callable[[Sequence[str]], list[Any]]) -> TimeFormat:
    """The format that reads most values of a sample.

    The first of a tie.

    Args:
        given: The column or expression of the values, as given.
        kind: Short name of its Spark type.
        rows_of: Of each value, by the formats tried: itself, as a number, whether it is written as one, its text, and
            whether each format reads it.
    """
    if kind in ("timestamp", "timestamp_ntz", "date"):
        return TimeFormat(ISO)
    if kind not in ("string", *WHOLE, "double", "float") and not kind.startswith("decimal"):
        raise BadInput(f"--time {given!r} has type {kind}; it must be text, a number or a time")
    tried = _texts() if kind == "string" else DIGITS if kind in WHOLE else ()
    # counted here: a sample that is no table of files then needs no job
    rows = rows_of(tried)
    if not rows:  # no values to judge by
        return TimeFormat(ISO, guessed=True)
    sizes = sorted((row[1], row[3]) for row in rows if row[2] and not isnan(row[1]))
    numbers, read = sum(row[2] for row in rows), [sum(row[at] for row in rows) for at in range(4, 4 + len(tried))]
    reads = dict(zip(tried, read, strict=True))
    best = max(reads, key=lambda name: reads[name], default=ISO)
    # eight digits that read as a date are a date, not a second of 1970
    if sizes and numbers > reads.get(best, 0) and not any(reads.get(name) == numbers for name in DIGITS):
        typical, text = sizes[(len(sizes) - 1) // 2]
        unit = next((unit for unit in EPOCH_UNITS if _is_plausible(typical * EPOCH_UNITS[unit] / 1e6)), None)
        hours = "yyyyMMddHH"  # which reads as a second of 2033 to 2036, too
        if unit is None or all(_is_written(size, hours) for size, _ in sizes):
            raise BadInput(_implausible(given, typical, text, kind))
        if unit == "epoch_ns" and _are_snowflakes([text for _, text in sizes]):
            raise BadInput(_snowflakes(given, typical, text))
        return TimeFormat(unit, guessed=True, makes=_made(given, typical, unit))
    if not reads.get(best):
        advice = f"give --time-format: {', '.join(KNOWN)}, or {A_PATTERN}"
        monthly = [found for row in rows if (found := re.match(r"\s*\d\d([-.])\d\d \d\d:", row[3] or "", re.ASCII))]
        if monthly:
            dated = f"concat('2024{monthly[0][1]}', {_operand(given)})"
            advice = f'these have no year: put it in front, as in --time "{dated}"'
        elif any(re.match(_WITHOUT_YEAR, row[3] or "", re.ASCII) for row in rows):
            advice = f"these have no year: give that of the first line of each file, as in --time-format {SYSLOG}2024"
        shown = ", ".join([repr(row[0]) for row in rows if row[0] is not None][:3]) or "all null"
        raise BadInput(
            f"--time {given!r}: no value of the first rows reads as a time (first values: {shown}); {advice}"
        )
    return TimeFormat(best, guessed=True)


def _made(given: str, number: float, unit: str) -> str:
    seconds = number * EPOCH_UNITS[unit] / 1e6
    gps = _year(seconds + _GPS_S)
    other = f'; for GPS seconds, of {gps}: --time "timestamp_seconds({_operand(given)} + {_GPS_S})"'
    return f" (times of {_year(seconds)}{other if unit == 'epoch_s' and gps <= _GPS_UNTIL else ''})"


def _are_snowflakes(texts: Sequence[str]) -> bool:
    """Whether the last 12 bits of most numbers are a short sequence, which nanoseconds have in 1 of 64.

    Microseconds and coarser times, as nanoseconds, have it more often, but end in zeros.
    """
    numbers = [int(text) for text in texts if re.fullmatch(r"\s*\d+\s*", text)]
    few = sum(number & 0xFFF < 64 and number % 1000 > 0 for number in numbers)
    return 2 * few > len(texts)


def _snowflakes(given: str, number: float, text: str) -> str:
    ids = [
        f'--time "timestamp_millis(shiftright(bigint({given}), 22) + {start_ms})" for ids of {name}'
        for name, start_ms in _SNOWFLAKES
    ]
    return (
        f"--time {given!r}: numbers such as {text.strip()} are in {_year(number / 1e9)} as epoch_ns, and read as"
        f" snowflake ids, too; state the format: {', '.join(ids)}, or --time-format epoch_ns"
    )


def _year(seconds: float) -> int:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)).year


def _operand(given: str) -> str:
    """A column or expression as part of another."""
    return given if re.fullmatch(r"[\w.`]+", given) else f"({given})"


def _is_plausible(seconds: float) -> bool:
    return PLAUSIBLE_S[0] <= seconds < PLAUSIBLE_S[1]


def _is_written(number: float, pattern: str) -> bool:
    """Whether the digits of a number are a date from 1900 on."""
    first = 1900 if pattern.startswith("yyyy") else 2000
    with suppress(ValueError, OverflowError):
        digits = str(int(number))
        return len(digits) == len(pattern) and first <= datetime.strptime(digits, _WHOLE_PATTERNS[pattern]).year < 2100
    return False


def _implausible(given: str, number: float, text: str, kind: str) -> str:
    """Why a number is not guessed to be a time, and what to write instead."""
    unit = next((unit for unit, most in _SIZES.items() if abs(number) < most), "epoch_ns")
    read = "no date"
    with suppress(OverflowError):
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=number * EPOCH_UNITS[unit] / 1e6)
        read = f"{moment:%Y-%m-%d %H:%M:%S}"
    named = _operand(given)
    patterns = [pattern for pattern in _WHOLE_PATTERNS if _is_written(number, pattern)]
    cut = kind not in ("string", *WHOLE) or {*patterns} & {*DIGITS}  # else these were guessed
    digits = f"string(bigint({given}))" if cut else given
    advice = []
    for pattern in patterns:
        value = f'--time "{digits}" ' if cut else ""
        if pattern.endswith("S"):
            value = f"--time \"concat(left({digits}, 14), '.', substr({digits}, 15))\" "
        advice.append(f"{value}--time-format {pattern.replace('sS', 's.S')}")
    for clock, start_s, per_s, expression in () if advice else _OTHER_CLOCKS:
        if _is_plausible(number / per_s - start_s):
            advice.append(f'--time "{expression.format(named)}" for {clock}')
    advice.append(f"--time-format {unit}, another unit or {A_PATTERN}" if not advice else f"--time-format {unit}")
    odd = f"are not in {_PLAUSIBLE} in any unit ({unit} makes {read})"
    odd = f"are in {read[:4]} as {unit}, and read as a date, too" if _is_plausible(number) else odd
    return f"--time {given!r}: numbers such as {text.strip()} {odd}; state the format: {', or '.join(advice)}"


def time_column(sample: DataFrame, columns: Sequence[str]) -> str | None:
    """The first column of times of a sample in Spark; see `time_column_of`."""
    kinds = {name: sample.select(quoted(name)).schema[0].dataType.simpleString() for name in columns[:MOST_LOOKED_AT]}

    def counts(looked_at: Sequence[str]) -> Callable[[str], Sequence[int]]:
        told = []
        for name in looked_at:
            value = quoted(name)
            texts = (F.count_if(is_in_range(as_timestamp(value, kinds[name], TimeFormat(form)))) for form in UNDIGITED)
            number = F.abs(value.cast("double"))
            recent = (number.between(*bounds) for bounds in RECENT)
            told += [
                F.count(value),
                F.greatest(*texts) if kinds[name] == "string" else F.lit(0),
                F.count_if(reduce(operator.or_, recent)),
            ]
        row = list(sample.select(*told).first() or ()) if told else []
        return lambda name: row[3 * looked_at.index(name) :][:3]

    return time_column_of(kinds, counts)


def time_column_of(
    kinds: Mapping[str, str], counts: Callable[[Sequence[str]], Callable[[str], Sequence[int]]]
) -> str | None:
    """The first column of times, or None.

    By type, else nearly all text times, else numbers that may be epochs.

    Args:
        kinds: Short names of Spark's types, by column.
        counts: Gives, for some columns, the values of one that are not null, those that the best format reads as times,
            and those that are `RECENT` as numbers.
    """
    typed = [name for name, kind in kinds.items() if kind in ("timestamp", "timestamp_ntz", "date")]
    if typed:
        return typed[0]
    looked_at = [name for name, kind in kinds.items() if kind == "string" or kind in (*WHOLE, "double")]
    found = counts(looked_at)
    for at in (1, 2):
        for name in looked_at:
            values = found(name)
            if values[0] and values[at] >= 0.9 * values[0]:
                return name
    return None


def _texts() -> Sequence[str]:
    return (ISO, *PATTERNS)


DAY_US = 86_400_000_000

_AROUND_US = 3 * 3600 * 1_000_000
"""How far around a doubled hour the order of rows is examined."""

_FIXED = re.compile(r"(UTC|GMT|UT|Z)?([+-].*)?|Etc/.*")
"""Zones whose clocks never change."""


@dataclass(frozen=True, slots=True)
class LocalTimes:
    """Local times that a zone repeats or skips."""

    zone: str
    doubled: int  # rows in an hour that occurs twice
    second: int  # those that the order of their file puts into its second pass
    undecided: int  # those whose order does not say which pass; they are read as the first
    skipped: int  # rows at times that the zone skips; they are moved forward by the gap
    cuts: Mapping[str, int]  # the first line of the second pass, by file and night

    def as_data(self) -> dict[str, Any]:
        """The counts, for lint."""
        return {name: getattr(self, name) for name in ("zone", "doubled", "second", "undecided", "skipped")}

    def applied(self, time: Column, value: Column, kind: str, form: TimeFormat) -> Column:
        """Times, corrected in second passes."""
        passes = _passes(value, kind, form, self.zone)
        if passes is None or not self.cuts:
            return time
        local, first, second = passes
        cuts = F.create_map(*(F.lit(part) for each in self.cuts.items() for part in each))
        is_second = F.col("_line") >= cuts[F.concat_ws(" ", F.col("_file"), _night(local))]
        return F.when((second > first) & is_second, F.timestamp_micros(second)).otherwise(time)


def local_times(
    rows: DataFrame, value: Column, kind: str, form: TimeFormat, zone: str, *, ordered: bool
) -> LocalTimes | None:
    """Local times that occur twice or never; None without any.

    A row is in the second pass if time goes backward within the doubled hour, by half of it or more, once in the night.

    Args:
        value, kind: The times, and their short type in Spark.
        ordered: Whether the order of lines is that of arrival.
    """
    passes = _passes(value, kind, form, zone)
    if passes is None:
        return None
    names = ("local", "first", "second")
    timed = rows.select("_file", "_line", *(each.alias(name) for each, name in zip(passes, names, strict=True)))
    local, doubled = F.col("local"), F.col("second") > F.col("first")
    skipped = F.unix_micros(F.from_utc_timestamp(F.timestamp_micros("first"), zone)) != local
    nights = (
        timed.where(doubled | skipped)
        .groupBy(_night(local).alias("night"))
        .agg(
            F.count_if(doubled),
            F.count_if(skipped),
            F.min(F.when(doubled, local)),
            F.max(F.when(doubled, local)),
            F.max(F.col("second") - F.col("first")),
        )
        .collect()
    )
    if not nights:
        return None
    rows_there, moved = (sum(night[at] for night in nights) for at in (1, 2))
    found = [night for night in nights if night[1]] if ordered else []
    cuts, second, decided = {}, 0, 0
    for file, night, steps, line, there, later in _turns(timed, found).collect() if found else ():
        if steps == 1 and line is not None:
            cuts[f"{file} {night}"] = line
            second, decided = second + later, decided + there
    return LocalTimes(zone, rows_there, second, rows_there - decided, moved, cuts)


def _turns(timed: DataFrame, nights: Sequence[Any]) -> DataFrame:
    """By file and night: steps back of half a doubled hour, the line of the one within it, and rows there and after."""
    local, doubled = F.col("local"), F.col("second") > F.col("first")
    near = reduce(operator.or_, (local.between(night[3] - _AROUND_US, night[4] + _AROUND_US) for night in nights))
    lines = Window.partitionBy("_file", "night").orderBy("_line")
    back = (F.lag(local).over(lines) - local) * 2 >= max(night[5] for night in nights)
    turn = back & doubled & F.lag(doubled).over(lines)
    stepped = timed.where(near).withColumn("night", _night(local))
    stepped = stepped.select("*", back.alias("back"), F.when(turn, F.col("_line")).alias("turn"))
    stepped = stepped.withColumn("after", F.min("turn").over(lines).isNotNull())
    return stepped.groupBy("_file", "night").agg(
        F.count_if("back"), F.min("turn"), F.count_if(doubled), F.count_if(doubled & F.col("after"))
    )


def _passes(value: Column, kind: str, form: TimeFormat, zone: str) -> tuple[Column, Column, Column] | None:
    """A local time as if of UTC, and its first and second moments in the zone; microseconds.

    The second is before the first unless the time occurs twice. Null for times with a zone.
    """
    utc = None if _FIXED.fullmatch(zone) else _as_utc(value, kind, form)
    if utc is None:
        return None
    local, first = F.unix_micros(utc), F.unix_micros(as_timestamp(value, kind, form))
    later = first + DAY_US
    second = local + later - F.unix_micros(F.from_utc_timestamp(F.timestamp_micros(later), zone))
    again = F.unix_micros(F.from_utc_timestamp(F.timestamp_micros(second), zone)) == local
    return local, F.when(local.isNotNull(), first), F.when(again, second)


def _as_utc(value: Column, kind: str, form: TimeFormat) -> Column | None:
    """A time without a zone as if it were of UTC; None if all have one."""
    text = F.concat(F.trim(value.cast("string")), F.lit("Z"))
    if kind == "timestamp_ntz":
        return text.cast("timestamp")
    if kind in ("timestamp", "date") or form.name in EPOCH_UNITS:
        return None
    if form.name == ISO:
        return as_timestamp(text, "string", form)  # a second zone cannot be read
    if re.search("[VzOXxZ]", re.sub("'[^']*'", "", form.name)):
        return None
    return F.try_to_timestamp(undated(text, form.name), F.lit(f"{without_weekday(form.name)}XXX"))


def _night(local: Column) -> Column:
    """Number of the day from noon to noon: clocks change at night."""
    return F.floor((local - DAY_US // 2) / DAY_US)


_TYPES = "bigint|long|int|integer|smallint|short|tinyint|byte"
_CALL = re.compile(r"\b(?:(bigint|int|smallint|tinyint)|(floor|ceil|ceiling)|(?:try_)?cast)\s*\(", re.IGNORECASE)
_CAST = re.compile(rf"(.+)\s+as\s+(?:{_TYPES})\s*", re.IGNORECASE | re.DOTALL)
_COLONS = re.compile(rf"([\w.]+|`[^`]+`)\s*::\s*(?:{_TYPES})\b", re.IGNORECASE)
_QUOTED = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"")
_NAME = re.compile(r"\s*([\w.]+|`[^`]+`)\s*")
_FRACTIONAL = ("double", "float", "decimal", "string")


def with_whole_casts(source: DataFrame, text: str) -> tuple[str, list[str]]:
    """Whole casts, and the conditions that a column cannot be cast.

    Returns an expression that casts NaN to null, and conditions of a column with a fraction or too large a number.

    Computed values may have fractions, which are meant to be cut off; columns may not.
    """
    parts, odd, done = [], list[str](), 0
    for start, end, call, argument, cut in _casts(text):
        if start < done:
            continue
        inner, refused = with_whole_casts(source, argument)
        odd += refused
        made = call.replace(argument, inner, 1)
        kind = _kind(source, inner)
        if kind.startswith(_FRACTIONAL):
            if kind in ("double", "float"):
                made = f"if(isnan({inner}), null, {made})"
            if not cut and _NAME.fullmatch(argument):
                number = f"double({argument})"
                changed = f"{number} != double({made}) or abs({number}) >= 9.2233720368547758E18"
                odd.append(f"(not isnan({number}) and ({changed}))")
        parts += [text[done:start], made]
        done = end
    return "".join([*parts, text[done:]]), odd


def _casts(text: str) -> Iterator[tuple[int, int, str, str, bool]]:
    """Casts from left to right, with their place, text and argument, and whether they cut fractions by intent."""
    plain = _QUOTED.sub(lambda quoted: "'" + "." * (len(quoted[0]) - 2) + "'", text)
    found = [(match.start(), match.end(), match[0], match[1], False) for match in _COLONS.finditer(plain)]
    for match in _CALL.finditer(plain):
        end = _closing(plain, match.end())
        argument = text[match.end() : end - 1]
        if match[1] is None and match[2] is None:
            cast = _CAST.fullmatch(argument)
            if cast is None:
                continue
            argument = cast[1]
        found.append((match.start(), end, text[match.start() : end], argument, match[2] is not None))
    yield from sorted(found)


def _closing(text: str, at: int) -> int:
    """The place after the parenthesis that closes one before this place; the end if none does."""
    depth = 1
    for place in range(at, len(text)):
        depth += (text[place] == "(") - (text[place] == ")")
        if not depth:
            return place + 1
    return len(text)


def _kind(source: DataFrame, text: str) -> str:
    """Short type of an expression in Spark; empty if Spark cannot read it."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        return str(source.select(F.expr(text)).schema[0].dataType.simpleString())
    except (AnalysisException, ParseException):
        return ""
