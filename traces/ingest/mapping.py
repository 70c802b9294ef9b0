"""From the columns of a source to those of a trace: the user's expressions, and why a row is refused."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from adapt.core.errors import UsageError, did_you_mean
from adapt.traces.ingest.cleaning import UNIQUE
from adapt.traces.ingest.times import (
    USUAL_NAMES,
    WHOLE,
    TimeFormat,
    as_timestamp,
    guess_format,
    is_in_range,
    stated_format,
    time_column,
)
from adapt.traces.sources.reading.blocks import PATH, PLACE
from adapt.traces.sources.reading.table_files import quoted
from adapt.traces.spark.lazy import Column, DataFrame, F
from adapt.traces.spark.session import spark_failures

AMOUNTS = {"cost": ("cost_us", "double"), "bytes": ("bytes", "bigint")}
"""Quantities by the name of their option: the trace's column and its type."""

RESERVED = ("ts", "key", "stream", "cost_us", "bytes")
"""The trace's own columns."""

ALL_COLUMNS = "*"
"""In place of what rows are unique by: all that the trace keeps of them."""

NESTED = ("struct", "array", "map", "variant")
"""How Spark's types begin that hold several values."""


@dataclass(frozen=True, slots=True)
class Mapping:
    """Which column or Spark SQL expression of the source gives which column of the trace.

    Attributes:
        key, time, cost, bytes, stream: Columns or expressions; time may be empty (then it is looked for).
        time_format: iso, an epoch unit, or a Spark datetime pattern; empty to guess.
        keep: Source columns that are carried along.
        unique: Rows alike in this are one, of which the first in the source stays; `*` for all columns of the trace. A
            row where it is missing is like no other. Empty if rows may repeat.
    """

    key: str
    time: str = ""
    cost: str = ""
    bytes: str = ""
    stream: str = ""
    time_format: str = ""
    keep: tuple[str, ...] = ()
    unique: str = ""

    def expressions(self) -> dict[str, str]:
        """What was given, by the name of its option."""
        given = {name: getattr(self, name) for name in ("key", "time", "cost", "bytes", "stream", "unique")}
        return {name: text for name, text in given.items() if text and (name, text) != ("unique", ALL_COLUMNS)}

    def wanted(self, columns: Sequence[str]) -> list[str]:
        """Those of the source's columns that the expressions can name; never too few."""
        texts = " ".join([*self.expressions().values(), *self.keep])
        return [name for name in (*columns, PATH) if _may_name(texts, name)]


def _may_name(texts: str, column: str) -> bool:
    """Whether a column may be named in expressions: a plain name stands for itself, another anywhere."""
    if re.fullmatch(r"\w+", column):
        return re.search(rf"(?<!\w){column}(?!\w)", texts) is not None
    return column in texts or column.replace("`", "``") in texts


def chosen_time(sample: DataFrame, columns: Sequence[str]) -> str:
    """The time column of a source where none was named: one with a usual name, else the first that reads as times.

    Raises:
        UsageError: there is none.
    """
    by_name = {name.lower(): name for name in reversed(columns)}
    for name in USUAL_NAMES:
        if name in by_name:
            return by_name[name]
    with spark_failures("--time"):
        found = time_column(sample, columns)
    if found is None:
        raise UsageError(f"--time is needed: no column reads as times (there are: {', '.join(columns)})")
    return found


def settled_format(mapping: Mapping, sample: DataFrame, columns: Sequence[str]) -> TimeFormat:
    """The format of the mapping's time: the one stated, or the one that most rows of a sample fit."""
    if mapping.time_format:
        return stated_format(sample.sparkSession, mapping.time_format)
    times = selected(sample, mapping.time, "time", columns)
    with spark_failures(f"--time {mapping.time!r}"):
        return guess_format(times, mapping.time, times.schema["time"].dataType.simpleString())


def mapped(source: DataFrame, mapping: Mapping, form: TimeFormat, columns: Sequence[str]) -> DataFrame:
    """The trace's columns beside the reader's; `_reason` is set in refused rows.

    Raises:
        UsageError: an expression names an unknown column, does not parse, or gives a type that cannot be used.
    """
    values: dict[str, Column] = {}
    kinds: dict[str, str] = {}
    for name, text in mapping.expressions().items():
        # analysed one by one, so that a failure names its option
        kinds[name] = selected(source, text, name, columns).schema[name].dataType.simpleString()
        values[name] = as_column(text, columns)
    kept = tuple(dict.fromkeys(mapping.keep))
    for name in kept:
        if name not in columns:
            raise UsageError(f"--keep {name!r}: there is no such column{did_you_mean(name, columns)}")
        if name in RESERVED or name.startswith("_"):
            raise UsageError(f"--keep {name!r}: the trace has a column of that name itself; rename it in the source")
        kind = source.select(quoted(name)).schema[0].dataType.simpleString()
        if kind.startswith(NESTED):
            raise UsageError(f"--keep {name!r} is {kind}; a column that is kept is text, a number, a time or binary")
    with spark_failures("the expressions"):
        raw = source.select(
            *PLACE, *(value.alias(f"_raw_{name}") for name, value in values.items()), *(quoted(name) for name in kept)
        )
        # each value is worked out once, here, and only looked at below
        read = raw.withColumn("_time", as_timestamp(F.col("_raw_time"), kinds["time"], form))
        for name in AMOUNTS:
            if name in values:
                read = read.withColumn(f"_{name}", F.col(f"_raw_{name}").cast("double"))
        unreadable = F.when(_missing("_raw_time"), "time is missing").otherwise("time cannot be read")
        known = is_in_range(F.col("_time"))
        checks = [F.when(~known, unreadable)]
        result = {"ts": F.when(known, F.col("_time")), "key": _key(F.col("_raw_key"), kinds["key"])}
        if "stream" in values:
            result["stream"] = F.col("_raw_stream").cast("string")
        for name, (column, kind) in AMOUNTS.items():
            if name in values:
                check = _amount_refused(name, kind, kinds[name])
                result[column] = F.when(check.isNull(), _amount(name, kind))
                checks.append(check)
        trace = read.select(
            "_file",
            "_line",
            F.coalesce(F.col("_reason"), *checks).alias("_reason"),
            "_text",
            *(column.alias(name) for name, column in result.items()),
            *(quoted(name) for name in kept),
            *([_text_of("unique", kinds["unique"]).alias(UNIQUE)] if "unique" in values else []),
        )
        if mapping.unique == ALL_COLUMNS:
            return trace.withColumn(UNIQUE, F.struct(*result, *(quoted(name) for name in kept)))
        return trace


def _text_of(name: str, kind: str) -> Column:
    """A value that rows are told apart by; missing where it is empty."""
    if kind.startswith(NESTED):
        raise UsageError(
            f"--{name} gives {kind}; rows are told apart by text, a number, a time or binary: use concat_ws"
        )
    return F.when(~_missing(f"_raw_{name}"), F.col(f"_raw_{name}").cast("string"))


def selected(source: DataFrame, text: str, option: str, columns: Sequence[str]) -> DataFrame:
    """The expression as a column named for its option."""
    from pyspark.errors import AnalysisException, ParseException

    try:
        return source.select(as_column(text, columns).alias(option))
    except (AnalysisException, ParseException) as error:
        unknown = re.search(r"with name `?(.+?)`? cannot be resolved", str(error))
        if unknown:
            name = unknown.group(1).replace("`", "")
            raise UsageError(
                f"--{option} {text!r}: there is no column {name!r}{did_you_mean(name, columns)}"
            ) from error
        with spark_failures(f"--{option} {text!r}"):
            raise
        raise


def as_column(text: str, columns: Sequence[str]) -> Column:
    """A column where the text is the name of one, else a Spark SQL expression."""
    if text in columns or text == PATH:
        return quoted(text)
    return F.expr(text)


def _key(value: Column, kind: str) -> Column:
    if kind in WHOLE:
        return value.cast("bigint")
    if kind == "binary":
        return value
    if kind in ("double", "float"):
        raise UsageError(
            f"--key gives {kind}, of which one number may be written in two ways: use bigint(...) or string(...)"
        )
    if kind.startswith(NESTED):
        raise UsageError(f"--key gives {kind}; a key is text, a whole number or binary: name a field, or use concat_ws")
    return value.cast("string")


def _amount(name: str, kind: str) -> Column:
    """A quantity as the trace holds it; a whole number is taken as such, a fraction of a byte is cut off."""
    number = F.col(f"_{name}")
    return number if kind == "double" else F.coalesce(F.col(f"_raw_{name}").cast(kind), number.cast(kind))


def _amount_refused(name: str, kind: str, given: str) -> Column:
    """Why a row's quantity is refused: it must be a finite number, not negative; it may be missing.

    Args:
        kind: The trace's type of it.
        given: The type of what the expression gives.
    """
    number, raw = F.col(f"_{name}"), F.col(f"_raw_{name}")
    infinite = F.isnan(number) | (F.abs(number) == float("inf"))
    # Spark reads "5d" and "0x1p3" as Java does
    coded = raw.rlike("[A-DF-Za-df-z]") if given == "string" else F.lit(False)
    bad = (
        F.when(number.isNull() & ~_missing(f"_raw_{name}"), f"{name} is not a number")
        .when(infinite, f"{name} is not finite")
        .when(coded, f"{name} is not a number")
        .when(number < 0, f"{name} is negative")
    )
    if kind != "bigint" or given in WHOLE:
        return bad
    # the largest whole number is as a double one that no longer fits
    fits = raw.cast(kind).isNotNull() if given == "string" else F.lit(False)
    return bad.when((number >= float(1 << 63)) & ~fits, f"{name} is too large")


def _missing(name: str) -> Column:
    return F.col(name).isNull() | (F.trim(F.col(name).cast("string")) == "")
