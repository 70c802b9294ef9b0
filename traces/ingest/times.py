"""Event times, by column type, stated format or guess."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import inf, isnan

from adapt.core.errors import BadInput, UsageError
from adapt.traces.sources.reading.table_files import quoted
from adapt.traces.spark.lazy import Column, DataFrame, F, SparkSession

EPOCH_UNITS = {"epoch_s": 1_000_000.0, "epoch_ms": 1_000.0, "epoch_us": 1.0, "epoch_ns": 0.001}
"""Microseconds in one unit of a numeric time."""

ISO = "iso"

PATTERNS = (
    "dd/MMM/yyyy:HH:mm:ss Z",
    "yyyy/MM/dd HH:mm[:ss][.SSSSSS]",
    "MM/dd/yyyy[ HH:mm[:ss][.SSSSSS]]",
    "dd/MM/yyyy[ HH:mm[:ss][.SSSSSS]]",
    "dd.MM.yyyy[ HH:mm[:ss][.SSSSSS]]",
    "MM/dd/yyyy hh:mm:ss a",
    "yyyyMMdd HHmmss",
    "yyyyMMddHHmmss",
    "yyyyMMdd",
    "dd-MMM-yyyy[ HH:mm:ss]",
    "MMM d, yyyy[ HH:mm:ss]",
)
"""Tried in this order after ISO 8601 and epoch numbers."""

DIGITS = ("yyyyMMdd", "yyyyMMddHHmmss")
"""Patterns that look like whole numbers."""

KNOWN = (ISO, *EPOCH_UNITS)

A_PATTERN = "a pattern such as dd.MM.yyyy HH:mm:ss"

WHOLE = ("bigint", "int", "smallint", "tinyint")
"""Whole-number types of Spark."""

USUAL_NAMES = ("ts", "time", "timestamp", "datetime", "date", "event_time", "eventtime", "created_at", "time_hour")

MOST_LOOKED_AT = 40
"""Columns examined for times."""

_RECENT_S = (631_152_000, 4_102_444_800)
"""1990 and 2100 in seconds since 1970, between which numbers are guessed to be times."""

EARLIEST_US = -62_135_596_800_000_000  # year 1
LATEST_US = 253_402_300_799_999_999  # year 9999


@dataclass(frozen=True, slots=True)
class TimeFormat:
    """Format of times.

    Attributes:
        name: `iso`, an epoch unit, or a Spark datetime pattern.
        guessed: Whether it was guessed.
    """

    name: str
    guessed: bool = False


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
    text = F.trim(value.cast("string"))
    if form.name == ISO:
        # the cast alone would also read "10:05" (today) and "2015" (a year)
        has_date = (F.substring(text, 5, 1) == "-") & (F.instr(F.substring(text, 1, 4), ":") == 0)
        return F.when(has_date, text.cast("timestamp"))
    return F.try_to_timestamp(text, F.lit(form.name))


def is_in_range(time: Column) -> Column:
    """Whether a time is in the years 1 to 9999."""
    return F.coalesce(F.unix_micros(time).between(EARLIEST_US, LATEST_US), F.lit(False))


def _micros(value: Column, kind: str, factor: float) -> Column:
    if kind in WHOLE or kind == "string":
        whole = value.cast("bigint")
        # whole numbers throughout: a double cannot hold today's nanoseconds
        rounded_down = F.call_function("div", whole - F.pmod(whole, F.lit(1000)), F.lit(1000))
        exact = whole * F.lit(int(factor)) if factor >= 1.0 else rounded_down
        # a product beyond int64 is not a time; text with a fraction is read as a decimal
        fits = F.abs(whole.cast("double") * F.lit(factor)) < F.lit(9.2e18)
        plain = value.rlike(r"^\s*[-+]?\d+\s*$") if kind == "string" else F.lit(True)
        return F.when(plain & fits, exact.cast("bigint")).otherwise(_decimal_micros(value, factor))
    return _decimal_micros(value, factor)


def _decimal_micros(value: Column, factor: float) -> Column:
    scaled = value.cast("decimal(38,9)") * F.lit(str(factor)).cast("decimal(20,3)")
    # beyond int64 the cast would wrap around
    return F.when(scaled.between(EARLIEST_US, LATEST_US), F.round(scaled).cast("bigint"))


def stated_format(spark: SparkSession, name: str) -> TimeFormat:
    """The stated time format.

    Raises:
        UsageError: the name is neither a known format nor a pattern that Spark accepts.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    if name != ISO and name not in EPOCH_UNITS:
        try:
            spark.sql("values '2015-05-17'").select(F.try_to_timestamp("col1", F.lit(name))).collect()
        except (PySparkException, Py4JError) as error:
            raise UsageError(
                f"--time-format must be one of {', '.join(KNOWN)}, or {A_PATTERN} (got {name!r})"
            ) from error
    return TimeFormat(name)


def guess_format(sample: DataFrame, given: str, kind: str) -> TimeFormat:
    """The format that reads most values of a sample.

    The first of a tie.

    Args:
        sample: One column of values.
        given: The column or expression of the values, as given.
        kind: Short name of its Spark type.

    Raises:
        BadInput: no format reads any value.
    """
    column = sample.columns[0]
    value = F.col(column)
    if kind in ("timestamp", "timestamp_ntz", "date"):
        return TimeFormat(ISO)
    if kind not in ("string", *WHOLE, "double", "float") and not kind.startswith("decimal"):
        raise BadInput(f"--time {given!r} has type {kind}; it must be text, a number or a time")
    tried = _texts() if kind == "string" else DIGITS if kind in WHOLE else ()
    # counted here: a sample that is no table of files then needs no job
    rows = sample.select(
        F.abs(value.cast("double")),
        value.isNotNull(),
        F.coalesce(value.cast("string").rlike(r"^\s*[-+]?\d+(\.\d+)?\s*$"), F.lit(False)),
        *(is_in_range(as_timestamp(value, kind, TimeFormat(name))) for name in tried),
    ).collect()
    if not rows:  # no values to judge by
        return TimeFormat(ISO, guessed=True)
    sizes = sorted(inf if isnan(row[0]) else row[0] for row in rows if row[0] is not None)
    values, numbers, *read = (sum(row[at] for row in rows) for at in range(1, 3 + len(tried)))
    reads = dict(zip(tried, read, strict=True))
    # eight digits that read as a date are a date, not a second of 1970
    if sizes and not any(reads.get(name, 0) == numbers for name in DIGITS):
        reads[_epoch_unit(sizes[(len(sizes) - 1) // 2])] = numbers if kind == "string" else values
    best = max(reads, key=lambda name: reads[name], default=ISO)
    if not reads.get(best):
        raise BadInput(
            f"--time {given!r}: no value of the first rows reads as a time (first values: {_shown(sample, column)});"
            f" give --time-format: {', '.join(KNOWN)}, or {A_PATTERN}"
        )
    return TimeFormat(best, guessed=True)


def time_column(sample: DataFrame, columns: Sequence[str]) -> str | None:
    """The first column of times, or None.

    By type, else nearly all text times, else numbers that may be epochs.
    """
    kinds = {name: sample.select(quoted(name)).schema[0].dataType.simpleString() for name in columns[:MOST_LOOKED_AT]}
    typed = [name for name, kind in kinds.items() if kind in ("timestamp", "timestamp_ntz", "date")]
    if typed:
        return typed[0]
    looked_at = [name for name, kind in kinds.items() if kind == "string" or kind in (*WHOLE, "double")]
    told = []
    for at, name in enumerate(looked_at):
        value = quoted(name)
        forms = (TimeFormat(form) for form in _texts() if form not in DIGITS)
        texts = (F.count_if(is_in_range(as_timestamp(value, kinds[name], form))) for form in forms)
        most = F.greatest(*texts) if kinds[name] == "string" else F.lit(0)
        number = F.abs(value.cast("double"))
        recent = (number.between(*(bound * scale for bound in _RECENT_S)) for scale in (1, 1e3, 1e6, 1e9))
        told += [
            F.count(value).alias(f"values{at}"),
            most.alias(f"texts{at}"),
            F.count_if(reduce(operator.or_, recent)).alias(f"numbers{at}"),
        ]
    row = sample.select(*told).first() if told else None
    for kind in ("texts", "numbers"):
        for at, name in enumerate(looked_at):
            if row is not None and row[f"values{at}"] and row[f"{kind}{at}"] >= 0.9 * row[f"values{at}"]:
                return name
    return None


def _texts() -> Sequence[str]:
    return (ISO, *PATTERNS)


def _epoch_unit(typical: float) -> str:
    """The epoch unit in which a number of this size is a plausible time."""
    if typical < 1e11:
        return "epoch_s"
    if typical < 1e14:
        return "epoch_ms"
    return "epoch_us" if typical < 1e17 else "epoch_ns"


def _shown(sample: DataFrame, column: str) -> str:
    values = [row[0] for row in sample.select(column).where(f"`{column}` is not null").limit(3).collect()]
    return ", ".join(repr(value) for value in values) or "all null"
